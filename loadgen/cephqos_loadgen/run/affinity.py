"""Pins a process and all its threads to CPUs."""

import contextlib
import os


def set_affinity(pid: int, cpus: tuple[int, ...]) -> None:
    """All threads, also those that come into being while this runs: a new one inherits its maker's
    CPUs, so a second pass finds whatever the first one missed."""
    for _ in range(2):
        for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names are all that is wanted
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(tid), cpus)
