"""What this host's kernel counted between the start and the end of a phase."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cephqos_exporter.procfs import CLOCK_TICKS, parse_stat, read_once

# /proc/diskstats behind major, minor and name (Documentation/admin-guide/iostats.rst).
_DISK_FIELDS = (
    "reads",
    "reads_merged",
    "sectors_read",
    "read_ms",
    "writes",
    "writes_merged",
    "sectors_written",
    "write_ms",
    "in_flight",
    "busy_ms",
    "queue_ms",
)
_IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class HostState:
    """Counters of one moment: disks, and CPU ticks per process and thread."""

    disks: Mapping[str, Mapping[str, int]]
    # process -> (thread name, thread id) -> user, system ticks
    threads: Mapping[str, Mapping[tuple[str, int], tuple[int, int]]]
    resident: Mapping[str, int]


def parse_diskstats(text: str) -> dict[str, dict[str, int]]:
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 3 + len(_DISK_FIELDS):
            values = [int(value) for value in fields[3 : 3 + len(_DISK_FIELDS)]]
            found[fields[2]] = dict(zip(_DISK_FIELDS, values, strict=True))
    return found


def read_host(processes: Mapping[str, int], proc: Path = Path("/proc")) -> HostState:
    """The counters now, of these processes by name; those that are gone are left out."""
    threads: dict[str, Mapping[tuple[str, int], tuple[int, int]]] = {}
    resident: dict[str, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for name, pid in processes.items():
        with contextlib.suppress(OSError, ValueError):
            resident[name] = parse_stat(read_once(f"{proc}/{pid}/stat")).resident_pages * page
            threads[name] = _threads(proc, pid)
    disks = parse_diskstats((proc / "diskstats").read_text())
    return HostState(disks, threads, resident)


def _threads(proc: Path, pid: int) -> dict[tuple[str, int], tuple[int, int]]:
    found = {}
    for tid in os.listdir(f"{proc}/{pid}/task"):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError, ValueError):
            stat = parse_stat(read_once(f"{proc}/{pid}/task/{tid}/stat"))
            found[stat.name.decode(errors="replace"), int(tid)] = (stat.user, stat.system)
    return found


def difference(before: HostState, after: HostState, seconds: float) -> dict[str, Any]:
    """What happened in between: disks that did something; CPU seconds per process and thread name,
    with the busiest single thread of each name."""
    disks = {}
    for name, counters in after.disks.items():
        earlier = before.disks.get(name, {})
        delta = {key: value - earlier.get(key, 0) for key, value in counters.items()}
        delta[_IN_FLIGHT] = counters[_IN_FLIGHT]
        if delta["reads"] or delta["writes"]:
            disks[name] = delta
    processes = {}
    for name, threads in after.threads.items():
        groups: dict[str, dict[str, float]] = {}
        for (thread, tid), (user, system) in threads.items():
            was = before.threads.get(name, {}).get((thread, tid), (0, 0))
            spent = ((user - was[0]) / CLOCK_TICKS, (system - was[1]) / CLOCK_TICKS)
            if sum(spent) <= 0:
                continue
            group = groups.setdefault(
                thread, {"user": 0.0, "system": 0.0, "threads": 0, "busiest": 0.0}
            )
            group["user"] = round(group["user"] + spent[0], 4)
            group["system"] = round(group["system"] + spent[1], 4)
            group["threads"] += 1
            group["busiest"] = max(group["busiest"], round(sum(spent), 4))
        processes[name] = {"resident": after.resident.get(name, 0), "threads": groups}
    return {"seconds": seconds, "disks": disks, "processes": processes}
