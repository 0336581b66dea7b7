"""The account of waiting: where the time of an OSD's client operations goes, each second once.

The whole is exact: what Ceph counts as the latency of completed client operations (`op_latency`).
So is its first division: before an operation was taken from the queue, and after
(`op_process_latency`). Each of the two is divided further by what the counters gained in the last
minute or so; only what Ceph does not count at all is divided by samples of operations. So the
shares add up to the whole, whatever the counters say. By how much their sums went beyond it is
counted (`excess`). What has no evidence is `unknown`.

docs/internals/account.md has the formula of each share, and how far off it was on real clusters.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos import waits
from cephqos_exporter.qos.places import Places
from cephqos_exporter.qos.waits import OTHER, SampledOperation


class State(StrEnum):
    """Where a second of an operation is spent. QUEUE and REPLICA also say by what or whom."""

    RECEIVE = "receive"  # until it is read from the network; the OSD may refuse to read on
    QUEUE = "queue"  # by: the class that is served instead, `limit`, or `cpu`
    BLOCKED = "blocked"  # by the state of its placement group or object
    CPU = "cpu"
    STORE_THROTTLE = "store_throttle"
    STORE_DEVICE = "store_device"
    STORE_COMMIT = "store_commit"  # in the key-value store
    STORE_CPU = "store_cpu"
    REPLICA = "replica"  # by: the OSD that is waited for
    NETWORK = "network"
    REPLY = "reply"
    UNKNOWN = "unknown"


LIMIT: Final = "limit"
STARVED: Final = "cpu"
NOT_KNOWN: Final = "unknown"

Place = tuple[State, str]  # and `by`, empty for most states
Shares = dict[Place, float]  # in any unit: only their ratios matter

_HALF_LIFE_SECONDS: Final = 30.0
_SAMPLES_HALF_LIFE_SECONDS: Final = 60.0  # they come every 10 to 33 s
# The mean commit of all transactions counts as much as ten samples. It is exact if all are alike;
# recovery's and clients' are not. Operations of one sample wait for the same batch of commits: a
# sample of many counts once, one of few for less.
_MEAN_COUNTS: Final = 10.0
_FEW: Final = 4.0


class Sums(NamedTuple):
    """What an OSD has counted since it started: seconds, and numbers of operations."""

    # Client operations of the OSD as primary.
    latency: float = 0.0
    ops: float = 0.0
    process: float = 0.0
    prepare: float = 0.0
    reads: float = 0.0
    read_process: float = 0.0
    read_prepare: float = 0.0
    refused: float = 0.0  # messages that the throttle of clients refused
    # Messages of all kinds.
    before_queue: float = 0.0
    queued: float = 0.0
    before_dequeue: float = 0.0
    dequeued: float = 0.0
    # Writes for other primaries.
    replica: float = 0.0
    replicas: float = 0.0
    # Transactions of all classes in the own store, and its reads.
    commit: float = 0.0
    commits: float = 0.0
    throttle: float = 0.0
    aio_wait: float = 0.0
    kv_queued: float = 0.0
    kv_committing: float = 0.0
    kv_flush: float = 0.0
    kv_sync: float = 0.0
    read_wait: float = 0.0
    read_waits: float = 0.0
    # Threads: those that take operations from the queue, and the one that commits.
    worker_run: float = 0.0
    worker_wait: float = 0.0
    kv_wait: float = 0.0
    # Normalised operations by class.
    client: float = 0.0
    recovery: float = 0.0
    best_effort: float = 0.0
    immediate: float = 0.0

    def gained_since(self, before: "Sums") -> "Sums":
        """What was added; a sum that went back was reset, and holds what was added since."""
        pairs = zip(self, before, strict=True)
        return Sums._make(new - old if new >= old else new for new, old in pairs)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else is known of an OSD; `store` and `threads` say whether their sums were read."""

    store: bool
    threads: bool
    limited: float = 0.0  # share of the queues whose first client operation waits for the limit
    ping: float = 0.0  # median heartbeat ping to its peers, seconds


# The places that an account has from its beginning; the others come when they are seen.
_CLIENT: Final = tuple((s, "") for s in State if s not in (State.QUEUE, State.REPLICA))
_REPLICA: Final = (
    *((State.QUEUE, ""), (State.CPU, ""), (State.STORE_THROTTLE, ""), (State.STORE_DEVICE, "")),
    *((State.STORE_COMMIT, ""), (State.STORE_CPU, ""), (State.UNKNOWN, "")),
)


@dataclass(slots=True)
class Account:
    """Follows one OSD; `client` and `replica` are seconds by place since the first look."""

    client: Shares = field(default_factory=lambda: dict.fromkeys(_CLIENT, 0.0))
    replica: Shares = field(default_factory=lambda: dict.fromkeys(_REPLICA, 0.0))
    excess: float = 0.0
    begun: bool = False  # whether anything was divided
    _last: Sums | None = None
    _time: float = 0.0
    _recent: Sums = field(default_factory=Sums)
    _sampled: Shares = field(default_factory=dict)
    _peers: Places[str] = field(default_factory=lambda: Places(4))
    _committing: float = 0.0  # of sampled operations after their dequeue, how many wait for
    _after_commit: float = 0.0  # the own commit, and how many for what comes later

    def sample(self, operations: Iterable[SampledOperation]) -> None:
        """Take in a sample: the client operations that are in places that Ceph does not count."""
        found: Shares = {}
        during = after = 0.0
        for op in operations:
            for wait, seconds in op.spent if op.kind == "client" else ():
                if seconds and wait.event == waits.COMMIT:
                    during += seconds / op.seconds
                elif seconds and wait.event in (waits.SUBOPS, waits.REPLY):
                    after += seconds / op.seconds
                for peer in wait.peers or ("",):
                    place = _PLACES.get(wait.event), peer
                    if place[0] is not None:
                        length = seconds / (len(wait.peers) or 1)
                        found[place[0], peer] = found.get((place[0], peer), 0.0) + length
        self._committing += during / (during + after + _FEW)
        self._after_commit += after / (during + after + _FEW)
        waited = {peer: s for (_, peer), s in found.items() if peer and peer != NOT_KNOWN}
        for peer in self._peers.add(waited):
            self.client.pop((State.REPLICA, peer), None)
            self._sampled.pop((State.REPLICA, peer), None)
        for (state, peer), seconds in found.items():
            shown = peer if peer in ("", NOT_KNOWN, *self._peers.shown) else OTHER
            self._sampled[state, shown] = self._sampled.get((state, shown), 0.0) + seconds

    def advance(self, sums: Sums, now: float, evidence: Evidence) -> None:
        """Divide what was gained since the last time."""
        last, length = self._last, now - self._time
        self._last, self._time = sums, now
        if last is None or length <= 0:
            return
        self.begun = True
        gain = sums.gained_since(last)
        kept = 0.5 ** (length / _HALF_LIFE_SECONDS)
        self._recent = recent = Sums._make(
            old * kept + new for old, new in zip(self._recent, gain, strict=True)
        )
        kept = 0.5 ** (length / _SAMPLES_HALF_LIFE_SECONDS)
        self._sampled = {p: s * kept for p, s in self._sampled.items() if s * kept > 1e-6}
        self._committing *= kept
        self._after_commit *= kept
        if not gain.latency and not gain.replica:
            return
        before = max(gain.latency - gain.process, 0.0)
        commits = self._committing, self._after_commit
        shares = _Division(recent, evidence, self._sampled, commits)
        _spend(self.client, before, shares.before_dequeue())
        _spend(self.client, gain.latency - before, shares.after_dequeue())
        _spend(self.replica, gain.replica, shares.of_replica_writes())
        if recent.latency > 0:
            self.excess += gain.latency * shares.excess / recent.latency


# The places of sampled operations that are not counted, or that others are compared with.
_PLACES: Final[Mapping[str, State]] = {
    waits.QUEUE: State.QUEUE,
    waits.BLOCKED: State.BLOCKED,
    waits.SUBOPS: State.REPLICA,
    waits.REPLY: State.REPLY,
    waits.UNKNOWN: State.UNKNOWN,
}


def _spend(account: Shares, seconds: float, shares: Shares) -> None:
    """Divide seconds by shares; without any, it is not known where they went."""
    whole = sum(shares.values())
    if whole <= 0:
        shares, whole = {(State.UNKNOWN, ""): 1.0}, 1.0
    for place, share in shares.items():
        if share > 0:
            account[place] = account.get(place, 0.0) + seconds * share / whole


class _Division:
    """How recent seconds divide. `excess`: by how much parts went beyond their whole."""

    def __init__(
        self, recent: Sums, evidence: Evidence, sampled: Shares, commits: tuple[float, float]
    ) -> None:
        self._recent = recent
        self._evidence = evidence
        self._sampled = sampled
        self._sampled_commits = commits
        self.excess = 0.0
        # In each transaction: the wait at the throttle is before the operation is handed on.
        each = 1.0 / (recent.commits or 1.0)
        self._throttle_each = recent.throttle * each
        self._commit_each = max(recent.commit - recent.throttle, 0.0) * each

    def before_dequeue(self) -> Shares:
        """Of the time until an operation is taken from the queue (the last time, if requeued)."""
        recent = self._recent
        whole = max(recent.latency - recent.process, 0.0)
        # While the throttle refuses clients, only they wait here.
        share = 1.0 if recent.refused else recent.ops / (recent.queued or 1.0)
        receive = self._part(recent.before_queue * min(share, 1.0), whole)
        rest = whole - receive
        # Words of a later release are words for delays: those that are known are never missing.
        uncounted = (State.QUEUE, State.BLOCKED, State.UNKNOWN)
        sampled = {state: self._sampled.get((state, ""), 0.0) for state in uncounted}
        all_sampled = sum(sampled.values())
        found: Shares = {(State.RECEIVE, ""): receive}
        for state in (State.BLOCKED, State.UNKNOWN):
            found[state, ""] = rest * sampled[state] / all_sampled if all_sampled else 0.0
        queued = whole - sum(found.values())
        for by, part in self._served().items():
            found[State.QUEUE, by] = queued * part
        return found

    def _served(self) -> Mapping[str, float]:
        """What the threads that serve the queue did in that time; the parts add up to 1."""
        recent, limited = self._recent, min(max(self._evidence.limited, 0.0), 1.0)
        busy = recent.worker_run + recent.worker_wait + recent.read_wait + recent.throttle
        starved = recent.worker_wait / busy if busy else 0.0
        classes = {
            CLIENT: recent.client,
            RECOVERY: recent.recovery,
            BEST_EFFORT: recent.best_effort,
            IMMEDIATE: recent.immediate,
        }
        done = sum(classes.values())
        if not done:
            classes, done = {NOT_KNOWN: 1.0}, 1.0
        rest = (1.0 - limited) * (1.0 - starved)
        served = {cls: rest * work / done for cls, work in classes.items()}
        return {LIMIT: limited, STARVED: (1.0 - limited) * starved, **served}

    def after_dequeue(self) -> Shares:
        """Of the time from then until all of it is done."""
        recent = self._recent
        whole = min(recent.process, recent.latency)
        reads = min(recent.read_process, whole)
        # A read that is finished by another thread has others to wait for: erasure-coded pools.
        elsewhere = max(reads - recent.read_prepare, 0.0)
        write_prepare = self._part(recent.prepare - recent.read_prepare, whole - reads)
        found = self._on_worker(reads - elsewhere + write_prepare)
        _add(found, (State.REPLICA, NOT_KNOWN), elsewhere)
        rest = whole - reads - write_prepare
        if not self._evidence.store:
            _add(found, (State.UNKNOWN, ""), rest)
            return found
        writes = max(recent.ops - recent.reads, 0.0)
        own = self._corrected(self._part(self._commit_each * writes, rest), rest)
        self._store(found, own)
        self._others(found, rest - own)
        return found

    def _corrected(self, own: float, whole: float) -> float:
        """The own commit as its mean says, as far as samples do not say otherwise."""
        during, after = self._sampled_commits
        if not whole:
            return own
        return whole * (_MEAN_COUNTS * own / whole + during) / (_MEAN_COUNTS + during + after)

    def _on_worker(self, whole: float) -> Shares:
        """Of what a thread of the queue spends on operations itself."""
        recent, evidence = self._recent, self._evidence
        device = throttle = 0.0
        if evidence.store:
            each = recent.read_wait / (recent.read_waits or 1.0)
            device = min(each * min(recent.read_waits, recent.ops), whole)
            writes = max(recent.ops - recent.reads, 0.0)
            throttle = min(self._throttle_each * writes, whole - device)
        rest = whole - device - throttle
        cpu = min(rest, recent.worker_run + recent.worker_wait) if evidence.threads else 0.0
        return {
            (State.STORE_DEVICE, ""): device,
            (State.STORE_THROTTLE, ""): throttle,
            (State.CPU, ""): cpu,
            (State.UNKNOWN, ""): rest - cpu,
        }

    def _store(self, found: Shares, whole: float) -> None:
        """Of the time from a transaction's submission to its commit."""
        recent = self._recent
        kv = recent.kv_queued + recent.kv_committing
        flush = min(recent.kv_flush / recent.kv_sync, 1.0) if recent.kv_sync else 0.0
        starved = min(recent.kv_wait / recent.kv_sync, 1.0) if recent.kv_sync else 0.0
        counted = max(recent.commit - recent.throttle, recent.aio_wait + kv) or 1.0
        _add(found, (State.STORE_CPU, ""), whole * starved * kv / counted)
        kv *= 1.0 - starved
        _add(found, (State.STORE_DEVICE, ""), whole * (recent.aio_wait + flush * kv) / counted)
        _add(found, (State.STORE_COMMIT, ""), whole * (1.0 - flush) * kv / counted)
        rest = counted - recent.aio_wait - recent.kv_queued - recent.kv_committing
        _add(found, (State.STORE_CPU, ""), whole * rest / counted)

    def _others(self, found: Shares, whole: float) -> None:
        """Of the time after the own commit."""
        after = {p: s for p, s in self._sampled.items() if p[0] in (State.REPLICA, State.REPLY)}
        if not after:
            after = {(State.REPLICA, NOT_KNOWN): 1.0}
        sampled = sum(after.values())
        # The own commit and the others' run side by side. What is left of a replica's time is
        # divided as all of it: one ping, and as long as such writes take here.
        recent, ping = self._recent, self._evidence.ping
        there = recent.replica / recent.replicas if recent.replicas else self._commit_each
        network = whole * ping / (ping + there) if ping > 0 else 0.0
        _add(found, (State.NETWORK, ""), network)
        for place, seconds in after.items():
            _add(found, place, (whole - network) * seconds / sampled)

    def of_replica_writes(self) -> Shares:
        """Of the time of writes for other primaries, from receipt to commit."""
        recent = self._recent
        clients = max(recent.latency - recent.process, 0.0)
        others = max(recent.dequeued - recent.ops, 0.0) or 1.0
        each = max(recent.before_dequeue - clients, 0.0) / others
        waited = min(each * recent.replicas, recent.replica)
        own = 0.0
        if self._evidence.store:
            own = min(self._commit_each * recent.replicas, recent.replica - waited)
        rest = recent.replica - waited - own
        throttle = min(self._throttle_each * recent.replicas, rest)
        rest -= throttle
        threads = recent.worker_run + recent.worker_wait if self._evidence.threads else 0.0
        found: Shares = {
            (State.QUEUE, ""): waited,
            (State.STORE_THROTTLE, ""): throttle,
            (State.CPU, ""): min(rest, threads),
            (State.UNKNOWN, ""): max(rest - threads, 0.0),
        }
        self._store(found, own)
        return found

    def _part(self, seconds: float, whole: float) -> float:
        """A part of a whole, which it cannot exceed."""
        whole = max(whole, 0.0)
        part = min(max(seconds, 0.0), whole)
        self.excess += max(seconds, 0.0) - part
        return part


def _add(shares: Shares, place: Place, seconds: float) -> None:
    shares[place] = shares.get(place, 0.0) + seconds
