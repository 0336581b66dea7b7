"""What this host's kernel counted between the start and the end of a phase."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import psutil

from cephqos_exporter.procfs import CLOCK_TICKS, parse_stat, read_once
from cephqos_loadgen.lab.isolation.namespaces import children
from cephqos_loadgen.results.host import CpuUse, DiskUse, HostUse, ProcessUse, ThreadUse

# /proc/diskstats after major, minor and name (Documentation/admin-guide/iostats.rst): the fields of
# DiskUse in their order. psutil leaves out what is in flight and the time of the queue.
_DISK_FIELDS = tuple(field.name for field in fields(DiskUse))
_IN_FLIGHT = "in_flight"
_NEVER_FALL = ("reads", "sectors_read", "writes", "sectors_written")
_MS_WRAP = 1 << 32
# By thread name and thread id: user and system ticks.
Ticks = Mapping[tuple[str, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class HostState:
    """Counters of one moment: CPUs and disks of the host, and CPU ticks per process and thread."""

    cpu: Mapping[str, float]  # seconds, of all CPUs together; guests are in user and nice already
    throttled_seconds: float
    disks: Mapping[str, Mapping[str, int]]
    threads: Mapping[str, Ticks]  # by process
    resident: Mapping[str, int]  # bytes of memory by process


def parse_diskstats(text: str) -> dict[str, dict[str, int]]:
    disks = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 + len(_DISK_FIELDS):
            values = [int(word) for word in words[3 : 3 + len(_DISK_FIELDS)]]
            disks[words[2]] = dict(zip(_DISK_FIELDS, values, strict=True))
    return disks


def read_throttled(sys: Path) -> float:
    """Seconds since the start in which heat or a control group's limit held CPUs back."""
    seconds = 0.0
    for file in sys.glob("devices/system/cpu/cpu*/thermal_throttle/core_throttle_total_time_ms"):
        with contextlib.suppress(OSError, ValueError):
            seconds += int(read_once(str(file))) / 1e3
    with contextlib.suppress(OSError, ValueError):
        for line in read_once(f"{sys}/fs/cgroup/cpu.stat").splitlines():
            name, _, value = line.partition(b" ")
            if name == b"throttled_usec":
                seconds += int(value) / 1e6
    return seconds


def read_host(processes: Mapping[str, int], sys: Path = Path("/sys")) -> HostState:
    """The counters now. `processes` have their number by name; the workers that they have forked
    count as theirs, and those that are gone are left out."""
    threads: dict[str, dict[tuple[str, int], tuple[int, int]]] = {}
    resident: dict[str, int] = {}
    for name, pid in processes.items():
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            resident[name] = psutil.Process(pid).memory_info().rss
            threads[name] = _threads(pid)
            # fio forks a process for each job, but for those of librbd.
            for worker in children(pid):
                resident[name] += _own_bytes(worker)
                threads[name] |= _threads(worker)
    disks = parse_diskstats(Path("/proc/diskstats").read_text())
    return HostState(psutil.cpu_times()._asdict(), read_throttled(sys), disks, threads, resident)


def _own_bytes(pid: int) -> int:
    """Memory that it does not share with the process that it was forked from."""
    with contextlib.suppress(psutil.Error):
        memory = psutil.Process(pid).memory_info()
        return int(memory.rss - memory.shared)
    return 0


def with_ended(before: HostState | None, now: HostState) -> HostState:
    """The same processes a moment later, with the threads and workers that have since ended."""
    if before is None:
        return now
    threads = {
        name: {**before.threads.get(name, {}), **of_process}
        for name, of_process in now.threads.items()
    }
    return replace(now, threads={**before.threads, **threads})


def _threads(pid: int) -> dict[tuple[str, int], tuple[int, int]]:
    """The ticks of a process's threads. psutil does not name threads."""
    threads = {}
    for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError, ValueError):
            stat = parse_stat(read_once(f"/proc/{pid}/task/{tid}/stat"))
            threads[stat.name.decode(errors="replace"), int(tid)] = (stat.user, stat.system)
    return threads


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What a disk did in between. For a disk that was made again, all that it did.

    The kernel prints milliseconds as 32-bit numbers. With a deep queue they wrap within a day.
    """
    if any(after[key] < was for key, was in before.items() if key in _NEVER_FALL):
        before = {}
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    for key in grown:
        if key.endswith("_ms"):
            grown[key] %= _MS_WRAP
    return grown | {_IN_FLIGHT: after[_IN_FLIGHT]}


def difference(before: HostState, after: HostState, seconds: float) -> HostUse:
    """What happened in between: CPUs, disks that did something, CPU time per process and thread."""
    disks = {}
    for name, counters in after.disks.items():
        delta = _grown(before.disks.get(name, {}), counters)
        if delta["reads"] or delta["writes"]:
            disks[name] = DiskUse(**delta)
    processes = {
        name: ProcessUse(
            after.resident.get(name, 0), _thread_use(before.threads.get(name, {}), threads)
        )
        for name, threads in after.threads.items()
    }
    return HostUse(seconds, _cpu_use(before, after), disks, processes)


def client_use(name: str, state: HostState) -> ProcessUse:
    """All that a process has used since it started."""
    return ProcessUse(state.resident.get(name, 0), _thread_use({}, state.threads.get(name, {})))


def _cpu_use(before: HostState, after: HostState) -> CpuUse:
    # The kernel may take back a little of iowait and steal.
    spent = {key: max(0.0, seconds - before.cpu[key]) for key, seconds in after.cpu.items()}
    return CpuUse(
        cpus=os.cpu_count() or 1,
        user_seconds=spent["user"] + spent["nice"],
        system_seconds=spent["system"],
        iowait_seconds=spent["iowait"],
        irq_seconds=spent["irq"] + spent["softirq"],
        steal_seconds=spent["steal"],
        idle_seconds=spent["idle"],
        throttled_seconds=round(max(0.0, after.throttled_seconds - before.throttled_seconds), 6),
    )


def _thread_use(before: Ticks, after: Ticks) -> dict[str, ThreadUse]:
    """By thread name, without those that used no CPU."""
    uses: dict[str, ThreadUse] = {}
    for (name, tid), (user, system) in after.items():
        user_before, system_before = before.get((name, tid), (0, 0))
        user_seconds = (user - user_before) / CLOCK_TICKS
        system_seconds = (system - system_before) / CLOCK_TICKS
        if user_seconds + system_seconds <= 0:
            continue
        of_name = uses.get(name, ThreadUse(0.0, 0.0, 0, 0.0))
        uses[name] = ThreadUse(
            round(of_name.user_seconds + user_seconds, 4),
            round(of_name.system_seconds + system_seconds, 4),
            of_name.threads + 1,
            max(of_name.busiest_seconds, round(user_seconds + system_seconds, 4)),
        )
    return uses
