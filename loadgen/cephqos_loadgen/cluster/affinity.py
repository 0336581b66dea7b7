"""Which CPUs the threads of a process may use: seen, changed, and put back thread by thread.

A thread that has fewer CPUs than its process has pinned itself. Crimson's reactors do so, one to a
CPU; a set for the whole process would undo that.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cephqos_base.errors import UsageError
from cephqos_base.units import format_cpu_list, parse_cpu_list
from cephqos_exporter.procfs import parse_stat, read_once

Cpus = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProcessCpus:
    """The CPUs of a process's threads: `rest` of most, and of those that differ by thread id.

    `started` tells the process from a later one with the same pid, in ticks since the host's boot.
    """

    pid: int
    started: int
    rest: Cpus
    others: Mapping[int, Cpus]

    @classmethod
    def of(cls, pid: int, threads: Mapping[int, Cpus]) -> Self:
        """Of what `read_threads` has found."""
        counts = Counter(threads.values())
        rest = max(counts, key=lambda cpus: (counts[cpus], len(cpus)))
        others = {tid: cpus for tid, cpus in threads.items() if cpus != rest}
        return cls(pid, _started(pid), rest, others)

    def shown(self) -> str:
        """The commands that put it back."""
        command = f"taskset --all-tasks --cpu-list --pid {format_cpu_list(self.rest)} {self.pid}"
        each = (
            f"taskset --cpu-list --pid {format_cpu_list(cpus)} {tid}"
            for tid, cpus in self.others.items()
        )
        return "; ".join([command, *each])

    def to_json(self) -> dict[str, Any]:
        others = {str(tid): format_cpu_list(cpus) for tid, cpus in self.others.items()}
        rest = format_cpu_list(self.rest)
        return {"pid": self.pid, "started": self.started, "rest": rest, "others": others}

    @classmethod
    def from_json(cls, pid: int, started: int, rest: str, others: Mapping[str, str]) -> Self:
        each = {int(tid): parse_cpu_list(cpus) for tid, cpus in others.items()}
        return cls(pid, started, parse_cpu_list(rest), each)


def read_threads(pid: int) -> dict[int, Cpus]:
    """The CPUs that each thread may use now; FileNotFoundError where the process is gone."""
    threads: dict[int, Cpus] = {}
    for tid in _threads(pid):
        with contextlib.suppress(ProcessLookupError):
            threads[tid] = tuple(sorted(os.sched_getaffinity(tid)))
    return threads


def pinned_themselves(threads: Mapping[int, Cpus]) -> dict[int, Cpus]:
    """Those that have fewer CPUs than all threads have together."""
    whole = {cpu for cpus in threads.values() for cpu in cpus}
    return {tid: cpus for tid, cpus in threads.items() if set(cpus) < whole}


def pin(name: str, pid: int, threads: Mapping[int, Cpus], cpus: Cpus) -> None:
    """Give a process these CPUs. Threads that have pinned themselves stay where they are;
    UsageError where that is outside."""
    own = pinned_themselves(threads)
    outside = {cpu for mine in own.values() for cpu in mine} - set(cpus)
    if outside:
        raise UsageError(
            f"{name}: {len(own)} of its threads pinned themselves, some to CPUs"
            f" {format_cpu_list(outside)}, which the plan does not give it"
            f" ({format_cpu_list(cpus)}). If it is Crimson, set crimson_cpu_set to these and"
            " restart it before the run"
        )
    _set(pid, dict.fromkeys(own, ()), cpus)


def restore(before: ProcessCpus) -> None:
    """Every thread as it was; one that was started since then as most were."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone, and its CPUs with it
        if _started(before.pid) == before.started:
            _set(before.pid, before.others, before.rest)


def _set(pid: int, others: Mapping[int, Cpus], rest: Cpus) -> None:
    """A thread that starts during the first pass inherits the CPUs of its parent; the second pass
    finds it. Nothing for a thread: it is left alone."""
    for _ in range(2):
        for tid in _threads(pid):
            cpus = others.get(tid, rest)
            if cpus:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(tid, cpus)


def _threads(pid: int) -> list[int]:
    return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - names only


def _started(pid: int) -> int:
    return parse_stat(read_once(f"/proc/{pid}/stat")).start
