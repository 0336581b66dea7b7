"""Reservation, attained work and reservation lag of each class of an OSD: `collector`.

docs/internals/qos.md has the formula of every figure by class, model and release, and what cannot
be known. The other files are a topic each, from the reply to the family.
"""
