"""A model of an OSD's scheduler, its store and its clients, in which a policy can be tried.

Pure: no I/O, no clock, no randomness but that of a seed. docs/internals/model.md says what is
modelled after which part of Ceph, and how far its predictions are off.
"""
