"""Operations of an OSD that take long: how many, how old, and where they waited.

A list of operations in progress has megabytes if the queue is long, just when the OSD is busiest.
So it is asked for only while few are in progress, to find the oldest one. Where operations wait
comes from samples of bounded cost (`operation_samples.py`). The OSD's record of slow operations
is read when there are new ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from cephqos_exporter.collectors import operation_samples
from cephqos_exporter.collectors.base import SamplingCollector
from cephqos_exporter.collectors.counters import figure
from cephqos_exporter.collectors.interval import ReadInterval
from cephqos_exporter.config import integer
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.daemon_errors import ErrorReply
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import listed
from cephqos_exporter.qos.waits import WaitMeter

_OPS: Final = operation_samples.LIST
_BLOCKED: Final = operation_samples.BLOCKED
_SLOW: Final = "dump_historic_slow_ops"

# Between two lists that show the oldest operation.
_LIST_SECONDS: Final = 5.0

# Between two looks at the record of slow operations, which cost an OSD 0.7 ms each: if a counter
# says that there are new ones, and on releases without that counter (before 18.x).
_SLOW_SECONDS: Final = 10.0
_UNCOUNTED_SECONDS: Final = 60.0

# The part of an event's name that belongs to one operation: " from 2,5" in "waiting for subops
# from 2,5". It is cut off, so that few stages remain.
_PARTICULARS: Final = re.compile(r"( from | at | \[|\().*|\d.*", re.DOTALL)
_NOT_NAME: Final = re.compile(r"[^a-z]+")
_MOST_STAGES: Final = 40

_BLOCKED_FIGURES: Final = (
    (
        "num_blocked_ops",
        "cephqos_ops_blocked",
        "Operations in progress for longer than cephqos_ops_blocked_after_seconds. Absent before "
        "18.2.",
    ),
    (
        "complaint_time",
        "cephqos_ops_blocked_after_seconds",
        "Age at which the OSD calls an operation blocked (osd_op_complaint_time). Absent before "
        "18.2.",
    ),
)

# Ages from here on are negative ones, printed as 32 bits without a sign.
_NEGATIVE_AGE: Final = 2.0**31


@dataclass(slots=True)
class _OpsOsd:
    labels: Labels
    waits: WaitMeter = field(default_factory=WaitMeter)
    wait_families: Sequence[Family] = ()  # as of the last sample
    list_interval: ReadInterval = field(default_factory=lambda: ReadInterval(_LIST_SECONDS))
    oldest_age: float | None = None  # as of the last list; None: not known
    few_in_progress: bool = False  # at the last scrape
    list_due: bool = False  # the list is asked for at the next scrape
    # The record of slow operations: the OSD's count of them when it was last read, and its keys.
    slow_count: float | None = None
    slow_interval: ReadInterval = field(default_factory=lambda: ReadInterval(_SLOW_SECONDS))
    slow_due: bool = True
    slow_record: frozenset[tuple[str, str]] | None = None  # None: not read yet
    stages: dict[str, int] = field(default_factory=dict)  # slow operations by stage


class OpsCollector(
    SamplingCollector[_OpsOsd], name="ops", help="Operations in progress, blocked and slow."
):
    """Operations in progress, blocked and slow."""

    # For samples the list is asked for too, with a bound of its own (`sample_at_most`).
    list_at_most = integer(
        "collector.ops.list-at-most",
        32,
        "List the operations in progress, to find the oldest, when there are at most this many.",
        least=0,
        most=10_000,
    )
    sample_at_most = operation_samples.AT_MOST
    sample_interval = operation_samples.INTERVAL

    def needed(self, daemon: Daemon, state: _OpsOsd | None) -> Sequence[Command]:
        wanted = [*self.samples.commands(daemon)]
        if state is not None and state.list_due:
            wanted.append(Command(_OPS))
        if state is None or state.slow_due:
            wanted.append(Command(_SLOW))
        return wanted

    def first_seen(self, view: DaemonView) -> _OpsOsd:
        return _OpsOsd(Labels(view.labels))

    def families(self, view: DaemonView, state: _OpsOsd) -> Iterable[Family]:
        not_understood = view.not_understood
        loggers = self.counters.loggers(view)
        counters = loggers.required("osd")
        in_progress = figure(counters, "op_wip", not_understood)
        families: list[Family] = []
        if in_progress is not None:
            text = (
                "Client writes that the OSD as primary has begun and not completed. What waits in "
                "its queue is not among them."
            )
            name = "cephqos_ops_in_progress"
            families.append(single(name, "gauge", text, view.labels, in_progress))
        if any(view.errors.get(command) == ErrorReply.reason for command in (_BLOCKED, _SLOW)):
            # It tracks no operations. Its counts of slow and blocked ones stay at 0.
            raise ReplyMissing(_SLOW, "osd_enable_op_tracker is off", families)
        families += _blocked(view)
        if in_progress is not None:
            clients = self.samples.clients(view)
            families += not_understood.all_of(_OPS, lambda: _oldest(view, state, idle=not clients))
            self._decide_next_list(view, state, clients)
        sample = self.samples.of(view)
        if sample is not None and sample.in_progress:
            state.waits.add(sample.operations)
            state.wait_families = tuple(_wait_families(state))
        families += state.wait_families
        tracked = loggers.get("trackedop")  # 16.2 has none
        slow = None if tracked is None else figure(tracked, "slow_ops_count", not_understood)
        families += not_understood.all_of(_SLOW, lambda: _slow(view, state, slow))
        return families

    def _decide_next_list(self, view: DaemonView, osd: _OpsOsd, clients: float) -> None:
        """Decide whether the next scrape asks for the list, to find the oldest operation."""
        osd.few_in_progress = 0 < clients <= self.list_at_most
        osd.list_interval.scraped(view.time, read=_OPS in view.replies)
        due = osd.oldest_age is None or osd.list_interval.due
        osd.list_due = osd.few_in_progress and due and self.samples.may_list(view)


def _wait_families(osd: _OpsOsd) -> Iterable[Family]:
    if not osd.waits.sampled:
        return
    family = Family(
        "cephqos_ops_sampled_wait_seconds_total",
        "counter",
        "Time that operations in progress waited, estimated from samples. event: "
        "receive (until read from the network), queue (in the scheduler), execute, "
        "blocked (by the state of the placement group or object), commit (in the OSD's "
        "own store), subops (for other OSDs, after the own commit), reply. peer: the "
        "OSD that subops wait for; the worst few have series, the rest is other. Where "
        "Ceph does not name the OSD, the time is divided between the possible ones. "
        "Absent until operations were sampled, and where the OSD tracks none; does not grow while "
        "more than --collector.ops.sample-at-most are in progress.",
    )
    for (kind, event, peer), seconds in osd.waits.seconds.items():
        pairs = ("peer", peer) if peer else ()
        family.add(osd.labels.of("kind", kind, "event", event, *pairs), seconds)
    yield family
    family = Family(
        "cephqos_ops_sampled_total",
        "counter",
        "Operations seen in the samples of where they wait, by kind: client, replica "
        "(writes for another primary), ec_read (reads for another primary of an erasure-coded "
        "pool, by clients or by recovery), ec (other sub-operations of such pools), "
        "recovery, scrub, other. Absent until operations were sampled.",
    )
    for kind, count in osd.waits.sampled.items():
        family.add(osd.labels.of("kind", kind), count)
    yield family


def _blocked(view: DaemonView) -> Iterable[Family]:
    reply = view.replies.get(_BLOCKED)
    if reply is None:  # before 18.2
        return
    for key, name, text in _BLOCKED_FIGURES:
        value = figure(reply, key, view.not_understood)
        if value is not None:
            yield single(name, "gauge", text, view.labels, value)


def _oldest(view: DaemonView, osd: _OpsOsd, *, idle: bool) -> Iterable[Family]:
    """The age of the oldest operation; not known while too many are in progress to list them."""
    if osd.few_in_progress and _OPS in view.replies:
        osd.oldest_age = None  # not known, should the list not be understood
        ops = listed(view.replies[_OPS]["ops"])
        osd.oldest_age = max((_age(op) for op in ops), default=0.0)
    elif idle:
        osd.oldest_age = 0.0
    elif osd.list_due or not osd.few_in_progress:  # the list did not come, or was too long to ask
        osd.oldest_age = None
    if osd.oldest_age is not None:
        text = (
            "Age of the oldest operation in progress. Absent while more are in progress "
            "than --collector.ops.list-at-most."
        )
        yield single("cephqos_ops_oldest_age_seconds", "gauge", text, view.labels, osd.oldest_age)


def _age(op: Mapping[str, Any]) -> float:
    """Seconds. An operation that came while the list was made has a negative age: 0 here."""
    age: float = op["age"]
    return age if age < _NEGATIVE_AGE else 0.0


def _slow(view: DaemonView, osd: _OpsOsd, count: float | None) -> Iterable[Family]:
    if count is not None:
        text = (
            "Operations slower than the OSD's threshold for slow operations "
            "(osd_op_history_slow_op_threshold). Absent before 18.2."
        )
        yield single("cephqos_ops_slow_total", "counter", text, view.labels, count)
    reply = view.replies.get(_SLOW)
    if reply is not None:
        record = reply.get("Ops", reply.get("ops"))
        if record is None:
            view.not_understood.add("reply", f"{_SLOW}: {', '.join(reply)}")
        else:
            _count_stages(osd, record)
        osd.slow_count = count  # a record that is not understood is not asked for again either
    osd.slow_interval.seconds = _UNCOUNTED_SECONDS if count is None else _SLOW_SECONDS
    osd.slow_interval.scraped(view.time, read=reply is not None)
    osd.slow_due = osd.slow_interval.due and (count is None or count != osd.slow_count)
    if not osd.stages:
        return
    family = Family(
        "cephqos_ops_slow_by_stage_total",
        "counter",
        "Slow operations by the stage in which they waited longest, since the exporter "
        "first saw the daemon. They are read from the OSD's list of the latest ones; in"
        " a burst some may be missed.",
    )
    for stage, operations in osd.stages.items():
        family.add(osd.labels.of("stage", stage), operations)
    yield family


def _count_stages(osd: _OpsOsd, ops: Sequence[Mapping[str, Any]]) -> None:
    """Count the operations that the record did not hold at the last look.

    None at the first look: those in the record may have ended at any time before.
    """
    record = {(op["description"], op["initiated_at"]): op for op in ops}
    if osd.slow_record is not None:
        for key in record.keys() - osd.slow_record:
            stage = longest_stage(record[key])
            if stage not in osd.stages and len(osd.stages) >= _MOST_STAGES:
                stage = "other"
            osd.stages[stage] = osd.stages.get(stage, 0) + 1
    osd.slow_record = frozenset(record)


def longest_stage(op: Mapping[str, Any]) -> str:
    """The event after which an operation waited longest for its next one."""
    events = op["type_data"]["events"]
    if len(events) < 2:
        return "unknown"
    times = [datetime.fromisoformat(event["time"]).timestamp() for event in events]
    waits = [later - earlier for earlier, later in pairwise(times)]
    event = events[waits.index(max(waits))]["event"]
    return _NOT_NAME.sub("_", _PARTICULARS.sub("", event.lower())).strip("_") or "unknown"
