"""Runs against each other: `comparison` matches rows and judges them, `output` shows it, `cli` is
`cephqos compare`."""
