"""What runs have recorded: reading and checking archives, showing them, exporting tables.
`series` and `openmetrics` put the metrics of all repeats together, also for `replay`.

Writing is done by `record`; `record.layout` describes the format.
"""
