"""What a run will do, as frozen data: settings, pools, phases, points of the matrix.

No I/O and no files: `scenario` makes plans from YAML, `check` compares them with the host and shows
them, `run` carries them out. `action` says what every kind of phase must be able to do.
"""
