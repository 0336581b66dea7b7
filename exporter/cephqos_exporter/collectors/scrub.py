"""Scrubbing of one OSD: slots (Ceph: reservations), its queue, and from 20.x on the work itself.

Before 20.x the counters of an OSD do not show what it scrubs: those series are absent there. The
cluster's own figures (`--role cluster`) show what placement groups do.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cephqos_exporter.cluster.replies import parse_stamp
from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import LABELLED, figure
from cephqos_exporter.collectors.interval import SLOWLY
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import MISREAD, NotUnderstood, listed

RESERVATIONS: Final = "dump_scrub_reservations"
QUEUE: Final = "dump_scrubs"

# One entry per placement group: the schedule moves by days, not seconds.
QUEUE_TTL_SECONDS: Final = 15.0

_UNDECIDED: Final = "either"

# The state of the queue for each urgency of 20.x. Times decide the other states.
_PERIODIC: Final = "periodic-regular"
_URGENT: Final = {
    "operator-requested": "requested",
    "must-repair": "requested",
    "must-scrub": "must-scrub",
    "after-repair": "after-repair",
    "repairing": "repairing",
}
_USUAL_STATES: Final = ("requested", "late", "due", "waiting")
_NOT_LATE: Final = ("requested", "due", "waiting")

# Erasure-coded pools show from the OSD's first scrub of one on: most OSDs hold none.
_REPLICATED: Final = "replicated"
_ERASURE_CODED: Final = "ec"
_POOL_TYPES: Final = (_REPLICATED, _ERASURE_CODED)
_STARTED: Final = "num_scrubs_started"


class _Total(NamedTuple):
    """A counter: in the logger osd by pool type, and in the labelled sets of 19.2."""

    key: str
    in_sets: str | None  # None: 19.2 does not count it
    name: str
    help: str


_TOTALS: Final = (
    _Total(
        "scrub_{}_read_bytes",
        None,
        "cephqos_scrub_read_bytes_total",
        "Bytes read by deep scrubs, as the primary and as a replica.",
    ),
    _Total(
        "scrub_{}_read_cnt",
        None,
        "cephqos_scrub_reads_total",
        "Reads by deep scrubs, as the primary and as a replica.",
    ),
    _Total(
        "num_scrubs_started_{}",
        _STARTED,
        "cephqos_scrub_started_total",
        "Scrubs that this OSD began as the primary; some end without a slot.",
    ),
    _Total(
        "scrub_{}_reservation_process_failure",
        "reservation_process_failure",
        "cephqos_scrub_slot_failures_total",
        "Scrubs put off because a replica had no slot to give.",
    ),
)
_RESULTS: Final = (
    ("successful_scrubs_{}_elapsed", "successful_scrubs_elapsed", "success"),
    ("failed_scrubs_{}_elapsed", "failed_scrubs_elapsed", "failure"),
)

# The labelled sets, and what of them tells how scrubs and clients got in each other's way.
_SETS: Final = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")
_GONE: Final = "write_blocked_by_scrub"  # 21.x does not count it by level any more
_LEVELLED: Final = (
    (
        _GONE,
        "cephqos_scrub_writes_blocked_total",
        "Client writes that waited because a scrub held their objects. Absent on 21.x.",
    ),
    (
        "preemptions",
        "cephqos_scrub_preemptions_total",
        "Chunks that a scrub gave up because a client needed their objects.",
    ),
    ("chunk_selected", "cephqos_scrub_chunks_total", "Chunks of objects that scrubs began with."),
)


class ScrubCollector(
    DaemonCollector[Labels],
    name="scrub",
    help="Scrubbing by each OSD: slots, queue, and the work where it is counted.",
):
    """Scrubbing as one OSD does it, from its slots, its queue and its counters."""

    def needed(self, daemon: Daemon, state: Labels | None) -> Sequence[Command]:
        queue = Command(QUEUE, ttl=QUEUE_TTL_SECONDS)
        return [Command(RESERVATIONS, SLOWLY), queue, *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> Labels:
        return Labels(view.labels)

    def families(self, view: DaemonView, state: Labels) -> Iterable[Family]:
        odd = view.not_understood
        reservations, entries = view.reply(RESERVATIONS), view.reply(QUEUE)
        families = odd.all_of(RESERVATIONS, lambda: _slots(reservations, state, odd))

        def queue() -> Iterable[Family]:
            first = next(iter(listed(entries)), None)
            old = (first and "level" not in first) or "scrubs_remote" in reservations
            yield _queue(entries, old, state, view.time, odd)

        families += odd.all_of(QUEUE, queue)
        osd = self.counters.loggers(view).required("osd")
        labelled = self.counters.kind(view) == LABELLED
        sets = _labelled_sets(view.reply("counter dump"), odd) if labelled else ()
        counted = _Counted(osd, sets, odd)
        families += counted.totals(state)
        if sets:
            families += _levelled(sets, counted.pool_types, state, odd)
        return families


def _slots(reply: Mapping[str, Any], labels: Labels, odd: NotUnderstood) -> Iterable[Family]:
    held = gauge(
        "cephqos_scrub_slots",
        "Scrubs that this OSD takes part in. local: as the primary; remote: as a replica.",
    )
    remote = reply.get("scrubs_remote")
    if remote is None:
        remote = _remote(reply.get("remote_scrub_reservations"))
    for side, count in (("local", reply.get("scrubs_local")), ("remote", remote)):
        if isinstance(count, int):
            held.add(labels.of("side", side), count)
        else:
            odd.add("reply", f"{RESERVATIONS}: {side}")
    most = gauge(
        "cephqos_scrub_slots_max",
        "Most scrubs that this OSD takes part in at once, on each side (osd_max_scrubs).",
    )
    allowed = figure(reply, "osd_max_scrubs", odd)
    if allowed is not None:
        most.add(labels.base, allowed)
    return held, most


def _remote(reserver: Any) -> int | None:
    """Those in progress of a reserver, as 19.2 and later keep them; None if it is no reserver.

    19.2.0 writes an array without names: most allowed, least priority, queues, in progress.
    """
    if isinstance(reserver, list) and len(reserver) == 4:
        reserver = {"in_progress": reserver[3]}
    held = reserver.get("in_progress") if isinstance(reserver, dict) else None
    return len(held) if isinstance(held, list) else None


def _queue(
    entries: Sequence[Mapping[str, Any]],
    old: bool,
    labels: Labels,
    now: float,
    odd: NotUnderstood,
) -> Family:
    """The new form has no deadlines: a late scrub is shown there as due."""
    family = gauge(
        "cephqos_scrub_queue_pgs",
        "Placement groups that this OSD has to scrub as the primary. state: requested (by a user), "
        "due, late (load and hours delay it no longer; absent on 20.2), waiting (not due yet). "
        "On 20.2, while there are any: must-scrub (its last scrub is not known), after-repair, "
        "repairing. level: shallow, deep; before 20.x either, as a scrub's level is decided when "
        "it begins.",
    )
    levels = (_UNDECIDED,) if old else ("shallow", "deep")
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        level = entry.get("level", _UNDECIDED)
        try:
            state = _queue_state(entry, now)
        except (LookupError, TypeError, ValueError):
            odd.add("reply", f"{QUEUE}: {entry}")
            continue
        if level not in levels or state is None:
            odd.add("state", f"{QUEUE}: {level}, {entry.get('urgency')}")
            continue
        counts[level, state] = counts.get((level, state), 0) + 1
    usual = _USUAL_STATES if old or (entries and "deadline" in entries[0]) else _NOT_LATE
    for level in levels:
        for state in usual:
            family.add(labels.of("level", level, "state", state), counts.get((level, state), 0))
    for (level, state), count in sorted(counts.items()):
        if state not in usual:
            family.add(labels.of("level", level, "state", state), count)
    return family


def _queue_state(entry: Mapping[str, Any], now: float) -> str | None:
    """None for an urgency that is not known."""
    urgency = entry.get("urgency", _PERIODIC)
    if urgency != _PERIODIC:
        return _URGENT.get(urgency)
    forced = entry["forced"]
    if type(forced) is not bool:
        raise TypeError(f"{forced!r} instead of true or false")
    if forced:
        return "requested"
    if parse_stamp(entry["sched_time"]) > now:
        return "waiting"
    deadline = parse_stamp(entry["deadline"]) if "deadline" in entry else 0.0
    return "late" if 0 < deadline <= now else "due"


LabelledSet = tuple[str, str, Mapping[str, Any]]  # level, pool type, counters


def _labelled_sets(reply: Mapping[str, Any], odd: NotUnderstood) -> Sequence[LabelledSet]:
    sets: list[LabelledSet] = []
    for name in _SETS:
        try:
            for entry in reply.get(name, ()):
                level, pool_type = (entry["labels"].get(key) for key in ("level", "pooltype"))
                if level in ("shallow", "deep") and pool_type in _POOL_TYPES:
                    sets.append((level, pool_type, dict(entry["counters"])))
                else:
                    odd.add("counter", f"{name}: {entry['labels']}")
        except MISREAD as exc:
            odd.add("counter", f"{name}: {exc!r}")
    if sets and len(sets) < len(_SETS):  # an OSD has all from its beginning, or none
        odd.add("counter", f"{len(sets)} sets of scrubs instead of {len(_SETS)}")
    return sets


class _Counted:
    """What an OSD counts of its scrubs, where its release has it; None where it does not."""

    def __init__(
        self, osd: Mapping[str, Any], sets: Sequence[LabelledSet], odd: NotUnderstood
    ) -> None:
        self._osd = osd
        self._odd = odd
        # 20.x: by pool type; 19.2: by level and pool type, in one set each.
        self._by_pool = any(total.key.format(_REPLICATED) in osd for total in _TOTALS)
        in_sets = {total.in_sets for total in _TOTALS}
        self._sets = sets if any(in_sets & counters.keys() for _, _, counters in sets) else ()
        ec = self._values("num_scrubs_started_{}", _STARTED, _ERASURE_CODED)
        reads = osd.get("scrub_ec_read_cnt")
        self.pool_types = _POOL_TYPES if any(ec) or reads else (_REPLICATED,)

    def totals(self, labels: Labels) -> Iterable[Family]:
        if not (self._by_pool or self._sets):
            return
        for key, in_sets, name, text in _TOTALS:
            family = counter(name, text)
            for pool_type in self.pool_types:
                values = self._values(key, in_sets, pool_type)
                if values:
                    family.add(labels.of("pool_type", pool_type), sum(values))
            if family.samples:
                yield family
        family = Family(
            "cephqos_scrub_duration_seconds",
            "summary",
            "Scrubs that this OSD led as the primary, and how long they took.",
        )
        for key, in_sets, result in _RESULTS:
            for pool_type in self.pool_types:
                seconds = self._values(key, in_sets, pool_type, "sum")
                times = self._values(key, in_sets, pool_type, "avgcount")
                if seconds and times:
                    label = labels.of("pool_type", pool_type, "result", result)
                    family.add(label, sum(seconds), "_sum")
                    family.add(label, sum(times), "_count")
        if family.samples:
            yield family

    def _values(
        self, key: str, in_sets: str | None, pool_type: str, part: str = ""
    ) -> Sequence[float]:
        """What adds up to a counter; nothing, and said so, where a part of it is missing."""
        if self._by_pool:
            values = [figure(self._osd, key.format(pool_type), self._odd, part)]
        elif in_sets is None:
            return ()
        else:
            sets = [counters for _, of, counters in self._sets if of == pool_type]
            values = [figure(counters, in_sets, self._odd, part) for counters in sets]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else ()


def _levelled(
    sets: Sequence[LabelledSet], pool_types: Sequence[str], labels: Labels, odd: NotUnderstood
) -> Iterable[Family]:
    for key, name, text in _LEVELLED:
        family = counter(name, text)
        for level, pool_type, counters in sets:
            if pool_type not in pool_types:
                continue
            if key == _GONE and key not in counters:
                continue
            value = figure(counters, key, odd)
            if value is not None:
                family.add(labels.of("level", level, "pool_type", pool_type), value)
        yield family
