"""`cephqos trial`: the cluster itself is asked what a setting does.

`plan` says what is tried when, `measure` turns counters into figures, `guard` says when a block
must end, `estimate` what is known of a difference: none of them does I/O. `conduct` runs a
timetable in any world; `cluster` is the real one.
"""
