"""Reads `dump_op_pq_state`: which scheduler runs, and what dmClock's own tags say.

The reply is JSON around free text. A request's tag holds the moments at which its reservation and
its limit fall due, as wall-clock seconds modulo 1,000,000: now less the reservation tag of the
request at the head of a queue is how far the scheduler is behind its promise.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLASSES, CLIENT, IMMEDIATE, RECOVERY

MCLOCK: Final = "mclock_scheduler"

TAG_MODULO: Final = 1_000_000.0

# How the queue dump names a class: by number up to 20.2, by name where a release prints names.
_CLASS_OF_DUMP: Final = {
    "0": RECOVERY,
    "1": BEST_EFFORT,
    "2": IMMEDIATE,
    "3": CLIENT,
    **{name: name for name in CLASSES},
}
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

    `told` is False where the dump says nothing of classes: WPQ, and mClock before 17.2.
    """

    index: str
    told: bool = False
    lengths: dict[str, int] = field(default_factory=dict)
    heads: dict[str, list[Head]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueDump:
    """What one `dump_op_pq_state` says; `scheduler` in the words of the option osd_op_queue."""

    scheduler: str  # mclock_scheduler, wpq, or unknown
    shards: Sequence[ShardQueue]


def read_queue_dump(reply: Mapping[str, Any]) -> QueueDump:
    """Read the whole dump; a shape that no known scheduler prints gives `unknown`."""
    kinds = {_scheduler_of(body) for body in reply.values()}
    scheduler = kinds.pop() if len(kinds) == 1 else "unknown"
    if scheduler != MCLOCK:
        # WPQ prints neither classes nor how many requests wait.
        return QueueDump(scheduler, [ShardQueue(_index(name)) for name in reply])
    return QueueDump(scheduler, [_read_shard(_index(name), body) for name, body in reply.items()])


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


def _read_shard(index: str, body: Mapping[str, Any]) -> ShardQueue:
    if not body:
        return ShardQueue(index)
    shard = ShardQueue(index, told=True)
    text: str = body["mClockClients"]["clients"]
    # Behind the records the same requests follow again, as tops of the heaps.
    records = text.partition("{ reservation_top:")[0]
    for found in map(_RECORD.match, records.split(_RECORDS)[1:]):
        cls = _CLASS_OF_DUMP.get(found[1]) if found else None
        if found is None or cls is None:
            continue
        count, reservation, limit = found.group(2, 3, 4)
        shard.lengths[cls] = shard.lengths.get(cls, 0) + int(count)
        if reservation:
            shard.heads.setdefault(cls, []).append(Head(_moment(reservation), _moment(limit)))
    immediate = body["queue_sizes"].get("immediate")
    if immediate is not None:  # the early model; later ones have a counter
        shard.lengths[IMMEDIATE] = immediate
    return shard


def _moment(text: str) -> float | None:
    """A tag's value; `min` and `max` stand for a bound that the class does not have."""
    return None if text in ("min", "max") else float(text)


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


def limit_hold(heads: Sequence[Head], now: float) -> float:
    """Seconds for which the limit will yet hold back the head that it holds back least."""
    held = [0.0 if head.limit is None else -seconds_past(head.limit, now) for head in heads]
    return max(0.0, min(held, default=0.0))
