"""What a run finds, as frozen types: figures of loads, of phases, of repeats, of the whole run.

Everything that a report or a table reads is defined here or, for one kind of phase, in that kind's
own file in `phase_kinds`. A name carries its unit. `json_form` turns the types into JSON and back,
and refuses what does not fit. Nothing here does any I/O.
"""
