"""What runs have recorded: reading and checking archives, showing them, exporting tables.
`run_samples` and `openmetrics` put the metrics of all repeats together, also for `replay`.

Writing is done by `run_recording`; its `layout` describes the format.
"""
