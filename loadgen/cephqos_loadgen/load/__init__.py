"""Drives the load of one repeat: runs phases beside each other from their start to their end, runs
client processes and follows them, watches the cluster meanwhile. `kind` is the base of all kinds of
phases, which are in `phase_kinds`.
"""
