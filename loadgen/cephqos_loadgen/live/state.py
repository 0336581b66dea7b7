"""The state of a running run. The run changes `Live`; the terminal and the metrics read it."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from cephqos_loadgen.engines.fio_output import DIRECTIONS, ClientStatus, IoTotals, add, since
from cephqos_loadgen.plan.planned import Phase

# The manager's statistics of recovery change in jumps of seconds: a rate is taken over this.
_RATE_SECONDS = 10.0
# Clients report every second. After this long without a report, the last figures are out of date.
_SILENT_SECONDS = 3.0
# The last status of a client comes milliseconds after the one before, and has bytes of I/Os that
# were counted before. No rate can be made of that, so it is counted with the interval before.
SHORTEST_SECONDS = 0.5


@dataclass(slots=True)
class LiveClient:
    """One client: what its processes of earlier phases did, and what the present one has done.

    Totals are by direction: read, write.
    """

    engine: str
    before: dict[str, IoTotals] = field(default_factory=dict)  # by processes of earlier phases
    last: ClientStatus | None = None  # the last status document of the present process
    interval_start: ClientStatus | None = None  # the last interval begins here; None: at the start
    interval: dict[str, IoTotals] = field(default_factory=dict)  # what it did in the last interval
    seconds: float = 0.0  # of that interval
    last_came: float = 0.0  # when the last status came

    def silent_seconds(self, now: float) -> float:
        """For how long no status came; 0 as long as that is usual."""
        silent = now - self.last_came if self.last_came else 0.0
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
    phases: dict[str, float] = field(default_factory=dict)  # when each that is running started


@dataclass(slots=True)
class Fill:
    """A pool that is being filled, in bytes of images or in objects."""

    started: float
    total: float = 0.0
    written: dict[str, float] = field(default_factory=dict)  # by image; objects are one item

    @property
    def done(self) -> float:
        return sum(self.written.values())

    def left(self, now: float) -> float | None:
        """Seconds to the end at the mean rate so far; None while nothing is written."""
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


class _Recovered(NamedTuple):
    time: float
    objects: int  # recovered up to then


class Live:
    """The state that the endpoint and the terminal read."""

    def __init__(self, where: RunPlace) -> None:
        self.where = where
        self.started = time.time()
        self.clients: dict[tuple[str, str], LiveClient] = {}  # by phase and name
        self.running: dict[str, Phase] = {}  # by name
        self.fills: dict[tuple[str, str], Fill] = {}  # by pool and unit ("bytes" or "objects")
        self.scrub: LiveScrub | None = None
        self.recovery: LiveRecovery | None = None
        self._recovered: deque[_Recovered] = deque()  # of the last _RATE_SECONDS
        self.doing = ""  # between phases: "making pool bench"
        self.eta: float | None = None  # seconds to the end of the run
        self.repeats = (0, 0)  # done, and of all points of the matrix
        # Of the present repeat: when it started (0: none is running), and how long it should take.
        self.repeat_started = 0.0
        self.repeat_expected = 0.0

    # -- phases and repeats ---------------------------------------------------------------------

    def new_repeat(self) -> None:
        """Forget the phases, fills, scrub and recovery of the repeat before."""
        self.where.phases, self.running, self.fills = {}, {}, {}
        self.scrub = self.recovery = None
        self._recovered.clear()

    def begin(self, phase: Phase) -> None:
        self.where.phases = {**self.where.phases, phase.name: time.time()}
        self.running[phase.name] = phase

    def end(self, phase: Phase) -> None:
        started = self.where.phases
        self.where.phases = {name: at for name, at in started.items() if name != phase.name}
        self.running.pop(phase.name, None)

    # -- clients --------------------------------------------------------------------------------

    def start_client(self, phase: str, client: str, engine: str) -> None:
        """A process of this client starts again from zero; what it did before stays counted."""
        live = self.clients.setdefault((phase, client), LiveClient(engine))
        if live.last is not None:
            live.before = {direction: live.total(direction) for direction in DIRECTIONS}
        live.last = live.interval_start = None
        live.interval, live.seconds = {}, 0.0

    def status(self, phase: str, client: str, status: ClientStatus) -> IoTotals:
        """A status document came. Returns what the client did since the one before."""
        live = self.clients[phase, client]
        last = live.last
        if last is None or not 0 <= status.runtime - last.runtime < SHORTEST_SECONDS:
            live.interval_start = last
        # The counts of a job are since its start. Only jobs that went on have a status before.
        before = status.counted_on(live.interval_start)
        parts: dict[str, list[IoTotals]] = {direction: [] for direction in DIRECTIONS}
        seconds: list[float] = []
        for name, job in status.jobs.items():
            earlier = before.get(name)
            seconds.append(job.runtime - earlier.runtime if earlier else job.runtime)
            for direction, totals in parts.items():
                done = job.totals[direction]
                totals.append(since(done, earlier.totals[direction]) if earlier else done)
        live.interval = {direction: add(totals) for direction, totals in parts.items()}
        live.seconds = max(seconds, default=0.0)
        live.last, live.last_came = status, time.time()
        return live.together

    def iops(self, phase: str) -> float:
        return sum(client.iops() for (name, _), client in self.clients.items() if name == phase)

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
        recovered = self._recovered
        if not recovered or now > recovered[-1].time:
            recovered.append(_Recovered(now, done))
        while len(recovered) > 2 and now - recovered[1].time >= _RATE_SECONDS:
            recovered.popleft()
        first, last = recovered[0], recovered[-1]
        seconds = last.time - first.time
        rate = max(0, last.objects - first.objects) / seconds if seconds > 0 else 0.0
        self.recovery = LiveRecovery(done, left, rate)
