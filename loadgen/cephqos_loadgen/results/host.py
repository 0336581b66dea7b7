"""What a host's kernel counted while a phase ran."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Differences of /proc/diskstats over the phase, in its order; `in_flight` is as of its end."""

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
    """Which processes of this host used CPU time."""

    own_seconds: float  # the cluster's daemons, clients, and the recording
    others_seconds: float  # all other processes
    most: str  # the name of the other process that used most


@dataclass(frozen=True, slots=True)
class BytesAsked:
    """Bytes that processes read from and wrote to storage, by /proc/PID/io."""

    read: int
    written: int


@dataclass(frozen=True, slots=True)
class DiskUsers:
    """Who used this host's disks during a phase."""

    osd_disks: tuple[str, ...]  # below the OSDs' devices
    other_disks: tuple[str, ...]  # all others that did something
    own: BytesAsked  # by the cluster's daemons on this host, clients, and the recording
    others: BytesAsked  # by all other processes
    most: str  # the name of the other process that asked for most
    hidden: int  # processes that do not let this user see what they asked for


@dataclass(frozen=True, slots=True)
class HostUse:
    """What was used on this host in one phase, or in one step of it (see `step_name`)."""

    seconds: float
    cpu: CpuUse | None
    disks: Mapping[str, DiskUse]  # those that did something
    processes: Mapping[str, ProcessUse]  # OSDs, and clients of the phase
    disk_users: DiskUsers | None = None  # None: not recorded
    cpu_users: CpuUsers | None = None


def step_name(phase: str, depth: int) -> str:
    """The key in `host.json` of a step of a curve, or of a load with a ramp.

    It has spaces, which names of phases cannot have: no step is taken for a phase.
    """
    return f"{phase} depth {depth}"
