"""From an archive to numbers. Pure once the archive is read.

`samples`, `intervals` and `bins` hold the recorded data as arrays. `observe` turns one repeat into
figures, with `cost` (CPU, memory, devices) and `attained` (attainment per OSD and class). `causes`
adds what recording rules say. `analysis` puts the repeats of a point together. `metrics` has names
and units of figures, `statistics` has their spread and the intervals of changes.
"""
