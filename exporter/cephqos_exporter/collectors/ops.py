"""Operations of an OSD that take long: how many, how old, and where they waited.

Listing operations costs an OSD with a long queue megabytes, just when it is busiest. So the list is
asked for only while few are in progress, and the record of slow ones only when there are new ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, Self

from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.config import integer
from cephqos_exporter.model import (
    Command,
    Daemon,
    DaemonView,
    Family,
    LabelText,
    extend_labels,
)

_OPS: Final = "ops"
_BLOCKED: Final = "dump_blocked_ops_count"
_SLOW: Final = "dump_historic_slow_ops"

# How often to look for slow ops where no counter says that there are new ones (before 18.x).
_SLOW_TTL_SECONDS: Final = 60.0

LIST_AT_MOST: Final = integer(
    "collector.ops.list-at-most",
    32,
    "List the operations in progress, to find the oldest, when there are at most this many.",
    least=0,
    most=10_000,
)

# What an event says of one operation, cut from its name: "waiting for subops from 2,5".
_PARTICULARS: Final = re.compile(r"( from | at | \[|\().*|\d.*", re.DOTALL)
_NOT_NAME: Final = re.compile(r"[^a-z]+")
_MOST_STAGES: Final = 40


@dataclass(slots=True)
class _Osd:
    few: bool = False  # in progress at the last scrape
    slow_count: float | None = None  # the OSD's own count when its record was last read
    slow_due: bool = True
    seen: frozenset[tuple[str, str]] = frozenset()
    looked: bool = False
    stages: dict[str, int] = field(default_factory=dict)
    labels: dict[str, LabelText] = field(default_factory=dict)


class OpsCollector(DaemonCollector[_Osd]):
    """Operations in progress, blocked and slow.

    Options:
    `list_at_most`: operations in progress up to which their list is asked for, to find the oldest.
    """

    name = "ops"
    help = "Operations in progress, blocked and slow."
    options = (LIST_AT_MOST,)

    def __init__(self, *, list_at_most: int = LIST_AT_MOST.default) -> None:
        super().__init__()
        self._list_at_most = list_at_most

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(list_at_most=inputs.settings[LIST_AT_MOST])

    def needed(self, daemon: Daemon, state: _Osd | None) -> Sequence[Command]:
        osd = state or _Osd()
        wanted = [Command(_BLOCKED), *self.counters.commands(daemon)]
        if osd.few:
            wanted.append(Command(_OPS))
        if osd.slow_due:
            counted = osd.slow_count is not None or not osd.looked
            wanted.append(Command(_SLOW, ttl=0.0 if counted else _SLOW_TTL_SECONDS))
        return wanted

    def first_seen(self, view: DaemonView) -> _Osd:
        return _Osd()

    def families(self, view: DaemonView, state: _Osd) -> Iterable[Family]:
        loggers = self.counters.loggers(view)
        in_progress: float = loggers.required("osd")["op_wip"]
        found = [
            Family(
                "cephqos_ops_in_progress",
                "gauge",
                "Client operations in progress on the OSD as primary.",
                [("", view.labels, in_progress)],
            ),
            *_blocked(view),
            *_oldest(view, idle=in_progress == 0, listed=state.few),
        ]
        state.few = 0 < in_progress <= self._list_at_most
        tracked = loggers.get("trackedop") or {}
        found += _slow(view, state, tracked.get("slow_ops_count"))
        return found


def _blocked(view: DaemonView) -> Iterable[Family]:
    reply = view.replies.get(_BLOCKED)
    if reply is None:  # before 17.2
        return
    yield Family(
        "cephqos_ops_blocked",
        "gauge",
        "Operations in progress for longer than cephqos_ops_blocked_after_seconds.",
        [("", view.labels, reply["num_blocked_ops"])],
    )
    yield Family(
        "cephqos_ops_blocked_after_seconds",
        "gauge",
        "Age at which the OSD takes an operation for blocked (osd_op_complaint_time).",
        [("", view.labels, reply["complaint_time"])],
    )


def _oldest(view: DaemonView, *, idle: bool, listed: bool) -> Iterable[Family]:
    """The age of the oldest operation; not known while too many are in progress to list them."""
    if listed and _OPS in view.replies:
        age = max((op["age"] for op in view.replies[_OPS]["ops"]), default=0.0)
    elif idle:
        age = 0.0
    else:
        return
    yield Family(
        "cephqos_ops_oldest_age_seconds",
        "gauge",
        "Age of the oldest operation in progress; absent while more are in progress than the "
        "exporter lists.",
        [("", view.labels, age)],
    )


def _slow(view: DaemonView, osd: _Osd, count: float | None) -> Iterable[Family]:
    if count is not None:
        yield Family(
            "cephqos_ops_slow_total",
            "counter",
            "Operations that took longer than the OSD's bound for its record of slow ones.",
            [("", view.labels, count)],
        )
    reply = view.replies.get(_SLOW)
    if reply is not None:
        _count_stages(osd, reply)
        osd.slow_count = count
    osd.slow_due = count is None or count != osd.slow_count
    if not osd.stages:
        return
    family = Family(
        "cephqos_ops_slow_by_stage_total",
        "counter",
        "Slow operations by the stage in which they waited longest, from the OSD's record of the "
        "latest ones, since the exporter first saw the daemon: some may be missed in a burst.",
    )
    for stage, found in osd.stages.items():
        labels = osd.labels.get(stage)
        if labels is None:
            labels = osd.labels[stage] = extend_labels(view.labels, {"stage": stage})
        family.add(labels, found)
    yield family


def _count_stages(osd: _Osd, reply: Mapping[str, Any]) -> None:
    """Count the operations that the record did not hold at the last look.

    What it holds at the first look happened before, at times nobody knows.
    """
    record = {(op["description"], op["initiated_at"]): op for op in _recorded(reply)}
    if osd.looked:
        for key in record.keys() - osd.seen:
            stage = longest_stage(record[key])
            if stage not in osd.stages and len(osd.stages) >= _MOST_STAGES:
                stage = "other"
            osd.stages[stage] = osd.stages.get(stage, 0) + 1
    osd.seen = frozenset(record)
    osd.looked = True


def _recorded(reply: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = reply.get("Ops") or reply.get("ops") or ()
    return found


def longest_stage(op: Mapping[str, Any]) -> str:
    """The event after which an operation waited longest for its next one."""
    events = op["type_data"]["events"]
    if len(events) < 2:
        return "unknown"
    times = [datetime.fromisoformat(event["time"]).timestamp() for event in events]
    waits = [later - earlier for earlier, later in pairwise(times)]
    longest = waits.index(max(waits))
    return _stage_name(events[longest]["event"])


def _stage_name(event: str) -> str:
    name = _NOT_NAME.sub("_", _PARTICULARS.sub("", event.lower())).strip("_")
    return name or "unknown"
