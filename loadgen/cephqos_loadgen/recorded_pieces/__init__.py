"""What exporters have recorded by themselves: their kept pieces are listed, fetched, and made into
one archive of the usual format, with names replaced where that is asked for.
"""
