"""What `cephqos top` shows, as plain data. `cephqos top --json` writes the same fields, so their
names are for users, too (docs/operate/top.md).

Rates and reservations are in normalised ops/s, times in seconds. None: not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from cephqos_base.tenant_shares import TenantShare
from cephqos_base.time_left import TimeLeft
from cephqos_loadgen.top.figures import Values

# violated: the recording rules say so. behind: gets less than its reservation while requests wait,
# seen at this moment only (without rules). kept: gets its reservation, or needs less. idle: does
# nothing. unreserved: works without a reservation. The worst comes first.
State = Literal["violated", "behind", "kept", "idle", "unreserved", "unknown"]
STATES: Final[tuple[State, ...]] = get_args(State)


def _ratio(attained: float | None, reserved: float | None) -> float | None:
    return None if attained is None or not reserved else attained / reserved


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Latency of one kind of operation."""

    who: str  # who measured it: osd, or client (the load generator)
    op: str
    ops_per_second: float
    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdClass:
    """A class of work on one OSD."""

    name: str
    state: State
    attained: float | None
    reserved: float | None
    limit: float | None
    queued: float | None  # requests in the scheduler's queue
    lag: float | None  # how far the head of the queue is past the time its reservation fell due
    shortfall: float | None  # what it lacks of its reservation
    cause: str = ""
    by: str = ""  # the OSD, class or limit that is to blame

    @property
    def attainment(self) -> float | None:
        """Attained as a share of the reservation."""
        return _ratio(self.attained, self.reserved)

    @property
    def badness(self) -> tuple[float, ...]:
        """Sorts the worst first: by state, then shortfall, lag, queue."""
        short = self.shortfall if self.state in ("violated", "behind") else 0.0
        figures = (short, self.lag, self.queued)
        return (STATES.index(self.state), *(-(figure or 0.0) for figure in figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdState:
    """One OSD with its classes, the worst one first."""

    name: str
    up: bool  # it answers the exporter
    reason: str  # why not
    scheduler: str
    profile: str
    capacity: float | None
    delivered: float | None
    blocked: float | None  # operations
    classes: tuple[OsdClass, ...]

    @property
    def judged(self) -> bool:
        """Whether reservation and attained work are known for at least one class."""
        return self.up and any(osd_class.attainment is not None for osd_class in self.classes)

    @property
    def worst(self) -> OsdClass | None:
        return self.classes[0] if self.classes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTotal:
    """A class of work, summed over all OSDs."""

    name: str
    attained: float | None
    reserved: float | None
    violated_osds: int
    behind_osds: int

    @property
    def attainment(self) -> float | None:
        return _ratio(self.attained, self.reserved)


@dataclass(frozen=True, slots=True)
class RecoveryState:
    pool: str
    degraded: float
    misplaced: float
    unfound: float
    objects_per_second: float | None
    bytes_per_second: float | None
    eta: float | None


@dataclass(frozen=True, slots=True)
class ScrubState:
    pool: str
    level: str
    running_pgs: float
    objects_done: float | None
    objects_left: float | None
    objects_per_second: float | None
    eta: float | None  # likely
    left: TimeLeft | None  # with its interval, where that is known
    overdue_pgs: float | None


@dataclass(frozen=True, slots=True)
class BusyThread:
    osd: str
    group: str
    cpu: float  # share of one CPU that the busiest thread of the group has


@dataclass(frozen=True, slots=True)
class BusyDevice:
    osd: str
    device: str
    busy: float  # share of the time with a request in progress
    latency: float | None
    depth: float | None


@dataclass(frozen=True, slots=True)
class OsdTenant:
    """One of the largest tenants of an OSD, and its shares of the work and of the waiting there."""

    osd: str
    name: str
    working: TenantShare
    waiting: TenantShare


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """A firing alert; alerts that differ only in the OSD are one."""

    name: str
    severity: str
    osds: tuple[str, ...]
    what: str  # the class, flag or SLO
    cause: str
    by: str
    since: float | None


@dataclass(frozen=True, slots=True)
class RunState:
    """A test run that is going on."""

    name: str
    scenario: str
    point: str
    repeat: str
    phase: str
    repeats_done: float | None
    repeats: float | None
    remaining: float | None


@dataclass(frozen=True, slots=True)
class OsdDetail:
    """What is known of an opened OSD beyond the list."""

    name: str
    latency: tuple[Percentiles, ...] = ()
    in_progress: float | None = None
    oldest: float | None = None
    throttles: Mapping[str, float] = field(default_factory=dict)
    violated_seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that cannot be shown, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopSamples:
    """What a source fetched."""

    time: float
    values: Mapping[str, Values]  # by the name of the figure in figures.FIGURES
    alerts: tuple[Mapping[str, str], ...] = ()  # labels of firing alerts, and `since`
    rules: bool  # whether the recording rules are there
    with_rates: bool = True  # False while there are too few scrapes for them
    from_prometheus: bool = True
    troubles: tuple[Missing, ...] = ()  # what it could not get

    def of(self, figure: str) -> Values:
        return self.values.get(figure, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One cluster at one time."""

    time: float
    clusters: tuple[str, ...]  # all that the source knows
    cluster: str  # the one that is shown
    rules: bool  # as in TopSamples
    with_rates: bool
    classes: tuple[ClassTotal, ...]
    osds: tuple[OsdState, ...]
    latency: tuple[Percentiles, ...]
    recovery: tuple[RecoveryState, ...]
    scrubs: tuple[ScrubState, ...]
    threads: tuple[BusyThread, ...]
    devices: tuple[BusyDevice, ...]
    alerts: tuple[FiringAlert, ...]
    flags: tuple[str, ...]
    runs: tuple[RunState, ...]
    missing: tuple[Missing, ...]
    detail: OsdDetail | None = None  # while an OSD is opened
    recovery_end: TimeLeft | None = None  # not known
    tenants: tuple[OsdTenant, ...] | None = None  # while they are asked for
