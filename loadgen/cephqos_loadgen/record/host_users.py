"""Which processes used this host's CPUs and disks between the start and the end of a phase.

The kernel counts for each process its CPU time, and what it had read and written (/proc/PID/io).
Reads count when they reach a device, writes when they are handed over: at once with direct I/O,
else as they become dirty pages. All of an ended process goes to the parent that waited for it.
Kernel threads are left out: they do what processes asked for, such as the work of a loop device.
Not psutil, whose start of a process moves when the clock is set, and which reads the arguments of
some: of a process that hangs in the kernel, for ever.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
        return self.ticks, self.read, self.written


Used = tuple[int, int, int]  # ticks, bytes read, bytes written
_NOTHING: Final[Used] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class HostUserState:
    """All processes at one moment, by number. `own` are those of the run and its cluster. Of
    `hidden` ones only the CPU time is known; `counted`: of any process the bytes are."""

    processes: Mapping[int, HostUser]
    own: frozenset[int]
    hidden: int
    counted: bool


def read_host_users(
    daemons: Iterable[int], proc: Path = Path("/proc"), run: int | None = None
) -> HostUserState:
    """All processes now. The cluster's daemons, this process, and all that they started are own."""
    users: dict[int, HostUser] = {}
    hidden, counted = 0, False
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
            counted = True
        except PermissionError:
            hidden += 1
        except (OSError, ValueError, LookupError):
            pass  # it ended, or the kernel does not count
        rest = raw[raw.rindex(b")") + 2 :].split()
        ticks = sum(map(int, rest[11:15]))  # user and system, its own and of its children
        name = stat.name.decode(errors="replace")
        users[pid] = HostUser(name, int(rest[1]), stat.start, ticks, read, written)
    roots = {*daemons, os.getpid() if run is None else run}
    return HostUserState(users, frozenset(_below(users, roots)), hidden, counted)


def _bytes_asked(proc: Path, pid: int) -> tuple[int, int]:
    lines = procfs.read_once(f"{proc}/{pid}/io").splitlines()
    counters = dict(line.split(b": ", 1) for line in lines if b": " in line)
    return int(counters[b"read_bytes"]), int(counters[b"write_bytes"])


def _below(processes: Mapping[int, HostUser], roots: Collection[int]) -> Iterator[int]:
    """The roots and all that descend from them."""
    for pid in processes:
        if any(above in roots for above in _line(processes, pid)):
            yield pid


def _line(processes: Mapping[int, HostUser], pid: int) -> Iterator[int]:
    """A process, its parent, and so on."""
    seen: set[int] = set()
    while pid in processes and pid not in seen:
        seen.add(pid)
        yield pid
        pid = processes[pid].parent


def disks_below(devices: Iterable[str], folder: Path | None, host: Host = _HOST) -> list[str]:
    """The disks on which these devices and the files of this folder end."""
    names = set(devices)
    if folder is not None:
        number = folder.stat().st_dev
        own = device_by_number(host.sys, f"{os.major(number)}:{os.minor(number)}")
        names |= {own} if own else set()  # none of an overlay, btrfs, tmpfs
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
    """Whether a daemon of Ceph started or ended in between: the run's cluster may have others."""
    first, last = (
        {(pid, user.start) for pid, user in state.processes.items() if user.name.startswith(_CEPH)}
        for state in (before, after)
    )
    return first != last


def users_between(
    before: HostUserState, after: HostUserState, osd_disks: Iterable[str], others: Iterable[str]
) -> tuple[CpuUsers, DiskUsers | None]:
    """What own and other processes used in between; no bytes where no kernel counts them."""
    grown, heirs = _grown(before, after)
    own_pids = before.own | after.own
    strangers = {pid: used for pid, used in grown.items() if pid not in own_pids | heirs}
    own = _sum(used for pid, used in grown.items() if pid in own_pids)
    foreign = _sum(strangers.values())
    names = {pid: user.name for pid, user in after.processes.items()}
    cpu = CpuUsers(
        own[0] / procfs.CLOCK_TICKS,
        foreign[0] / procfs.CLOCK_TICKS,
        _most({pid: ticks for pid, (ticks, _, _) in strangers.items()}, names),
    )
    if not after.counted:
        return cpu, None
    return cpu, DiskUsers(
        tuple(osd_disks),
        tuple(others),
        own=BytesAsked(*own[1:]),
        others=BytesAsked(*foreign[1:]),
        most=_most({pid: r + w for pid, (_, r, w) in strangers.items()}, names),
        hidden=max(before.hidden, after.hidden),
    )


def _most(used: Mapping[int, int], names: Mapping[int, str]) -> str:
    """The name of the process with the most; nothing where none used anything."""
    most = max(used, key=lambda pid: used[pid], default=None)
    return names[most] if most is not None and used[most] else ""


def _sum(used: Iterable[Used]) -> Used:
    ticks, read, written = _NOTHING
    for each in used:
        ticks, read, written = ticks + each[0], read + each[1], written + each[2]
    return ticks, read, written


def _grown(before: HostUserState, after: HostUserState) -> tuple[dict[int, Used], frozenset[int]]:
    """What each process used, and its heirs.

    The kernel adds what a process of ours used to its parent when it ends. If that parent is not
    ours, it is an heir: its own use and the inherited use cannot be separated.
    """
    grown = {pid: user.used for pid, user in after.processes.items()}
    heirs: set[int] = set()
    for pid, was in before.processes.items():
        heir = next((p for p in _line(before.processes, pid) if _lives_on(p, before, after)), None)
        if heir is not None:
            ticks, read, written = grown[heir]
            grown[heir] = (ticks - was.ticks, read - was.read, written - was.written)
        if pid in before.own and heir not in before.own:
            heirs |= {_INIT} if heir is None else {_INIT, heir}
    return {pid: _not_negative(used) for pid, used in grown.items()}, frozenset(heirs)


def _not_negative(used: Used) -> Used:
    return max(0, used[0]), max(0, used[1]), max(0, used[2])


def _lives_on(pid: int, before: HostUserState, after: HostUserState) -> bool:
    now = after.processes.get(pid)
    return now is not None and now.start == before.processes[pid].start
