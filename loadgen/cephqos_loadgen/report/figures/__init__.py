"""From an archive to numbers. Pure once the archive is read.

`observe` turns one repeat into figures: `loads` by step, background work, `cost` (CPU, memory,
devices) and `attained` (attainment per OSD and class). `causes` adds what recording rules say.
`analysis` puts the repeats of a point together, `baseline` compares throughputs, `environment` says
on what. `metrics` has names and units of figures.
"""
