"""What runs have recorded: reading and checking archives, showing them, exporting tables.

Writing is done by `record`; `record.layout` describes the format.
"""
