"""Which CPUs the threads of a process may use: read, changed, and put back thread by thread.

A thread that has fewer CPUs than its process has pinned itself. Crimson's reactors do so, one to a
CPU; one set for the whole process would undo that.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from cephqos_base.errors import UsageError
from cephqos_base.units import format_cpu_list
from cephqos_loadgen.cluster.this_host import started

Cpus = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProcessCpus:
    """The CPUs that the threads of a process may use."""

    pid: int
    started: int  # ticks since the host's boot: another process may have this pid later
    common: Cpus  # of most threads
    different: Mapping[int, Cpus]  # of the others, by thread id

    @classmethod
    def of(cls, pid: int, threads: Mapping[int, Cpus]) -> Self:
        """From what `read_threads` has found."""
        counts = Counter(threads.values())
        common = max(counts, key=lambda cpus: (counts[cpus], len(cpus)))
        different = {tid: cpus for tid, cpus in threads.items() if cpus != common}
        return cls(pid, started(pid), common, different)

    def shown(self) -> str:
        """The commands that put it back."""
        command = f"taskset --all-tasks --cpu-list --pid {format_cpu_list(self.common)} {self.pid}"
        for_threads = (
            f"taskset --cpu-list --pid {format_cpu_list(cpus)} {tid}"
            for tid, cpus in self.different.items()
        )
        return "; ".join([command, *for_threads])


def read_threads(pid: int) -> dict[int, Cpus]:
    """The CPUs that each thread may use now; FileNotFoundError where the process is gone."""
    threads: dict[int, Cpus] = {}
    for tid in _threads(pid):
        with contextlib.suppress(ProcessLookupError):
            threads[tid] = tuple(sorted(os.sched_getaffinity(tid)))
    return threads


def pinned_themselves(threads: Mapping[int, Cpus]) -> dict[int, Cpus]:
    """The threads that have fewer CPUs than all threads have together."""
    all_cpus = {cpu for cpus in threads.values() for cpu in cpus}
    return {tid: cpus for tid, cpus in threads.items() if set(cpus) < all_cpus}


def pin(name: str, pid: int, threads: Mapping[int, Cpus], cpus: Cpus) -> None:
    """Give a process these CPUs, except threads that have pinned themselves.

    UsageError if those are on other CPUs.
    """
    pinned = pinned_themselves(threads)
    outside = {cpu for of_thread in pinned.values() for cpu in of_thread} - set(cpus)
    if outside:
        raise UsageError(
            f"{name}: {len(pinned)} of its threads pinned themselves, some to CPUs"
            f" {format_cpu_list(outside)}, which the plan does not give it"
            f" ({format_cpu_list(cpus)}). If it is Crimson, set crimson_cpu_set to these and"
            " restart it before the run"
        )
    _set(pid, dict.fromkeys(pinned, ()), cpus)


def restore(before: ProcessCpus, ours: Cpus) -> str:
    """Put every thread back, if most have the CPUs that the run gave them. Returns what was left.

    A thread that was started since then gets the CPUs of most.
    """
    try:
        if started(before.pid) != before.started:
            return ""  # it has ended, and its CPUs with it
        now = ProcessCpus.of(before.pid, read_threads(before.pid)).common
        if now not in (ours, before.common):
            return f"process {before.pid} was given the CPUs {format_cpu_list(now)} by someone else"
        _set(before.pid, before.different, before.common)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return ""


def _set(pid: int, different: Mapping[int, Cpus], common: Cpus) -> None:
    """Set the CPUs of all threads; a thread with () is left alone.

    A thread that starts during the first pass inherits the CPUs of its parent. The second pass
    finds it.
    """
    for _ in range(2):
        for tid in _threads(pid):
            cpus = different.get(tid, common)
            if cpus:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(tid, cpus)


def _threads(pid: int) -> list[int]:
    return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - names only
