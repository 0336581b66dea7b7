"""The commands `cephqos run` and `cephqos scenarios`, and the run as a whole: the repeats that are
left, one repeat from its first second to its last, resuming, the summary, what it all ran on.
"""
