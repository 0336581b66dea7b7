"""What a host's kernel counted while a phase ran."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Differences of /proc/diskstats over the phase; `in_flight` is as of its end."""

    reads: int
    reads_merged: int
    sectors_read: int
    read_ms: int
    writes: int
    writes_merged: int
    sectors_written: int
    write_ms: int
    in_flight: int
    busy_ms: int
    queue_ms: int


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """CPU time of all threads of one name, and of the busiest of them."""

    user_seconds: float
    system_seconds: float
    threads: int
    busiest_seconds: float


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One OSD or client: threads by name."""

    resident_bytes: int
    threads: Mapping[str, ThreadUse]


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU time of the whole host, of all its CPUs together, from /proc/stat.

    `throttled_seconds`: heat slowed a core down, or a limit of the control group stopped tasks.
    """

    cpus: int
    user_seconds: float
    system_seconds: float
    iowait_seconds: float
    irq_seconds: float
    steal_seconds: float
    idle_seconds: float
    throttled_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CpuUsers:
    """CPU time of the cluster's daemons on this host, clients and recording (own), and of all other
    processes, `most` of it by the one of that name."""

    own_seconds: float
    others_seconds: float
    most: str


@dataclass(frozen=True, slots=True)
class BytesAsked:
    """What processes had block devices and file systems read and write, by /proc/PID/io."""

    read: int
    written: int


@dataclass(frozen=True, slots=True)
class DiskUsers:
    """Who used this host's disks during a phase.

    `osd_disks` lie below the OSDs' devices, `other_disks` are the rest of those that did something.
    `own` was asked for by the cluster's daemons on this host, by clients and by the recording;
    `others` by all other processes, `most` of it by the one of that name. `hidden` processes do not
    let this user see what they asked for.
    """

    osd_disks: tuple[str, ...]
    other_disks: tuple[str, ...]
    own: BytesAsked
    others: BytesAsked
    most: str
    hidden: int


@dataclass(frozen=True, slots=True)
class HostUse:
    """One phase: the host's CPUs, the disks that did something, OSDs and clients of the phase."""

    seconds: float
    cpu: CpuUse | None
    disks: Mapping[str, DiskUse]
    processes: Mapping[str, ProcessUse]
    disk_users: DiskUsers | None = None  # None: not recorded
    cpu_users: CpuUsers | None = None


def step_name(phase: str, depth: int) -> str:
    """The key in `host.json` of a step of a curve, or of a load with a ramp; no phase can be called
    so."""
    return f"{phase} depth {depth}"
