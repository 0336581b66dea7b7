"""Which processes used this host's disks between the start and the end of a phase.

The kernel counts for each process what it had read and written (/proc/PID/io). Reads count when
they reach a device, writes when they are handed over: at once with direct I/O, else as they become
dirty pages. What an ended process had asked for goes to the parent that waited for it. Kernel
threads are left out: they do what processes asked for, such as the work of a loop device.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cephqos_exporter.model import Host
from cephqos_exporter.procfs import KERNEL_THREAD, parse_stat, process_ids, read_once
from cephqos_exporter.sysfs import device_by_number, disks_under
from cephqos_loadgen.results.host import BytesAsked, DiskUsers

# Block devices that are no disks: memory, and what is reached over the network.
_NO_DISKS: Final = ("ram", "zram", "nbd", "rbd")
_INIT: Final = 1
_CEPH: Final = ("ceph-", "crimson-")
_HOST: Final = Host()


@dataclass(frozen=True, slots=True)
class DiskUser:
    """A process, and what it has asked for since it started."""

    name: str
    parent: int
    start: int  # in ticks since the boot: tells two processes of one number apart
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class DiskUserState:
    """All processes at one moment, by number. `own` are those of the run and its cluster."""

    processes: Mapping[int, DiskUser]
    own: frozenset[int]
    hidden: int


def read_disk_users(
    daemons: Iterable[int], proc: Path = Path("/proc"), run: int | None = None
) -> DiskUserState:
    """All processes now. The cluster's daemons, this process, and all that they started are own."""
    found: dict[int, DiskUser] = {}
    hidden = 0
    for pid in process_ids(proc):
        try:
            user = _read(proc, pid)
        except PermissionError:
            hidden += 1
        except (OSError, ValueError, LookupError):
            continue  # it ended
        else:
            found |= {pid: user} if user else {}
    roots = {*daemons, os.getpid() if run is None else run}
    return DiskUserState(found, frozenset(_below(found, roots)), hidden)


def _read(proc: Path, pid: int) -> DiskUser | None:
    """None of a thread of the kernel."""
    raw = read_once(f"{proc}/{pid}/stat")
    stat = parse_stat(raw)
    if stat.flags & KERNEL_THREAD:
        return None
    parent = int(raw[raw.rindex(b")") + 2 :].split()[1])
    counters = dict(
        line.split(b": ", 1) for line in read_once(f"{proc}/{pid}/io").splitlines() if b": " in line
    )
    name = stat.name.decode(errors="replace")
    read, written = int(counters[b"read_bytes"]), int(counters[b"write_bytes"])
    return DiskUser(name, parent, stat.start, read, written)


def _below(processes: Mapping[int, DiskUser], roots: Collection[int]) -> Iterator[int]:
    """The roots and all that descend from them."""
    for pid in processes:
        if any(above in roots for above in _line(processes, pid)):
            yield pid


def _line(processes: Mapping[int, DiskUser], pid: int) -> Iterator[int]:
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


def daemons_changed(before: DiskUserState, after: DiskUserState) -> bool:
    """Whether a daemon of Ceph started or ended in between: the run's cluster may have others."""
    first, last = (
        {(pid, user.start) for pid, user in state.processes.items() if user.name.startswith(_CEPH)}
        for state in (before, after)
    )
    return first != last


def users_between(
    before: DiskUserState, after: DiskUserState, osd_disks: Iterable[str], others: Iterable[str]
) -> DiskUsers | None:
    """What own and other processes asked for in between; None where no kernel counts it."""
    if not after.processes:
        return None
    grown, heirs = _grown(before, after)
    own = before.own | after.own
    strangers = {pid: asked for pid, asked in grown.items() if pid not in own | heirs}
    most = max(strangers, key=lambda pid: sum(strangers[pid]), default=None)
    return DiskUsers(
        tuple(osd_disks),
        tuple(others),
        own=_sum(asked for pid, asked in grown.items() if pid in own),
        others=_sum(strangers.values()),
        most="" if most is None or not sum(strangers[most]) else after.processes[most].name,
        hidden=max(before.hidden, after.hidden),
    )


def _sum(asked: Iterable[tuple[int, int]]) -> BytesAsked:
    found = list(asked)
    return BytesAsked(sum(read for read, _ in found), sum(written for _, written in found))


def _grown(
    before: DiskUserState, after: DiskUserState
) -> tuple[dict[int, tuple[int, int]], frozenset[int]]:
    """Read and written bytes by process, and the strangers who took over those of an own one that
    ended: what they asked for themselves cannot be told from it."""
    found = {pid: (user.read, user.written) for pid, user in after.processes.items()}
    heirs: set[int] = set()
    for pid, was in before.processes.items():
        now = after.processes.get(pid)
        line = (p for p in _line(before.processes, pid) if _lives_on(p, before, after))
        heir = pid if now and now.start == was.start else next(line, None)
        if heir is not None:
            read, written = found[heir]
            found[heir] = (read - was.read, written - was.written)
        if pid in before.own and heir not in before.own:
            heirs |= {_INIT} if heir is None else {_INIT, heir}
    positive = {pid: (max(0, r), max(0, w)) for pid, (r, w) in found.items()}
    return positive, frozenset(heirs)


def _lives_on(pid: int, before: DiskUserState, after: DiskUserState) -> bool:
    now = after.processes.get(pid)
    return now is not None and now.start == before.processes[pid].start
