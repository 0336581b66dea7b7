"""What others than the run had of a host while a phase ran: CPUs, and the OSDs' disks. Pure.

Disks do not say who uses them, and processes do not say which disk. Two figures bound what others
did on the OSDs' disks. They asked for so much in all, and what the other disks moved may be a part
of it. And the OSDs' disks moved so much more than the run itself asked for. The smaller of the two
counts, so it is never more than what others really did. A file system's journal below a lab's loop
devices is in the second only; a backup on a disk of its own is in neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.results.host import CpuUse, HostUse

_SECTOR_BYTES: Final = 512
# Devices whose bytes go to a cluster: they are asked for, but not of a disk.
_NETWORK: Final = ("nbd", "rbd")

# Both directions, as processes ask for bytes and as disks count sectors.
_DIRECTIONS: Final = (("read", "sectors_read"), ("written", "sectors_written"))


@dataclass(frozen=True, slots=True)
class CpuByOthers:
    """Shares of all CPU time of a host."""

    others: float  # by processes that are not of the run and its cluster
    stolen: float  # by the hypervisor
    throttled: float
    most: str  # the process of others with the most


def busy_cpu_seconds(cpu: CpuUse) -> float:
    return cpu.user_seconds + cpu.system_seconds + cpu.irq_seconds


def cpu_by_others(use: HostUse) -> CpuByOthers | None:
    """Of one phase; None where it was not recorded."""
    cpu, users = use.cpu, use.cpu_users
    if cpu is None or users is None:
        return None
    total = busy_cpu_seconds(cpu) + cpu.iowait_seconds + cpu.steal_seconds + cpu.idle_seconds
    if total <= 0:
        return None
    return CpuByOthers(
        users.others_seconds / total,
        cpu.steal_seconds / total,
        cpu.throttled_seconds / total,
        users.most,
    )


@dataclass(frozen=True, slots=True)
class DisksByOthers:
    """What others than the run had the OSDs' disks do, at least."""

    bytes_per_second: float
    share: float  # of all bytes that these disks moved
    time_share: float  # of all their time: how busy they were, shared out by bytes


def disks_by_others(use: HostUse) -> DisksByOthers | None:
    """Of one phase; None where it was not recorded, or no OSD has a disk here."""
    users = use.disk_users
    if users is None or not users.osd_disks or use.seconds <= 0:
        return None
    whole = by_others = 0
    for direction, sectors in _DIRECTIONS:
        moved = _moved(use, users.osd_disks, sectors)
        network = _moved(use, (n for n in use.disks if n.startswith(_NETWORK)), sectors)
        elsewhere = _moved(use, users.other_disks, sectors) + network
        own, others = (getattr(asked, direction) for asked in (users.own, users.others))
        unexplained = moved - max(0, own - network)
        whole += moved
        by_others += max(0, min(others - elsewhere, unexplained))
    busy_ms = sum(use.disks[name].busy_ms for name in users.osd_disks if name in use.disks)
    busy = min(1.0, busy_ms / 1e3 / (use.seconds * len(users.osd_disks)))
    share = by_others / whole if whole else 0.0
    return DisksByOthers(by_others / use.seconds, share, share * busy)


def words_of(use: HostUse, disks: DisksByOthers) -> str:
    """Its evidence: how much, on which disks, and by whom most."""
    users = use.disk_users
    if users is None:
        return ""
    most = f", most of it by {users.most}" if users.most else ""
    return (
        f"{disks.bytes_per_second / (1 << 20):.1f} MiB/s at least on"
        f" {', '.join(users.osd_disks)}{most}"
    )


def _moved(use: HostUse, names: Iterable[str], sectors: str) -> int:
    """Bytes of these disks together."""
    known = (use.disks[name] for name in names if name in use.disks)
    return _SECTOR_BYTES * sum(int(getattr(disk, sectors)) for disk in known)
