"""What speaks against the figures of a run: each check is a function that yields caveats.

`every` is the list of checks. They are of how the run went (`of_run`), of its repeats
(`of_repeats`), of the cluster (`of_cluster`), of the load (`of_load`) and of what it is compared
with (`of_baseline`).
"""
