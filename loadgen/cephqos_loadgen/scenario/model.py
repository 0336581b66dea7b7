"""What a scenario says, as frozen data: settings, pools, phases, and what starts and ends them."""

from dataclasses import dataclass, field
from typing import Literal

Event = Literal["recovery_started", "scrub_started"]
EVENTS: tuple[Event, ...] = ("recovery_started", "scrub_started")
Ending = Literal["done", "duration", "scrub_done", "recovery_done", "steady_state", "phase"]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: `section` is global, osd, mon, mgr or a daemon such as osd.0.

    `optional`: left out where the release does not know it.
    """

    section: str
    name: str
    value: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """Queue settings of the OSDs' block devices; None leaves one as it is."""

    scheduler: str | None = None
    nr_requests: int | None = None
    read_ahead_kb: int | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """RBD images of a pool, all alike; their names are `volume.0`, `volume.1` …"""

    count: int
    size: int
    prefill: bool = True


@dataclass(frozen=True, slots=True)
class Objects:
    """RADOS objects that a pool is filled with."""

    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool that the run makes.

    `fresh`: made anew for every repeat. `keep`: left behind, for a run that needs the same one.
    """

    name: str
    size: int | None = None
    pg_num: int = 32
    images: Images | None = None
    objects: Objects | None = None
    fresh: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A window of interval figures whose spread (sd / mean) and drift are small."""

    window: float
    dispersion: float


@dataclass(frozen=True, slots=True)
class Start:
    """When a phase starts: `delay` seconds behind a point in time, a phase or an event."""

    kind: Literal["at", "after", "with", "when"]
    phase: str = ""
    event: Event | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Until:
    """When a phase ends. `done`: when its own work is; nothing goes on beyond `at_most`."""

    kind: Ending
    at_most: float
    expected: float
    phase: str = ""
    steady: SteadyState | None = None


# What a cluster does by itself, and may move data or read disks in the middle of a run.
QUIET = ("balancer", "autoscaler", "scrubs")

# -- what phases do ------------------------------------------------------------------------------

FIO_ENGINES = ("rbd", "rados", "krbd", "nbd", "libaio", "io_uring")
RW = ("read", "write", "randread", "randwrite", "rw", "randrw")
PERCENTILES = ("50", "95", "99", "99.5", "99.9")
QEMU_CACHES = ("none", "writeback", "writethrough", "directsync", "unsafe")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Depths one after the other; a step that spreads or lags too much is the last."""

    depths: tuple[int, ...]
    dwell: float
    dispersion: float | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """The greatest depth, and so throughput, whose latency stays within `target` seconds."""

    target: float
    percentile: float | None  # None: the mean
    least: int
    most: int
    dwell: float


@dataclass(frozen=True, slots=True)
class Fio:
    """Client load: `clients` fio processes, which share out `volumes` images."""

    engine: str
    rw: str
    block_size: int
    depth: int
    pool: str = ""
    volumes: int = 1
    clients: int = 1
    path: str = ""
    size: int | None = None
    cache: str = "none"
    cpus: tuple[int, ...] = ()
    rate_iops: int | None = None
    read_percent: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    sweep: Sweep | None = None
    search: Search | None = None
    kind: str = "fio"


@dataclass(frozen=True, slots=True)
class RadosBench:
    """One `rados bench` per pool, started together; `in_flight` is shared out among them."""

    pools: tuple[str, ...]
    op: Literal["write", "seq", "rand"]
    object_size: int
    in_flight: int
    cpus: tuple[int, ...] = ()
    kind: str = "rados_bench"


@dataclass(frozen=True, slots=True)
class Prefill:
    """Objects written into a pool while the scenario runs."""

    pool: str
    objects: Objects
    kind: str = "prefill"


@dataclass(frozen=True, slots=True)
class Scrub:
    """Every PG of a pool is asked to scrub."""

    pool: str
    deep: bool = True
    kind: str = "scrub"


@dataclass(frozen=True, slots=True)
class OsdOut:
    """An OSD is marked down and out, and kept from coming back. `last`: the highest id."""

    osd: str = "last"
    kind: str = "osd_out"


@dataclass(frozen=True, slots=True)
class OsdIn:
    """The OSD comes back up and in."""

    osd: str = "last"
    kind: str = "osd_in"


@dataclass(frozen=True, slots=True)
class Flags:
    """Cluster flags set or cleared, such as norecover."""

    set: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()
    kind: str = "flags"


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until every PG is active (and clean, unless `clean` is false)."""

    clean: bool = True
    kind: str = "settle"


@dataclass(frozen=True, slots=True)
class Change:
    """Settings changed in mid-run; they are taken back at the end of the repeat."""

    settings: tuple[Option, ...] = ()
    kind: str = "change"


@dataclass(frozen=True, slots=True)
class OsdBench:
    """`ceph tell osd.N bench` on every OSD, one after the other."""

    total: int
    block_size: int
    kind: str = "osd_bench"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing: the cluster is watched."""

    kind: str = "wait"


@dataclass(frozen=True, slots=True)
class Pin:
    """OSDs pinned to CPUs by a strategy, until the end of the repeat; or only the plan of it."""

    strategy: Literal["default", "by_osd", "by_socket"]
    cpus_per_osd: int
    apply: bool = True
    kind: str = "pin"


Action = (
    Fio
    | RadosBench
    | Prefill
    | Scrub
    | OsdOut
    | OsdIn
    | Flags
    | Settle
    | Change
    | OsdBench
    | Wait
    | Pin
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One thing that goes on for a while, beside others or alone."""

    name: str
    action: Action
    start: Start
    until: Until
    # A fault in this load is what the scenario is about: it is recorded, the run goes on.
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class LabWish:
    """The cluster that a scenario wants when it has to make its own."""

    osds: int = 3
    osd_size: int = 4 << 30
    backing: str = "file"
    rotational: bool | None = None
    io_scheduler: str | None = None
    db_size: int | None = None
    objectstore: str = "bluestore"
    fs: str | None = None
    settings: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the matrix, with all that its repeats do."""

    name: str
    axes: tuple[tuple[str, str], ...]
    settings: tuple[Option, ...]
    client: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    devices: Device
    pools: tuple[Pool, ...]
    phases: tuple[Phase, ...]
    lab: LabWish


@dataclass(frozen=True, slots=True)
class Find:
    """After a matrix: the smallest value of an axis that keeps a share of the best throughput."""

    axis: str
    keeping: float
    phase: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run will do. Nothing in it changes once it exists."""

    scenario: str
    about: str
    source: str
    text: str = field(repr=False)
    scale: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    repeats: int = 1
    points: tuple[Point, ...] = ()
    find: Find | None = None
    quiet: tuple[str, ...] = ()  # of QUIET: off while the run goes on

    @property
    def runs(self) -> list[tuple[Point, int]]:
        """Every repeat in the order in which they run: all repeats of a point, then the next."""
        return [(point, n) for point in self.points for n in range(1, self.repeats + 1)]
