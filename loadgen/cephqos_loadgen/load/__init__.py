"""Drives the load of one repeat: starts and ends phases, runs client processes and
follows their output, watches the cluster at the same time. `kind` is the base of all kinds of
phases, which are in `phase_kinds`.
"""
