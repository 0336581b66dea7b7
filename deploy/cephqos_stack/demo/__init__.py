"""The demo: a real cluster under load, shown live, and one promise broken on purpose.

`cli` sets everything up, `story` breaks and mends the promise, `screen` is `cephqos top` with the
story above it.
"""
