"""Scrubbing of one OSD: slots (Ceph: reservations), its queue, and the work where it is counted.

    release      entries of the queue             counters of the work
    before 19.2  a deadline, no level             none
    19.2         a deadline, no level             in labelled sets, by level and pool type
    20.x         level and urgency; on 20.2       in the logger `osd`, by pool type; conflicts with
                 no deadline                      clients in labelled sets
    21.x         as 20.x                          as 20.x, without writes that scrubs block

Series that a release does not count are absent. The cluster's own figures (`--role cluster`) show
what placement groups do.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cephqos_exporter.ceph.stamps import parse_stamp
from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import LABELLED, figure
from cephqos_exporter.collectors.interval import SLOWLY
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import MISREAD, NotUnderstood, listed

RESERVATIONS: Final = "dump_scrub_reservations"
QUEUE: Final = "dump_scrubs"

# The reply is long, an entry per placement group, and the schedule changes in hours and days.
QUEUE_TTL_SECONDS: Final = 15.0

_NO_LEVEL: Final = "either"  # before 20.x an entry does not tell shallow from deep

# The state of an entry by its urgency (20.x). Times decide the state of a periodic one.
_PERIODIC: Final = "periodic-regular"
_URGENT: Final = {
    "operator-requested": "requested",
    "must-repair": "requested",
    "must-scrub": "must-scrub",
    "after-repair": "after-repair",
    "repairing": "repairing",
}
# States that are shown even with a count of 0. Without deadlines nothing is known to be late.
_STATES_WITH_DEADLINES: Final = ("requested", "late", "due", "waiting")
_STATES_WITHOUT_DEADLINES: Final = ("requested", "due", "waiting")

# Erasure-coded pools are shown after the OSD's first scrub of one: most OSDs hold none.
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

# The labelled sets, and their counters of conflicts between scrubs and clients.
_SETS: Final = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")
_WRITES_BLOCKED: Final = "write_blocked_by_scrub"  # 21.x does not count it by level any more
_CONFLICTS: Final = (
    (
        _WRITES_BLOCKED,
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
    """The state that is kept between scrapes is only the labels of the OSD."""

    def needed(self, daemon: Daemon, labels: Labels | None) -> Sequence[Command]:
        queue = Command(QUEUE, ttl=QUEUE_TTL_SECONDS)
        return [Command(RESERVATIONS, SLOWLY), queue, *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> Labels:
        return Labels(view.labels)

    def families(self, view: DaemonView, labels: Labels) -> Iterable[Family]:
        not_understood = view.not_understood
        reservations, entries = view.reply(RESERVATIONS), view.reply(QUEUE)
        families = not_understood.all_of(
            RESERVATIONS, lambda: _slots(reservations, labels, not_understood)
        )

        def queue() -> Iterable[Family]:
            first = next(iter(listed(entries)), None)
            # An empty queue has no entry that shows its form: the other reply tells the release.
            without_levels = (first and "level" not in first) or "scrubs_remote" in reservations
            yield _queue(
                entries, labels, not_understood, now=view.time, without_levels=without_levels
            )

        families += not_understood.all_of(QUEUE, queue)
        osd = self.counters.loggers(view).required("osd")
        labelled = self.counters.kind(view) == LABELLED
        sets = _labelled_sets(view.reply("counter dump"), not_understood) if labelled else ()
        counted = _Counted(osd, sets, not_understood)
        families += counted.totals(labels)
        if sets:
            families += _conflicts(sets, counted.pool_types, labels, not_understood)
        return families


def _slots(
    reply: Mapping[str, Any], labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    held = gauge(
        "cephqos_scrub_slots",
        "Scrubs that this OSD takes part in. local: as the primary; remote: as a replica.",
    )
    remote = reply.get("scrubs_remote")
    if remote is None:
        remote = _held_for_others(reply.get("remote_scrub_reservations"))
    for side, count in (("local", reply.get("scrubs_local")), ("remote", remote)):
        if isinstance(count, int):
            held.add(labels.of("side", side), count)
        else:
            not_understood.add("reply", f"{RESERVATIONS}: {side}")
    most = gauge(
        "cephqos_scrub_slots_max",
        "Most scrubs that this OSD takes part in at once, on each side (osd_max_scrubs).",
    )
    allowed = figure(reply, "osd_max_scrubs", not_understood)
    if allowed is not None:
        most.add(labels.base, allowed)
    return held, most


def _held_for_others(reserver: Any) -> int | None:
    """Slots in progress for other OSDs (19.2 and later); None for an unknown shape.

    19.2.0 writes an array without names: max_allowed, min_priority, queues, in_progress.
    """
    if isinstance(reserver, list) and len(reserver) == 4:
        _, _, _, in_progress = reserver
        reserver = {"in_progress": in_progress}
    held = reserver.get("in_progress") if isinstance(reserver, dict) else None
    return len(held) if isinstance(held, list) else None


def _queue(
    entries: Sequence[Mapping[str, Any]],
    labels: Labels,
    not_understood: NotUnderstood,
    *,
    now: float,
    without_levels: bool,
) -> Family:
    """Placement groups by level and state. Without deadlines (20.2) a late scrub shows as due."""
    family = gauge(
        "cephqos_scrub_queue_pgs",
        "Placement groups that this OSD has to scrub as the primary. state: requested (by a user), "
        "due, late (load and hours delay it no longer; absent on 20.2), waiting (not due yet). "
        "On 20.2, while there are any: must-scrub (its last scrub is not known), after-repair, "
        "repairing. level: shallow, deep; before 20.x either, as a scrub's level is decided when "
        "it begins.",
    )
    levels = (_NO_LEVEL,) if without_levels else ("shallow", "deep")
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        level = entry.get("level", _NO_LEVEL)
        try:
            state = _queue_state(entry, now)
        except (LookupError, TypeError, ValueError):
            not_understood.add("reply", f"{QUEUE}: {entry}")
            continue
        if level not in levels or state is None:
            not_understood.add("state", f"{QUEUE}: {level}, {entry.get('urgency')}")
            continue
        counts[level, state] = counts.get((level, state), 0) + 1
    with_deadlines = without_levels or (entries and "deadline" in entries[0])
    always = _STATES_WITH_DEADLINES if with_deadlines else _STATES_WITHOUT_DEADLINES
    for level in levels:
        for state in always:
            family.add(labels.of("level", level, "state", state), counts.get((level, state), 0))
    for (level, state), count in sorted(counts.items()):
        if state not in always:
            family.add(labels.of("level", level, "state", state), count)
    return family


def _queue_state(entry: Mapping[str, Any], now: float) -> str | None:
    """`requested`, `late`, `due`, `waiting` ...; None for an urgency that is not known."""
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


def _labelled_sets(
    reply: Mapping[str, Any], not_understood: NotUnderstood
) -> Sequence[LabelledSet]:
    sets: list[LabelledSet] = []
    for name in _SETS:
        try:
            for entry in reply.get(name, ()):
                level, pool_type = (entry["labels"].get(key) for key in ("level", "pooltype"))
                if level in ("shallow", "deep") and pool_type in _POOL_TYPES:
                    sets.append((level, pool_type, dict(entry["counters"])))
                else:
                    not_understood.add("counter", f"{name}: {entry['labels']}")
        except MISREAD as exc:
            not_understood.add("counter", f"{name}: {exc!r}")
    if sets and len(sets) < len(_SETS):  # an OSD has all of them from its start, or none
        not_understood.add("counter", f"{len(sets)} sets of scrubs instead of {len(_SETS)}")
    return sets


class _Counted:
    """The counters of scrub work, from the place where the OSD's release has them."""

    def __init__(
        self, osd: Mapping[str, Any], sets: Sequence[LabelledSet], not_understood: NotUnderstood
    ) -> None:
        self._osd = osd
        self._not_understood = not_understood
        # 20.x counts in the logger `osd` by pool type, 19.2 in a set for each level and pool type.
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
            values = [figure(self._osd, key.format(pool_type), self._not_understood, part)]
        elif in_sets is None:
            return ()
        else:
            sets = [counters for _, of, counters in self._sets if of == pool_type]
            values = [figure(counters, in_sets, self._not_understood, part) for counters in sets]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else ()


def _conflicts(
    sets: Sequence[LabelledSet],
    pool_types: Sequence[str],
    labels: Labels,
    not_understood: NotUnderstood,
) -> Iterable[Family]:
    for key, name, text in _CONFLICTS:
        family = counter(name, text)
        for level, pool_type, counters in sets:
            if pool_type not in pool_types:
                continue
            if key == _WRITES_BLOCKED and key not in counters:
                continue
            value = figure(counters, key, not_understood)
            if value is not None:
                family.add(labels.of("level", level, "pool_type", pool_type), value)
        yield family
