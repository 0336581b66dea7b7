"""Where operations wait: read from their events, added up by sampling.

The list of operations in progress (`ops`) is a sample of what all operations do: each waits for one
thing. The number that wait for it, times the time between two samples, estimates the time that
operations waited for it (Little's law). So an operation need not finish to count.

    in_progress(ops, 10.0, not_understood)   a sample of operations in progress
    completed(ops, not_understood)           a record of completed operations
    WaitMeter().add(sample)                  the sums by kind, event and peer
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from cephqos_exporter.not_understood import MISREAD, NotUnderstood
from cephqos_exporter.qos.largest import Largest

OTHER: Final = "other"
CLIENT: Final = "client"
REPLICA: Final = "replica"

# Kinds of operations, by how their description begins.
_KINDS: Final = (
    (CLIENT, re.compile(r"osd_op\(")),
    (REPLICA, re.compile(r"osd_repop")),
    ("ec_read", re.compile(r"MOSDECSubOpRead\(")),
    ("ec", re.compile(r"MOSDECSub")),
    (
        "recovery",
        re.compile(
            r"MOSDPG(Push|Pull|Scan|Backfill|Recovery)|pg_(scan|backfill)|backfill_remove\("
        ),
    ),
    ("scrub", re.compile(r"[^(]*scrub", re.IGNORECASE)),
    (OTHER, re.compile(r"osd_(backoff|pg_create)\b|pg_(update_log_missing|pct)\w*\(")),
)
_NAME: Final = re.compile(r"\w*")  # of an operation; what follows may be up to a client

RECEIVE: Final = "receive"
QUEUE: Final = "queue"
EXECUTE: Final = "execute"
BLOCKED: Final = "blocked"
COMMIT: Final = "commit"
SUBOPS: Final = "subops"
REPLY: Final = "reply"
UNKNOWN: Final = "unknown"

# What an operation waits for after its latest event. `started` depends on the operation.
_AFTER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("initiated", "header_read", "throttled", "all_read", "dispatched"), RECEIVE),
    "queued_for_pg": QUEUE,
    "reached_pg": EXECUTE,
    "started": EXECUTE,
    # FileStore's journal.
    **dict.fromkeys(
        (
            "commit_queued_for_journal_write",
            "write_thread_in_journal_buffer",
            "journaled_completion_queued",
        ),
        COMMIT,
    ),
    "op_commit": COMMIT,  # without replicas
    **dict.fromkeys(("sub_op_started", "sub_op_applied", "op_applied"), COMMIT),
    "sub_op_committed": REPLY,
    **dict.fromkeys(("commit_sent", "sub_op_done", "done"), REPLY),
}

# Events before a write is sent to its replicas. What came before the latest of them tells nothing.
_UNSENT: Final = frozenset(e for e, wait in _AFTER.items() if wait in (RECEIVE, QUEUE, EXECUTE))
# Bounds of what is read of an operation: a real one has about 15 events.
_MOST_EVENTS: Final = 100
_EVENT_TEXT: Final = 200  # characters
# A write was sent to replicas: the numbers of their OSDs follow, with commas.
_SENT: Final = "waiting for subops from "
_PEERS_TEXT: Final = 100  # characters: there are as many as a pool has replicas
# A replica has answered; some releases do not say which.
_ANSWERED: Final = re.compile(r"sub_op_(?:commit|applied)_rec(?: from (?:osd\.)?(\d+))?")
# An operation on a placement group of an erasure-coded pool (2.1s0). Only the beginning is matched:
# the name of an object follows, and a client chooses it.
_EC_GROUP: Final = re.compile(r"osd_op\(\S+ \d+\.[0-9a-f]+s\d+ ")
# A write, by the operation's flags before the epoch of its map. Only the end is matched.
_WRITES: Final = re.compile(r"\bwrite\b\S* e\d+\)\Z")
_FLAGS_TEXT: Final = 200  # characters

UNKNOWN_PEER: Final = "unknown"
# After these events the wait depends on the description of the operation.
_NEED_DESCRIPTION: Final = ("started", "sub_op_committed")


class OperationWait(NamedTuple):
    """What an operation waits for."""

    kind: str  # of the operation: client, replica, ec_read, ec, recovery, scrub, other
    event: str  # queue, blocked, subops ...
    peers: tuple[str, ...] = ()  # the OSDs that it may be waiting for: osd.2


class SampledOperations(NamedTuple):
    """Operations of a sample, each of which waited for the same things for the same times.

    One in progress waits for one thing, and stands for the time between two samples. A completed
    one stands for the time that it took, from event to event. Where its wait was not understood,
    the event is `unknown`.
    """

    kind: str
    spent: Sequence[tuple[OperationWait, float]]  # seconds of each operation
    descriptions: Sequence[str]  # one for each operation

    @property
    def seconds(self) -> float:
        """The seconds that each operation stands for."""
        return sum(seconds for _, seconds in self.spent)


def in_progress(
    ops: Iterable[Mapping[str, Any]], length: float, not_understood: NotUnderstood
) -> Sequence[SampledOperations]:
    """A list of operations in progress, which stands for the `length` seconds since the last list.

    Operations of unknown kinds are left out.
    """
    descriptions: dict[OperationWait, list[str]] = {}

    def read(kind: str, op: Mapping[str, Any]) -> None:
        events = op["type_data"]["events"]
        latest = _latest(event["event"] for event in reversed(events))
        wait = _wait_by_events(kind, latest)
        if wait is None:
            wait = _wait_by_description(kind, op, latest[0], not_understood)
        descriptions.setdefault(wait, []).append(op["description"])

    _read_each(ops, read, not_understood)
    return [
        SampledOperations(wait.kind, spent=((wait, length),), descriptions=alike)
        for wait, alike in descriptions.items()
    ]


def completed(
    ops: Iterable[Mapping[str, Any]], not_understood: NotUnderstood
) -> Sequence[SampledOperations]:
    """A record of completed operations; those of unknown kinds are left out."""
    operations: list[SampledOperations] = []

    def read(kind: str, op: Mapping[str, Any]) -> None:
        spent = _spent(kind, op, not_understood)
        operations.append(SampledOperations(kind, spent, [op["description"]]))

    _read_each(ops, read, not_understood)
    return operations


def _read_each(
    ops: Iterable[Mapping[str, Any]],
    read: Callable[[str, Mapping[str, Any]], None],
    not_understood: NotUnderstood,
) -> None:
    """Read the operations of known kinds. One of another form is left out alone, and counted."""
    for op in ops:
        try:
            kind = kind_of(op["description"], not_understood)
            if kind is not None:
                read(kind, op)
        except MISREAD as exc:
            not_understood.add("operation", repr(exc))


def _spent(
    kind: str, op: Mapping[str, Any], not_understood: NotUnderstood
) -> Sequence[tuple[OperationWait, float]]:
    """What a completed operation waited for and how long, by the times of its events.

    The times and not the durations, which some releases print wrong.
    """
    events = op["type_data"]["events"][:_MOST_EVENTS]
    spent = []
    began: datetime | None = None
    names = tuple([event["event"][:_EVENT_TEXT] for event in events])
    for wait, first, end in _waits_between(kind, names):
        began = began or datetime.fromisoformat(events[first]["time"])
        ended = datetime.fromisoformat(events[end]["time"])
        if ended > began:
            if wait is None:
                wait = _wait_by_description(kind, op, events[first]["event"], not_understood)
            spent.append((wait, (ended - began).total_seconds()))
        began = ended
    return spent


class _WaitStretch(NamedTuple):
    """What an operation waited for between two of its events, by their positions."""

    wait: OperationWait | None  # None: needs the description of the operation
    first: int
    end: int


@lru_cache(maxsize=256)  # the operations of a record are much alike
def _waits_between(kind: str, names: tuple[str, ...]) -> Sequence[_WaitStretch]:
    """What an operation with these events waited for; equal waits in a row are one stretch."""
    stretches: list[_WaitStretch] = []
    for at in range(len(names) - 1):
        wait = _wait_by_events(kind, _latest(reversed(names[: at + 1])))
        same_as_before = wait is not None and stretches and stretches[-1].wait == wait
        first = stretches.pop().first if same_as_before else at
        stretches.append(_WaitStretch(wait, first, at + 1))
    return stretches


def kind_of(description: str, not_understood: NotUnderstood) -> str | None:
    """The kind of an operation; None if it is not known."""
    for kind, start in _KINDS:  # a generator takes twice as long
        if start.match(description):
            return kind
    match = _NAME.match(description)
    not_understood.add("operation", match[0] if match else "")
    return None


def _latest(backwards: Iterable[str]) -> tuple[str, ...]:
    """The events that tell what an operation waits for, the latest first.

    Only the latest one; for a write that was sent to replicas, all back to the event `_SENT`.
    """
    names: list[str] = []
    for name in islice(backwards, _MOST_EVENTS):
        names.append(name[:_EVENT_TEXT])
        if name.startswith(_SENT):
            return tuple(names)
        if name in _UNSENT:
            break
    return tuple(names[:1]) or ("no event",)


@lru_cache(maxsize=1024)  # many were sent to the same replicas
def _wait_by_events(kind: str, latest: tuple[str, ...]) -> OperationWait | None:
    """What an operation waits for; None if its latest events alone do not tell."""
    if latest[-1].startswith(_SENT):
        return _replicated(kind, latest[-1].removeprefix(_SENT), latest[:-1])
    after = None if latest[0] in _NEED_DESCRIPTION else _AFTER.get(latest[0])
    return OperationWait(kind, after) if after else None


def _wait_by_description(
    kind: str, op: Mapping[str, Any], last: str, not_understood: NotUnderstood
) -> OperationWait:
    """What an operation waits for, where its events alone do not tell."""
    if last in _NEED_DESCRIPTION:
        description: str = op["description"]
        if kind == CLIENT and _EC_GROUP.match(description):
            if last != "started" or "+read" in description:
                return OperationWait(kind, SUBOPS, (UNKNOWN_PEER,))  # Ceph does not say from which
        # A write that sends nothing to replicas, or comes from a primary, has nothing else to do.
        elif last == "started" and (kind != CLIENT or _WRITES.search(description[-_FLAGS_TEXT:])):
            return OperationWait(kind, COMMIT)
    after = _AFTER.get(last) or _delayed(last, op["type_data"])
    if after is None:
        not_understood.add("event", last)
    return OperationWait(kind, after or UNKNOWN)


def _delayed(last: str, data: Mapping[str, Any]) -> str | None:
    """BLOCKED if the last event is a delay, else None.

    Releases word delays differently, but the flag point of a delayed operation is its last event.
    """
    if "wait" in last or last in ("delayed", data.get("flag_point")):
        return BLOCKED
    return None


def _replicated(kind: str, peers: str, later: Sequence[str]) -> OperationWait:
    """What a write waits for after it was sent to `peers`; `later`: the events since then."""
    if "commit_sent" in later or "done" in later:
        return OperationWait(kind, REPLY)
    if "op_commit" not in later:
        return OperationWait(kind, COMMIT)
    answers = [match for match in map(_ANSWERED.match, later) if match]
    waiting = peers[:_PEERS_TEXT].split(",")
    if len(answers) >= len(waiting):
        return OperationWait(kind, REPLY)
    answered = {match[1] for match in answers}
    missing = tuple(f"osd.{peer}" for peer in waiting if peer not in answered)
    return OperationWait(kind, SUBOPS, missing)


class WaitMeter:
    """Adds up where the operations of one OSD wait, from samples of those in progress."""

    # Of the OSDs that operations wait for, the worst `peers` are named; the rest is `other`.
    def __init__(self, *, peers: int = 4) -> None:
        self.seconds: dict[tuple[str, str, str], float] = {}  # by kind, event, peer
        self.sampled: dict[str, int] = {}  # by kind
        self._worst: Largest[str] = Largest(peers)

    def add(self, operations: Iterable[SampledOperations]) -> None:
        """Take in a sample of operations in progress, without waits that were not understood."""
        waits: list[tuple[OperationWait, float]] = []
        by_peer: dict[str, float] = {}
        for alike in operations:
            number = len(alike.descriptions)
            for wait, seconds_of_each in alike.spent:
                if wait.event == UNKNOWN:
                    continue
                self.sampled[wait.kind] = self.sampled.get(wait.kind, 0) + number
                seconds_per_peer = number * seconds_of_each / (len(wait.peers) or 1)
                waits.append((wait, seconds_per_peer))
                for peer in wait.peers:
                    by_peer[peer] = by_peer.get(peer, 0.0) + seconds_per_peer
        for peer in self._worst.add(by_peer):
            self._drop(peer)
        for wait, seconds in waits:
            for peer in wait.peers or ("",):
                self._add(wait, peer, seconds)

    def _add(self, wait: OperationWait, peer: str, seconds: float) -> None:
        shown = peer if not peer or peer in self._worst.shown else OTHER
        key = (wait.kind, wait.event, shown)
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds

    def _drop(self, peer: str) -> None:
        for key in [key for key in self.seconds if key[2] == peer]:
            del self.seconds[key]
