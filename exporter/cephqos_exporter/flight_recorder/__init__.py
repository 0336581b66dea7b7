"""The flight recorder: the metrics pages of the last minutes on disk, and pieces that are kept of
them when something happens. A thread of its own writes, so that a slow disk holds up no scrape.
"""
