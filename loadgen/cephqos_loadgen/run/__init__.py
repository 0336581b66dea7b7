"""The commands `cephqos run` and `cephqos scenarios`, and the run as a whole: which points and repeats
are left, one repeat from its first second to its last, going on after an interruption, the summary.
"""
