"""From an archive to numbers. Pure once the archive is read.

`samples`, `intervals` and `bins` are what was recorded, as arrays; `observe` turns one repeat into
figures, with `cost` (CPU, memory, devices) and `attained` (attainment per OSD and class);
`causes` adds what recording rules say; `analysis` puts repeats together per point. `metrics` names
the figures and their units, `statistics` knows spread and changes with an interval.
"""
