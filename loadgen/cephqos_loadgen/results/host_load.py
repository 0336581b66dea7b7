"""What others than the run had of a host while a phase ran: CPUs, and the OSDs' disks. Pure.

Disks do not say who uses them, and processes do not say which disk they use. Two figures bound what
others did on the OSDs' disks, and the smaller of them counts, so it is never more than they did:

- the bytes that others asked for, less the bytes that the other disks moved;
- the bytes that the OSDs' disks moved, less the bytes that the run itself asked for.

A file system's journal below a lab's loop devices is in the second only. A backup on a disk of its
own is in neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.results.host import CpuUse, HostUse

_SECTOR_BYTES: Final = 512
# Devices whose bytes go to a cluster: they are asked for, but not of a disk.
_NETWORK: Final = ("nbd", "rbd")

# The fields of both directions: of BytesAsked, and of DiskUse.
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
    network_devices = [name for name in use.disks if name.startswith(_NETWORK)]
    moved = moved_by_others = 0  # bytes, on the OSDs' disks
    for direction, sectors in _DIRECTIONS:
        on_osd_disks = _moved_bytes(use, users.osd_disks, sectors)
        over_network = _moved_bytes(use, network_devices, sectors)
        elsewhere = _moved_bytes(use, users.other_disks, sectors) + over_network
        asked_by_run = getattr(users.own, direction)
        asked_by_others = getattr(users.others, direction)
        not_by_run = on_osd_disks - max(0, asked_by_run - over_network)
        moved += on_osd_disks
        moved_by_others += max(0, min(asked_by_others - elsewhere, not_by_run))
    busy_ms = sum(use.disks[name].busy_ms for name in users.osd_disks if name in use.disks)
    busy = min(1.0, busy_ms / 1e3 / (use.seconds * len(users.osd_disks)))
    share = moved_by_others / moved if moved else 0.0
    return DisksByOthers(moved_by_others / use.seconds, share, share * busy)


def words_of(use: HostUse, disks: DisksByOthers) -> str:
    """`12.5 MiB/s at least on sda, most of it by rsync`."""
    users = use.disk_users
    if users is None:
        return ""
    most = f", most of it by {users.most}" if users.most else ""
    return (
        f"{disks.bytes_per_second / (1 << 20):.1f} MiB/s at least on"
        f" {', '.join(users.osd_disks)}{most}"
    )


def _moved_bytes(use: HostUse, names: Iterable[str], sectors: str) -> int:
    """Bytes that these disks moved together; `sectors` is the field of the direction."""
    disks = (use.disks[name] for name in names if name in use.disks)
    return _SECTOR_BYTES * sum(int(getattr(disk, sectors)) for disk in disks)
