"""Reads `dump_op_pq_state`: which scheduler runs, and what dmClock's own tags say.

The reply is JSON around free text. A request's tag has the moments at which its reservation and its
limit fall due, as wall-clock seconds modulo 1,000,000. The reservation lag is the time since the
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

# A queue dump names a class by number up to 20.2, and later by name or by both (`3client`).
_CLASS_OF_NUMBER: Final = {"0": RECOVERY, "1": BEST_EFFORT, "2": IMMEDIATE, "3": CLIENT}
# There is a record for each client of dmClock: a class, or in early releases a client of a
# class. It begins like this, with the tag of the first request if one waits:
#   ClientRec:: client:{ class_id: 3 client_id: 0 profile_id: 0 } prev_tag:{ ... }
#   req_count:12 top_req:{ ClientReq:: tag:{ RequestTag:: ready:false r:9.5 p:8.2 l:0.0 ...
# Each is matched alone, up to its end: a dump of 160 kB took 45 s where no record ended.
_RECORDS: Final = "record:{ "
_RECORD: Final = re.compile(
    r"ClientRec:: client:\{ class_id: ?(\w++).*? req_count:(\d++) top_req:"
    r"(?:none|\{ ClientReq:: tag:\{ RequestTag:: ready:\w++ r:(\S++) p:\S++ l:(\S++) )"
)


@dataclass(frozen=True, slots=True)
class Head:
    """The tags of the request at the head of a queue; None where the class has no such bound."""

    reservation: float | None  # when it falls due, in seconds modulo TAG_MODULO
    limit: float | None  # when it may be served


@dataclass(slots=True)
class ShardQueue:
    """The queues of one shard, by class."""

    index: str  # of the shard
    told: bool = False  # the dump has classes; False: WPQ, and mClock before 17.2
    whole: bool = True  # False: a part was not understood, and classes may be missing
    lengths: dict[str, int] = field(default_factory=dict)  # requests
    heads: dict[str, list[Head]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueDump:
    """What one `dump_op_pq_state` says; `scheduler` in the words of the option osd_op_queue."""

    scheduler: str  # mclock_scheduler, wpq, or unknown
    shards: Sequence[ShardQueue]


def read_queue_dump(
    reply: Mapping[str, Any], not_understood: NotUnderstood | None = None
) -> QueueDump:
    """Read the whole dump. The scheduler is `unknown` if no known one prints such a dump."""
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
    # Behind the records the same requests follow once more, as tops of dmClock's heaps.
    records = text.partition("{ reservation_top:")[0]
    for record in records.split(_RECORDS)[1:]:
        _read_record(shard, record, not_understood)
    sizes = body["queue_sizes"]
    immediate = sizes.get("immediate")
    if immediate is not None:  # 17.2; later releases have a counter
        shard.lengths[IMMEDIATE] = immediate
    # Sizes and records are printed under one lock, so they must agree.
    queued, in_records = sizes.get("scheduler"), sum(shard.lengths.values()) - (immediate or 0)
    if shard.whole and queued is not None and queued != in_records:
        not_understood.add(
            "reply", f"dump_op_pq_state: {queued} requests wait, its records have {in_records}"
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
    """The class in a dump; None if not known. A name decides: Crimson's numbers differ."""
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
    """Seconds since a tag's moment, negative if it is yet to come.

    A tag stands for moments every 11.6 days (TAG_MODULO); the one nearest to now is taken. So the
    lag stays right across a wrap, and after a clock was set by less than 5.8 days.
    """
    return (now - moment + TAG_MODULO / 2) % TAG_MODULO - TAG_MODULO / 2


def reservation_lag(heads: Sequence[Head], now: float) -> float | None:
    """Seconds by which the most overdue head has missed its reservation; 0 if none has.

    None if requests wait and their class has no reservation.
    """
    if not heads:
        return 0.0
    due = [head.reservation for head in heads if head.reservation is not None]
    if not due:
        return None
    return max(0.0, *(seconds_past(moment, now) for moment in due))


def limit_wait(heads: Sequence[Head], now: float) -> float:
    """Seconds until the limit lets the first of the heads through; 0 if it holds none back."""
    waits = [0.0 if head.limit is None else -seconds_past(head.limit, now) for head in heads]
    return max(0.0, min(waits, default=0.0))
