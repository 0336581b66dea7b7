"""The demo: a real cluster under load, shown live, and one reservation violated on purpose.

`cli` sets everything up, `story` violates the reservation and ends that, `screen` is `cephqos top`
with the story above it.
"""
