"""Run a cluster of the model: clients, recovery and scrub on OSDs with a policy."""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Final

from cephqos_base.judge import BOUNDS
from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos.cost_models import BandwidthModel

from .osd import Events, ModelOsd
from .parts import (
    CLIENT_PRIORITY,
    PUSH_BYTES,
    PUSH_PRIORITY,
    RECOVERY_PRIORITY,
    REPLICA_PRIORITY,
    SCRUB_BYTES,
    WPQ_RECOVERY_COST,
    WPQ_SCRUB_COST,
    Clients,
    Place,
    RecoveryWork,
    ScrubWork,
)
from .shard import Work

# Shards of placement groups are drawn from this many.
_GROUPS: Final = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a simulation gave. Seconds of recovery and scrub are None where it did not end."""

    seconds: float
    latencies: Sequence[float]  # of client operations, sorted
    recovery_seconds: float | None = None
    recovered: int = 0
    scrub_seconds: float | None = None
    violated: Sequence[int] = field(default=())  # seconds, of each OSD

    @property
    def iops(self) -> float:
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def latency(self, quantile: float) -> float | None:
        if not self.latencies:
            return None
        return self.latencies[min(len(self.latencies) - 1, int(quantile * len(self.latencies)))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What to simulate, for how long, and from which second on clients count."""

    place: Place
    clients: Clients | None = None
    backlog: RecoveryWork | None = None
    scrub: ScrubWork | None = None
    seconds: float = 60.0
    warm_up: float = 5.0
    until_done: bool = False  # ends when recovery and scrub have ended, at `seconds` at the latest
    seed: int = 1


@dataclass(slots=True)
class _Group:
    """A placement group that lacks objects."""

    source: int
    number: int
    left: int


def simulate(trial: Trial) -> Outcome:
    return _Run(trial).outcome()


class _Run:
    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.place = trial.place
        self.events = Events()
        self.random = Random(trial.seed)  # noqa: S311 - a simulation
        self.osds = [
            ModelOsd(trial.place, self.events, self.random) for _ in range(trial.place.osds)
        ]
        self._placements = list(trial.place.placements)
        self._weights = list(accumulate(trial.place.placements.values()))
        self.latencies = array("d")
        self.recovering = self.scrubbing = 0
        self.recovered = 0
        self.recovery_seconds: float | None = None
        self.scrub_seconds: float | None = None
        self.violated = [0] * trial.place.osds

    def outcome(self) -> Outcome:
        trial = self.trial
        if trial.clients:
            self._start_clients(trial.clients)
        if trial.backlog:
            self._start_recovery(trial.backlog)
        if trial.scrub:
            self._start_scrub(trial.scrub)
        self.events.at(1.0, self._look)
        busy = trial.until_done and bool(trial.backlog or trial.scrub)
        self.events.run(trial.seconds, lambda: busy and not self.recovering and not self.scrubbing)
        ended = self.events.now if busy else trial.seconds
        return Outcome(
            seconds=max(0.0, ended - trial.warm_up),
            latencies=sorted(self.latencies),
            recovery_seconds=self.recovery_seconds,
            recovered=self.recovered,
            scrub_seconds=self.scrub_seconds,
            violated=self.violated,
        )

    def _look(self) -> None:
        """Once a second: which OSDs owe clients what is reserved."""
        now = self.events.now
        for index, osd in enumerate(self.osds):
            behind = max(shard.lag(now) for shard in osd.shards)
            self.violated[index] += behind > BOUNDS.reservation_lag
        self.events.at(now + 1.0, self._look)

    # -- clients -----------------------------------------------------------------------------------

    def _start_clients(self, clients: Clients) -> None:
        if clients.depth:
            for _ in range(clients.depth):
                self.events.after(self.random.random() * 0.01, lambda: self._client_op(clients))
        else:
            self.events.after(self._gap(clients), lambda: self._arrival(clients))

    def _gap(self, clients: Clients) -> float:
        return self.random.expovariate(clients.rate)

    def _arrival(self, clients: Clients) -> None:
        self._client_op(clients)
        self.events.after(self._gap(clients), lambda: self._arrival(clients))

    def _client_op(self, clients: Clients) -> None:
        begun = self.events.now
        group = self.random.randrange(_GROUPS)
        first, *replicas = self._placement()
        write = self.random.random() >= clients.reads
        waits_for = self.place.copies if write else 1

        def one_done() -> None:
            nonlocal waits_for
            waits_for -= 1
            if waits_for:
                return
            ended = self.events.now + self.place.hop_seconds
            if begun >= self.trial.warm_up:
                self.latencies.append(ended - begun)
            if clients.depth:
                self.events.at(ended, lambda: self._client_op(clients))

        def to_replicas() -> None:
            for osd in replicas:
                self._send(osd, group, self._sub_write(clients.size, one_done))

        work = Work(
            work=CLIENT,
            size=clients.size,
            charged=clients.size if write else 0,
            write=write,
            done=one_done,
            started=to_replicas if write else None,
            priority=CLIENT_PRIORITY,
            wpq_cost=clients.size if write else 0,
            owner=CLIENT,
        )
        self._send(first, group, work)

    def _placement(self) -> Sequence[int]:
        """The OSDs of an operation, the primary first."""
        if self._placements:
            return self.random.choices(self._placements, cum_weights=self._weights)[0]
        first = self.random.randrange(len(self.osds))
        return [(first + copy) % len(self.osds) for copy in range(self.place.copies)]

    def _sub_write(self, size: int, done: Callable[[], None]) -> Work:
        return Work(
            work=IMMEDIATE,
            size=size,
            charged=0,
            write=True,
            done=lambda: self.events.after(self.place.hop_seconds, done),
            priority=REPLICA_PRIORITY,
            wpq_cost=size,
        )

    def _send(self, osd: int, group: int, work: Work) -> None:
        self.events.after(self.place.hop_seconds, lambda: self.osds[osd].take(work, group))

    # -- recovery ----------------------------------------------------------------------------------

    def _start_recovery(self, backlog: RecoveryWork) -> None:
        sources = self._sources(backlog)
        self.recovering = backlog.objects
        held = Counter(self.random.randrange(backlog.groups) for _ in range(backlog.objects))
        waiting = deque(
            _Group(sources[at], self.random.randrange(_GROUPS), left)
            for at, left in sorted(held.items())
        )
        for _ in range(min(backlog.at_once, len(waiting))):
            self._recover(waiting.popleft(), waiting, backlog)

    def _sources(self, backlog: RecoveryWork) -> Sequence[int]:
        """The OSD that pushes, of each placement group: in turn, as often as its share says."""
        others = [float(osd != backlog.target) for osd in range(len(self.osds))]
        shares, given = backlog.sources or others, [0] * len(self.osds)
        found = []
        for _ in range(backlog.groups):
            osd = max(range(len(shares)), key=lambda it: shares[it] / (given[it] + 1))
            given[osd] += 1
            found.append(osd)
        return found

    def _recover(self, group: "_Group", waiting: "deque[_Group]", backlog: RecoveryWork) -> None:
        """One object: read where the data is, pushed and written, answered to who pushed it."""
        charged = backlog.size + PUSH_BYTES

        def ended() -> None:
            group.left -= 1
            self.recovered += 1
            self.recovering -= 1
            if not self.recovering:
                self.recovery_seconds = self.events.now
            if group.left:
                self._recover(group, waiting, backlog)
            elif waiting:
                self._recover(waiting.popleft(), waiting, backlog)

        reply = self._message(backlog.work, 0, PUSH_BYTES, ended)
        push = self._message(
            backlog.work,
            backlog.size,
            charged,
            lambda: self._send(group.source, group.number, reply),
        )
        read = Work(
            work=backlog.work,
            size=backlog.size,
            charged=backlog.size,
            write=False,
            done=lambda: self._send(backlog.target, group.number, push),
            priority=RECOVERY_PRIORITY,
            wpq_cost=WPQ_RECOVERY_COST,
            owner=RECOVERY,
        )
        self.osds[group.source].take(read, group.number)

    def _message(self, work: str, size: int, charged: int, done: Callable[[], None]) -> Work:
        """Of recovery, from one OSD to another: it is written, or has nothing for the device."""
        return Work(
            work=work,
            size=size,
            charged=charged,
            write=size > 0,
            requests=1 if size else 0,
            done=done,
            priority=PUSH_PRIORITY,
            wpq_cost=charged,
        )

    # -- scrub -------------------------------------------------------------------------------------

    def _start_scrub(self, scrub: ScrubWork) -> None:
        chunks = max(1, -(-scrub.objects // scrub.chunk))
        self.scrubbing = chunks * len(self.osds)
        for osd in range(len(self.osds)):
            left = [chunks]
            for _ in range(min(scrub.slots, chunks)):
                self._scrub_chunk(osd, left, scrub)

    def _scrub_chunk(self, first: int, left: list[int], scrub: ScrubWork) -> None:
        if not left[0]:
            return
        left[0] -= 1
        group = self.random.randrange(_GROUPS)
        waits_for = self.place.copies

        def one_done() -> None:
            nonlocal waits_for
            waits_for -= 1
            if waits_for:
                return
            self.scrubbing -= 1
            if not self.scrubbing:
                self.scrub_seconds = self.events.now
            self._scrub_chunk(first, left, scrub)

        for replica in range(self.place.copies):
            self._send((first + replica) % len(self.osds), group, self._chunk(scrub, one_done))

    def _chunk(self, scrub: ScrubWork, done: Callable[[], None]) -> Work:
        qos = self.place.qos
        per_io = qos.cost.cost_per_io if qos and isinstance(qos.cost, BandwidthModel) else 0.0
        of_object = per_io + (scrub.size if scrub.deep else 0)
        return Work(
            work=BEST_EFFORT,
            size=scrub.chunk * scrub.size if scrub.deep else 0,
            requests=scrub.chunk if scrub.deep else 1,
            charged=SCRUB_BYTES + scrub.chunk * of_object,
            write=False,
            done=done,
            priority=scrub.priority,
            wpq_cost=WPQ_SCRUB_COST,
            owner=BEST_EFFORT,
        )
