"""How recent seconds of an OSD divide: each method divides one whole that Ceph counts."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos.account.samples import WaitSamples
from cephqos_exporter.qos.account.sums import NOT_KNOWN, Evidence, Shares, State, Sums
from cephqos_exporter.qos.waits import OTHER

LIMIT: Final = "limit"
STARVED: Final = "cpu"


class Division:
    """`excess`: by how much parts went beyond their whole."""

    def __init__(self, recent: Sums, evidence: Evidence, samples: WaitSamples) -> None:
        self.excess = 0.0
        self._recent, self._evidence, self._samples = recent, evidence, samples
        self._writes = max(recent.ops - recent.reads, 0.0)
        # In each transaction: the wait at the throttle is before the operation is handed on.
        each = 1.0 / (recent.commits or 1.0)
        self._throttle_each = recent.throttle * each
        self._commit_each = max(recent.commit - recent.throttle, 0.0) * each
        self._thread_seconds = recent.worker_run + recent.worker_wait if evidence.threads else 0.0

    def before_dequeue(self) -> Shares:
        """Of the time until an operation is taken from the queue (the last time, if requeued)."""
        recent = self._recent
        whole = max(recent.latency - recent.process, 0.0)
        # While the throttle refuses clients, only they wait here.
        clients = 1.0 if recent.refused else min(recent.ops / (recent.queued or 1.0), 1.0)
        receive = self._part(recent.before_queue * clients, whole)
        # Words of a later release are words for delays: those that are known are never missing.
        sampled = self._samples.of(State.QUEUE, State.BLOCKED, State.UNKNOWN)
        each = (whole - receive) / (sum(sampled.values()) or 1.0)
        shares = {place: each * s for place, s in sampled.items() if place[0] != State.QUEUE}
        shares[State.RECEIVE, ""] = receive
        queued = whole - sum(shares.values())
        return shares | {(State.QUEUE, by): queued * part for by, part in self._served().items()}

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
        if not done:  # work is counted more rarely than latency
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
        prepared = _together(
            self._on_worker(reads - elsewhere + write_prepare),
            {(State.REPLICA, OTHER): elsewhere},
        )
        rest = whole - reads - write_prepare
        if not self._evidence.store:
            return _together(prepared, {(State.UNKNOWN, ""): rest})
        mean = self._part(self._commit_each * self._writes, rest)
        commit = self._samples.corrected_commit(mean, rest)
        return _together(prepared, self._in_store(commit), self._after_commit(rest - commit))

    def _on_worker(self, whole: float) -> Shares:
        """Of what a thread of the queue spends on operations itself."""
        recent = self._recent
        device = throttle = 0.0
        if self._evidence.store:
            each = recent.read_wait / (recent.read_waits or 1.0)
            device = min(each * min(recent.read_waits, recent.ops), whole)
            throttle = min(self._throttle_each * self._writes, whole - device)
        rest = whole - device - throttle
        cpu = min(rest, self._thread_seconds)
        return {
            (State.STORE_DEVICE, ""): device,
            (State.STORE_THROTTLE, ""): throttle,
            (State.CPU, ""): cpu,
            (State.UNKNOWN, ""): rest - cpu,
        }

    def _in_store(self, whole: float) -> Shares:
        """Of the time from a transaction's submission to its commit."""
        recent, sync = self._recent, self._recent.kv_sync
        flush = min(recent.kv_flush / sync, 1.0) if sync else 0.0
        starved = min(recent.kv_wait / sync, 1.0) if sync else 0.0
        in_kv = recent.kv_queued + recent.kv_committing
        counted = max(recent.commit - recent.throttle, recent.aio_wait + in_kv) or 1.0
        running = in_kv * (1.0 - starved)
        each = whole / counted
        return {
            (State.STORE_DEVICE, ""): each * (recent.aio_wait + flush * running),
            (State.STORE_COMMIT, ""): each * (1.0 - flush) * running,
            (State.STORE_CPU, ""): each * (counted - recent.aio_wait - running),
        }

    def _after_commit(self, whole: float) -> Shares:
        """Of the time after the own commit. It and the replicas' run side by side.

        What is left of a replica's time is divided as all of it: one ping, and as long as such
        writes take here.
        """
        recent, ping = self._recent, self._evidence.ping
        there = recent.replica / recent.replicas if recent.replicas else self._commit_each
        network = whole * ping / (ping + there) if ping > 0 else 0.0
        sampled = self._samples.of(State.REPLICA, State.REPLY)
        sampled = sampled or {(State.REPLICA, OTHER): 1.0}
        each = (whole - network) / sum(sampled.values())
        return {(State.NETWORK, ""): network} | {p: each * s for p, s in sampled.items()}

    def of_replica_writes(self) -> Shares:
        """Of the time of writes for other primaries, from receipt to commit."""
        recent = self._recent
        clients = max(recent.latency - recent.process, 0.0)
        others = max(recent.dequeued - recent.ops, 0.0) or 1.0
        each = max(recent.before_dequeue - clients, 0.0) / others
        queued = min(each * recent.replicas, recent.replica)
        rest = recent.replica - queued
        commit = min(self._commit_each * recent.replicas, rest) if self._evidence.store else 0.0
        rest -= commit
        throttle = min(self._throttle_each * recent.replicas, rest)
        rest -= throttle
        return self._in_store(commit) | {
            (State.QUEUE, ""): queued,
            (State.STORE_THROTTLE, ""): throttle,
            (State.CPU, ""): min(rest, self._thread_seconds),
            (State.UNKNOWN, ""): max(rest - self._thread_seconds, 0.0),
        }

    def _part(self, seconds: float, whole: float) -> float:
        """A part of a whole, which it cannot exceed."""
        whole = max(whole, 0.0)
        part = min(max(seconds, 0.0), whole)
        self.excess += max(seconds, 0.0) - part
        return part


def _together(*parts: Shares) -> Shares:
    sums: Shares = defaultdict(float)
    for part in parts:
        for place, seconds in part.items():
            sums[place] += seconds
    return sums
