"""Reads `dump_op_pq_state`: which scheduler runs, and what dmClock's own tags say.

The reply is JSON around free text. A request's tag holds the moments at which its reservation and
its limit fall due, as wall-clock seconds modulo 1,000,000. The reservation lag is now, minus the
reservation tag of the request at the head of a queue.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLASSES, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.not_understood import MISREAD, NotUnderstood

MCLOCK: Final = "mclock_scheduler"

TAG_MODULO: Final = 1_000_000.0

# How the queue dump names a class: by number up to 20.2; by name, or by both (`3client`), later.
_CLASS_OF_NUMBER: Final = {"0": RECOVERY, "1": BEST_EFFORT, "2": IMMEDIATE, "3": CLIENT}
# One record per entity that dmClock knows: a class, or in the early model a client of a class.
# Each is matched by itself, and nothing twice: a dump of 160 kB took 45 s where none had an end.
_RECORDS: Final = "record:{ "
_RECORD: Final = re.compile(
    r"ClientRec:: client:\{ class_id: ?(\w++).*? req_count:(\d++) top_req:"
    r"(?:none|\{ ClientReq:: tag:\{ RequestTag:: ready:\w++ r:(\S++) p:\S++ l:(\S++) )"
)


@dataclass(frozen=True, slots=True)
class Head:
    """When the request at the head of a queue falls due; None where the class has no such bound."""

    reservation: float | None
    limit: float | None


@dataclass(slots=True)
class ShardQueue:
    """The queue of one shard: how many requests wait in each class, and the heads of the queues.

    `told` is False where the dump says nothing of classes: WPQ, and mClock before 17.2. `whole` is
    False where part of it was not understood: a class without a head may have one there.
    """

    index: str
    told: bool = False
    whole: bool = True
    lengths: dict[str, int] = field(default_factory=dict)
    heads: dict[str, list[Head]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueDump:
    """What one `dump_op_pq_state` says; `scheduler` in the words of the option osd_op_queue."""

    scheduler: str  # mclock_scheduler, wpq, or unknown
    shards: Sequence[ShardQueue]


def read_queue_dump(
    reply: Mapping[str, Any], not_understood: NotUnderstood | None = None
) -> QueueDump:
    """Read the whole dump; a shape that no known scheduler prints gives `unknown`."""
    not_understood = NotUnderstood() if not_understood is None else not_understood
    if not isinstance(reply, dict):
        not_understood.add("reply", f"dump_op_pq_state: {reply!r}")
        return QueueDump("unknown", [])
    kinds = {_scheduler_of(body) for body in reply.values()}
    scheduler = kinds.pop() if len(kinds) == 1 else "unknown"
    if scheduler == "unknown":
        not_understood.add("reply", f"dump_op_pq_state: {sorted(map(str, reply))[:3]}")
    if scheduler != MCLOCK:
        # WPQ prints neither classes nor how many requests wait.
        return QueueDump(scheduler, [ShardQueue(_index(name)) for name in reply])
    shards = []
    for name, body in reply.items():
        try:
            shards.append(_read_shard(_index(name), body, not_understood))
        except MISREAD as exc:
            not_understood.add("reply", f"dump_op_pq_state: {name}: {exc!r}")
            shards.append(ShardQueue(_index(name), told=True, whole=False))
    if len({shard.told for shard in shards}) > 1:
        not_understood.add("reply", "dump_op_pq_state: some shards say nothing")
    return QueueDump(scheduler, shards)


def _scheduler_of(body: Any) -> str:
    if not isinstance(body, dict):
        return "unknown"
    # The mClock of 16.2 prints nothing at all; WPQ prints its two arrays even when empty.
    if not body or "mClockClients" in body:
        return MCLOCK
    return "wpq" if "high_queues" in body else "unknown"


def _index(name: str) -> str:
    """The shard's number, from a name such as `OSD:ShardedOpWQ:3`."""
    return name.rpartition(":")[2]


def _read_shard(index: str, body: Mapping[str, Any], not_understood: NotUnderstood) -> ShardQueue:
    if not body:
        return ShardQueue(index)
    shard = ShardQueue(index, told=True)
    text: str = body["mClockClients"]["clients"]
    # Behind the records the same requests follow again, as tops of the heaps.
    records = text.partition("{ reservation_top:")[0]
    for record in records.split(_RECORDS)[1:]:
        _read_record(shard, record, not_understood)
    sizes = body["queue_sizes"]
    immediate = sizes.get("immediate")
    if immediate is not None:  # the early model; later ones have a counter
        shard.lengths[IMMEDIATE] = immediate
    # Both are printed under the lock of the shard.
    queued, seen = sizes.get("scheduler"), sum(shard.lengths.values()) - (immediate or 0)
    if shard.whole and queued is not None and queued != seen:
        not_understood.add(
            "reply", f"dump_op_pq_state: {queued} requests wait, its records have {seen}"
        )
        shard.whole = False
    return shard


def _read_record(shard: ShardQueue, record: str, not_understood: NotUnderstood) -> None:
    match = _RECORD.match(record)
    cls = class_of(match[1]) if match else None
    if match is None or cls is None:
        not_understood.add("class", match[1] if match else record)
        shard.whole = False
        return
    count, reservation, limit = match.group(2, 3, 4)
    shard.lengths[cls] = shard.lengths.get(cls, 0) + int(count)
    if not reservation:
        return
    try:
        head = Head(_moment(reservation), _moment(limit))
    except ValueError:
        not_understood.add("reply", f"dump_op_pq_state: tags r:{reservation} l:{limit}")
        shard.whole = False
    else:
        shard.heads.setdefault(cls, []).append(head)


def class_of(text: str) -> str | None:
    """The class that a dump means; None for one that is not known.

    A name decides: its number is another in Crimson.
    """
    name = text.lstrip("0123456789")
    if name:
        return name if name in CLASSES else None
    return _CLASS_OF_NUMBER.get(text)


def _moment(text: str) -> float | None:
    """A tag's value; `min` and `max` stand for a bound that the class does not have."""
    if text in ("min", "max"):
        return None
    moment = float(text)
    if not isfinite(moment):
        raise ValueError(text)
    return moment


def seconds_past(moment: float, now: float) -> float:
    """How long ago a tag's moment was, negative if it is yet to come.

    Of the readings that differ by the modulo the one nearest to now is taken, so that neither the
    wrap every 11.6 days nor a clock that is set by less than 5.8 days looks like a huge lag.
    """
    return (now - moment + TAG_MODULO / 2) % TAG_MODULO - TAG_MODULO / 2


def reservation_lag(heads: Sequence[Head], now: float) -> float | None:
    """Seconds by which the most overdue head has missed its reservation; 0 when none has.

    None when requests wait and their class has no reservation.
    """
    if not heads:
        return 0.0
    due = [head.reservation for head in heads if head.reservation is not None]
    if not due:
        return None
    return max(0.0, *(seconds_past(moment, now) for moment in due))


def limit_wait(heads: Sequence[Head], now: float) -> float:
    """Seconds for which the limit will yet hold back the head that it holds back least."""
    held = [0.0 if head.limit is None else -seconds_past(head.limit, now) for head in heads]
    return max(0.0, min(held, default=0.0))
