"""Runs against each other: `differing` says whether they can be compared, `comparison` matches
rows, `fail_rules` judges them, `output` shows it, `cli` is `cephqos compare`."""
