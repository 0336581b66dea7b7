"""Writes a run down: the folder of a run and of a repeat, processes with their output, metrics of
exporters per second, counters of the host. Files can be read up to where a crash cut them off.
"""
