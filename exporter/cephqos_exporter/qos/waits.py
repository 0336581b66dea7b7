"""Where operations wait: read from their events, added up by sampling.

The list of operations in progress (`ops`) is a sample of what all operations do: each is in one
state. The number in a state, times the time between two samples, estimates the time that operations
spent there (Little's law). So the sums need no operation to finish, and a stalled one counts.
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

# What an operation does after its latest event. `started` depends on what the operation is.
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

# Events before a write is sent to its replicas. After one of these it is sent, or sent again.
_UNSENT: Final = frozenset(e for e, wait in _AFTER.items() if wait in (RECEIVE, QUEUE, EXECUTE))
# Bounds of what is read of an operation: a real one has about 15 events.
_MOST_EVENTS: Final = 100
_EVENT_TEXT: Final = 200  # characters
_SENT: Final = "waiting for subops from "
_PEERS_TEXT: Final = 100  # characters: there are as many as a pool has replicas
_ANSWERED: Final = re.compile(r"sub_op_(?:commit|applied)_rec(?: from (?:osd\.)?(\d+))?")
# At the beginning: the name of an object, which is up to a client, follows.
_EC_GROUP: Final = re.compile(r"osd_op\(\S+ \d+\.[0-9a-f]+s\d+ ")
# At the end, for the same reason: the operation's flags, and the epoch of its map.
_WRITES: Final = re.compile(r"\bwrite\b\S* e\d+\)\Z")
_FLAGS_TEXT: Final = 200  # characters

UNKNOWN_PEER: Final = "unknown"
# Events after which the wait depends on the kind and description of the operation.
_DEPENDS: Final = ("started", "sub_op_committed")


class OperationWait(NamedTuple):
    """What an operation in progress waits for; `peers` are the OSDs that it may be waiting for."""

    kind: str
    event: str
    peers: tuple[str, ...] = ()


class SampledOperations(NamedTuple):
    """Operations of a sample of which each was in the same places for the same time.

    One in progress stands for the time between two samples, and is in one place. A completed one
    stands for the time that it took, from event to event. The place `unknown` was not understood.
    """

    kind: str
    spent: Sequence[tuple[OperationWait, float]]  # seconds of each
    descriptions: Sequence[str]  # one for each

    @property
    def seconds(self) -> float:
        """The seconds that each stands for."""
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
        wait = _wait(kind, latest) or _wait_of(kind, op, latest[0], not_understood)
        descriptions.setdefault(wait, []).append(op["description"])

    _each(ops, read, not_understood)
    return [
        SampledOperations(wait.kind, spent=((wait, length),), descriptions=alike)
        for wait, alike in descriptions.items()
    ]


def completed(
    ops: Iterable[Mapping[str, Any]], not_understood: NotUnderstood
) -> Sequence[SampledOperations]:
    """A record of completed operations; those of unknown kinds are left out."""
    found: list[SampledOperations] = []

    def read(kind: str, op: Mapping[str, Any]) -> None:
        found.append(SampledOperations(kind, _spent(kind, op, not_understood), [op["description"]]))

    _each(ops, read, not_understood)
    return found


def _each(
    ops: Iterable[Mapping[str, Any]],
    read: Callable[[str, Mapping[str, Any]], None],
    not_understood: NotUnderstood,
) -> None:
    """Read those of known kinds: one operation of another form costs no others."""
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
    """Where a completed operation was, by the times of its events.

    Some releases print wrong durations, and the right times.
    """
    events = op["type_data"]["events"][:_MOST_EVENTS]
    spent = []
    began: datetime | None = None
    for wait, first, end in _waits(kind, tuple([event["event"][:_EVENT_TEXT] for event in events])):
        began = began or datetime.fromisoformat(events[first]["time"])
        ended = datetime.fromisoformat(events[end]["time"])
        if ended > began:
            wait = wait or _wait_of(kind, op, events[first]["event"], not_understood)
            spent.append((wait, (ended - began).total_seconds()))
        began = ended
    return spent


@lru_cache(maxsize=256)  # the operations of a record are much alike
def _waits(kind: str, names: tuple[str, ...]) -> Sequence[tuple[OperationWait | None, int, int]]:
    """What an operation with these events waited for, from which event to which (positions).

    None: that depends on the description of the operation, see `_wait_of`.
    """
    runs: list[tuple[OperationWait | None, int, int]] = []
    for at in range(len(names) - 1):
        wait = _wait(kind, _latest(reversed(names[: at + 1])))
        same_as_before = wait is not None and runs and runs[-1][0] == wait
        first = runs.pop()[1] if same_as_before else at
        runs.append((wait, first, at + 1))
    return runs


def kind_of(description: str, not_understood: NotUnderstood) -> str | None:
    """The kind of an operation; None if it is not known."""
    for kind, start in _KINDS:  # a generator takes twice as long
        if start.match(description):
            return kind
    match = _NAME.match(description)
    not_understood.add("operation", match[0] if match else "")
    return None


def _latest(backwards: Iterable[str]) -> tuple[str, ...]:
    """The latest event first; for a write that was sent to replicas, all back to that event."""
    names: list[str] = []
    for name in islice(backwards, _MOST_EVENTS):
        names.append(name[:_EVENT_TEXT])
        if name.startswith(_SENT):
            return tuple(names)
        if name in _UNSENT:
            break
    return tuple(names[:1]) or ("no event",)


@lru_cache(maxsize=1024)  # many were sent to the same replicas
def _wait(kind: str, latest: tuple[str, ...]) -> OperationWait | None:
    """What an operation waits for, if its latest events alone tell it."""
    if latest[-1].startswith(_SENT):
        return _replicated(kind, latest[-1].removeprefix(_SENT), latest[:-1])
    after = None if latest[0] in _DEPENDS else _AFTER.get(latest[0])
    return OperationWait(kind, after) if after else None


def _wait_of(
    kind: str, op: Mapping[str, Any], last: str, not_understood: NotUnderstood
) -> OperationWait:
    """What an operation waits for, where `_wait` needs its description to tell."""
    if last in _DEPENDS:
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
    """BLOCKED if the last event is a delay. Releases word delays differently, but the flag point of
    a delayed operation is always its last event."""
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

    def __init__(self, *, peers: int = 4) -> None:
        self.seconds: dict[tuple[str, str, str], float] = {}  # by kind, event, peer
        self.sampled: dict[str, int] = {}  # by kind
        self._worst: Largest[str] = Largest(peers)

    def add(self, operations: Iterable[SampledOperations]) -> None:
        """Take in a sample of operations in progress; what was not understood waits nowhere."""
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
