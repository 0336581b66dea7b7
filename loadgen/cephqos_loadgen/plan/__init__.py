"""What a run will do, as frozen data that nothing changes any more: settings, pools, phases, points.

No I/O and no reading of files: `scenario` makes plans from YAML, `check` holds them against the host
and shows them, `run` carries them out. `action` says what every kind of phase must be able to do.
"""
