"""The state of a running run, for the terminal and for Prometheus."""

import time
from collections import deque
from dataclasses import dataclass, field

from cephqos_loadgen.engines.fio_output import DIRECTIONS, ClientStatus, IoTotals, add, since
from cephqos_loadgen.plan.planned import Phase

# Progress in the manager's statistics comes in lumps: rates are taken over this.
_RATE_SECONDS = 10.0
# Clients report every second. After this long their last figures no longer say what happens.
_SILENT_SECONDS = 3.0
# The last status of a client comes milliseconds after the one before, with bytes of a queue whose
# I/Os were counted before: that is no rate. Such an interval counts together with the one before.
SHORTEST_SECONDS = 0.5


@dataclass(slots=True)
class LiveClient:
    """One client: what its processes of earlier phases did, and what the present one has done."""

    engine: str
    before: dict[str, IoTotals] = field(default_factory=dict)
    last: ClientStatus | None = None
    since: ClientStatus | None = None  # where the present interval begins; None: at the start
    interval: dict[str, IoTotals] = field(default_factory=dict)
    seconds: float = 0.0
    taken: float = 0.0  # when the last status came

    def silent_seconds(self, now: float) -> float:
        """How long nothing came of it; 0 while that is as usual."""
        silent = now - self.taken if self.taken else 0.0
        return silent if silent > _SILENT_SECONDS else 0.0

    def iops(self) -> float:
        ios = sum(part.ios for part in self.interval.values())
        return ios / self.seconds if self.seconds else 0.0

    def bytes_per_second(self) -> float:
        size = sum(part.bytes for part in self.interval.values())
        return size / self.seconds if self.seconds else 0.0

    @property
    def together(self) -> IoTotals:
        """Both directions of the last interval."""
        return add(self.interval.values())

    def total(self, direction: str) -> IoTotals:
        """All that this client did so far."""
        last = self.last.of(direction) if self.last else IoTotals()
        return add((self.before.get(direction, IoTotals()), last))


@dataclass(slots=True)
class RunPlace:
    """Where the run is: the labels of its info series."""

    run: str = ""
    scenario: str = ""
    cluster: str = ""  # fsid
    point: str = ""
    repeat: int = 0
    phases: tuple[str, ...] = ()


@dataclass(slots=True)
class Fill:
    """A pool that is being filled: what is written of each of its images, or of its objects."""

    started: float
    total: float = 0.0
    written: dict[str, float] = field(default_factory=dict)

    @property
    def done(self) -> float:
        return sum(self.written.values())

    def left(self, now: float) -> float | None:
        """Seconds to the end at the rate so far; None while nothing is written."""
        rate = self.done / max(0.001, now - self.started)
        return max(0.0, self.total - self.done) / rate if rate > 0 else None


@dataclass(frozen=True, slots=True)
class LiveScrub:
    """Objects that the scrub of a phase has done and has to do, since it started."""

    phase: str
    done: int
    left: int
    started: float

    def seconds_left(self, now: float) -> float | None:
        rate = self.done / max(0.001, now - self.started)
        return self.left / rate if rate > 0 else None


@dataclass(frozen=True, slots=True)
class LiveRecovery:
    """Objects recovered so far, copies that are left, and objects per second."""

    done: int
    left: int
    rate: float

    @property
    def seconds_left(self) -> float | None:
        return self.left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class RunningPhase:
    """A phase that is running."""

    phase: Phase
    started: float


class Live:
    """The state that the endpoint and the terminal read."""

    def __init__(self, where: RunPlace) -> None:
        self.where = where
        self.started = time.time()
        self.clients: dict[tuple[str, str], LiveClient] = {}
        self.going: dict[str, RunningPhase] = {}
        self.fills: dict[tuple[str, str], Fill] = {}  # by pool and unit
        self.scrub: LiveScrub | None = None
        self.recovery: LiveRecovery | None = None
        self._recovered: deque[tuple[float, int]] = deque()
        self.doing = ""  # what is done between phases
        self.eta: float | None = None
        self.repeats = (0, 0)
        # of the present repeat: when it started, and how long it should take
        self.repeat_started = 0.0
        self.repeat_expected = 0.0

    # -- phases and repeats ---------------------------------------------------------------------

    def new_repeat(self) -> None:
        """Nothing of the repeat before it is left."""
        self.where.phases, self.going, self.fills = (), {}, {}
        self.scrub = self.recovery = None
        self._recovered.clear()

    def begin(self, phase: Phase) -> None:
        self.where.phases = (*self.where.phases, phase.name)
        self.going[phase.name] = RunningPhase(phase, time.time())

    def end(self, phase: Phase) -> None:
        self.where.phases = tuple(name for name in self.where.phases if name != phase.name)
        self.going.pop(phase.name, None)

    # -- clients --------------------------------------------------------------------------------

    def start_client(self, phase: str, client: str, engine: str) -> None:
        """A process of this client starts again from zero; what it did before stays counted."""
        figures = self.clients.setdefault((phase, client), LiveClient(engine))
        if figures.last is not None:
            figures.before = {direction: figures.total(direction) for direction in DIRECTIONS}
        figures.last = figures.since = None
        figures.interval, figures.seconds = {}, 0.0

    def status(self, phase: str, client: str, status: ClientStatus) -> IoTotals:
        """A status document came; what happened since the one before it."""
        figures = self.clients[phase, client]
        last = figures.last
        if last is None or not 0 <= status.runtime - last.runtime < SHORTEST_SECONDS:
            figures.since = last
        before = status.counted_on(figures.since)
        for direction in DIRECTIONS:
            figures.interval[direction] = add(
                since(job.totals[direction], before[name].totals[direction])
                if name in before
                else job.totals[direction]
                for name, job in status.jobs.items()
            )
        figures.seconds = max(
            (
                job.runtime - (before[name].runtime if name in before else 0.0)
                for name, job in status.jobs.items()
            ),
            default=0.0,
        )
        figures.last, figures.taken = status, time.time()
        return figures.together

    def iops(self, phase: str) -> float:
        return sum(f.iops() for (name, _), f in self.clients.items() if name == phase)

    # -- the cluster ----------------------------------------------------------------------------

    def will_fill(self, pool: str, unit: str, item: str, total: float) -> None:
        """An image (bytes) or a set of objects of this pool is going to be written."""
        fill = self.fills.setdefault((pool, unit), Fill(time.time()))
        fill.total += total
        fill.written[item] = 0.0

    def filled(self, pool: str, unit: str, item: str, written: float) -> None:
        if (pool, unit) in self.fills:
            self.fills[pool, unit].written[item] = written

    def fill_ended(self, pool: str, unit: str) -> None:
        self.fills.pop((pool, unit), None)

    def recovering(self, now: float, done: int, left: int) -> None:
        """Objects recovered so far and copies that are left, as of now."""
        seen = self._recovered
        if not seen or now > seen[-1][0]:
            seen.append((now, done))
        while len(seen) > 2 and now - seen[1][0] >= _RATE_SECONDS:
            seen.popleft()
        seconds = seen[-1][0] - seen[0][0]
        rate = max(0, seen[-1][1] - seen[0][1]) / seconds if seconds > 0 else 0.0
        self.recovery = LiveRecovery(done, left, rate)
