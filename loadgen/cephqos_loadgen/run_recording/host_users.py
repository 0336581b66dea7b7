"""Which processes used this host's CPUs and disks between the start and the end of a phase.

`read_host_users` reads all processes before and after, `users_between` compares. Own processes are
those of the run and its cluster; all others are foreign.

The kernel counts the CPU time of each process, and the bytes that it read and wrote (/proc/PID/io).
Reads count when they reach a device, writes when they are handed over: at once with direct I/O,
else as they become dirty pages. When a process ends, its parent inherits all that it used.
Kernel threads are left out: they do what processes asked for, such as the work of a loop device.
psutil is not used: its start time of a process moves when the clock is set, and it may read the
arguments of a process, which never returns if the process hangs in the kernel.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from cephqos_exporter import procfs
from cephqos_exporter.daemon import Host
from cephqos_exporter.sysfs import device_by_number, disks_under
from cephqos_loadgen.results.host import BytesAsked, CpuUsers, DiskUsers

# Block devices that are no disks: memory, and what is reached over the network.
_NO_DISKS: Final = ("ram", "zram", "nbd", "rbd")
_INIT: Final = 1
_CEPH: Final = ("ceph-", "crimson-")
_HOST: Final = Host()


@dataclass(frozen=True, slots=True)
class HostUser:
    """A process, and what it and the children that it waited for have used since they started."""

    name: str
    parent: int
    start: int  # in ticks since the boot: tells two processes of one number apart
    ticks: int
    read: int
    written: int

    @property
    def used(self) -> "Used":
        return Used(self.ticks, self.read, self.written)


class Used(NamedTuple):
    """What a process used."""

    ticks: int
    read: int  # bytes
    written: int


@dataclass(frozen=True, slots=True)
class HostUserState:
    """All processes at one moment, by number."""

    processes: Mapping[int, HostUser]
    own: frozenset[int]
    hidden: int  # how many do not show their bytes to this user
    counts_bytes: bool  # some process shows them: the kernel counts them


def read_host_users(
    daemons: Iterable[int], proc: Path = Path("/proc"), run: int | None = None
) -> HostUserState:
    """All processes now. The cluster's daemons, this process, and all that they started are own."""
    users: dict[int, HostUser] = {}
    hidden, counts_bytes = 0, False
    for pid in procfs.process_ids(proc):
        try:
            raw = procfs.read_once(f"{proc}/{pid}/stat")
            stat = procfs.parse_stat(raw)
        except (OSError, ValueError, LookupError):
            continue  # it ended
        if stat.flags & procfs.KERNEL_THREAD:
            continue
        read = written = 0
        try:
            read, written = _bytes_asked(proc, pid)
            counts_bytes = True
        except PermissionError:
            hidden += 1
        except (OSError, ValueError, LookupError):
            pass  # it ended, or the kernel does not count
        after_name = raw[raw.rindex(b")") + 2 :].split()  # from the third field on: proc(5)
        parent = int(after_name[1])
        ticks = sum(map(int, after_name[11:15]))  # user and system, its own and of its children
        name = stat.name.decode(errors="replace")
        users[pid] = HostUser(name, parent, stat.start, ticks, read, written)
    roots = {*daemons, os.getpid() if run is None else run}
    own = frozenset(pid for pid in users if any(it in roots for it in _ancestors(users, pid)))
    return HostUserState(users, own, hidden, counts_bytes)


def _bytes_asked(proc: Path, pid: int) -> tuple[int, int]:
    lines = procfs.read_once(f"{proc}/{pid}/io").splitlines()
    counters = dict(line.split(b": ", 1) for line in lines if b": " in line)
    return int(counters[b"read_bytes"]), int(counters[b"write_bytes"])


def _ancestors(processes: Mapping[int, HostUser], pid: int) -> Iterator[int]:
    """A process itself, its parent, and so on."""
    visited: set[int] = set()
    while pid in processes and pid not in visited:
        visited.add(pid)
        yield pid
        pid = processes[pid].parent


def disks_below(devices: Iterable[str], folder: Path | None, host: Host = _HOST) -> list[str]:
    """The disks on which these devices and the files of this folder end."""
    names = set(devices)
    if folder is not None:
        number = folder.stat().st_dev
        device = device_by_number(host.sys, f"{os.major(number)}:{os.minor(number)}")
        names |= {device} if device else set()  # an overlay, btrfs or tmpfs has none
    return sorted({disk for name in names for disk in disks_under(host, name)})


def other_disks(active: Iterable[str], osd_disks: Collection[str], host: Host = _HOST) -> list[str]:
    """Whole disks among the devices that did something, without those of the OSDs."""
    return sorted(
        name
        for name in active
        if name not in osd_disks
        and not name.startswith(_NO_DISKS)
        and disks_under(host, name) == (name,)
    )


def daemons_changed(before: HostUserState, after: HostUserState) -> bool:
    """Whether a daemon of Ceph started or ended in between: then the run's cluster may have other
    processes now."""
    first, last = (
        {(pid, user.start) for pid, user in state.processes.items() if user.name.startswith(_CEPH)}
        for state in (before, after)
    )
    return first != last


def users_between(
    before: HostUserState,
    after: HostUserState,
    osd_disks: Iterable[str],
    other_disks: Iterable[str],
) -> tuple[CpuUsers, DiskUsers | None]:
    """What own and foreign processes used in between; no bytes if the kernel does not count them.
    Foreign heirs of own processes (see `_used_between`) are in neither."""
    used, heirs = _used_between(before, after)
    own_pids = before.own | after.own
    own = _sum(used_by for pid, used_by in used.items() if pid in own_pids)
    foreign = {pid: used_by for pid, used_by in used.items() if pid not in own_pids | heirs}
    by_others = _sum(foreign.values())
    names = {pid: user.name for pid, user in after.processes.items()}
    cpu = CpuUsers(
        own_seconds=own.ticks / procfs.CLOCK_TICKS,
        others_seconds=by_others.ticks / procfs.CLOCK_TICKS,
        most=_name_of_largest({pid: u.ticks for pid, u in foreign.items()}, names),
    )
    if not after.counts_bytes:
        return cpu, None
    return cpu, DiskUsers(
        tuple(osd_disks),
        tuple(other_disks),
        own=BytesAsked(own.read, own.written),
        others=BytesAsked(by_others.read, by_others.written),
        most=_name_of_largest({pid: u.read + u.written for pid, u in foreign.items()}, names),
        hidden=max(before.hidden, after.hidden),
    )


def _name_of_largest(amounts: Mapping[int, int], names: Mapping[int, str]) -> str:
    """The name of the process with the largest amount; empty where all are 0."""
    pid = max(amounts, key=lambda pid: amounts[pid], default=None)
    return names[pid] if pid is not None and amounts[pid] else ""


def _sum(uses: Iterable[Used]) -> Used:
    ticks = read = written = 0
    for used in uses:
        ticks, read, written = ticks + used.ticks, read + used.read, written + used.written
    return Used(ticks, read, written)


def _used_between(
    before: HostUserState, after: HostUserState
) -> tuple[dict[int, Used], frozenset[int]]:
    """What each process used, and the heirs of own processes.

    When a process ends, the kernel adds what it used to its parent. If an own process ended and its
    parent is foreign, the parent is an heir: its own use and what it inherited cannot be separated.
    """
    totals = {pid: user.used for pid, user in after.processes.items()}
    heirs: set[int] = set()
    for pid, was in before.processes.items():
        # What the process had used before is now in its own total, or in that of an ancestor.
        ancestors = _ancestors(before.processes, pid)
        heir = next((p for p in ancestors if _lives_on(p, before, after)), None)
        if heir is not None:
            ticks, read, written = totals[heir]
            totals[heir] = Used(ticks - was.ticks, read - was.read, written - was.written)
        if pid in before.own and heir not in before.own:
            heirs |= {_INIT} if heir is None else {_INIT, heir}
    used = {pid: Used(*(max(0, amount) for amount in total)) for pid, total in totals.items()}
    return used, frozenset(heirs)


def _lives_on(pid: int, before: HostUserState, after: HostUserState) -> bool:
    now = after.processes.get(pid)
    return now is not None and now.start == before.processes[pid].start
