"""What each class of an OSD got: counters read, valued in normalised ops, written."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.counters import Loggers, figure
from cephqos_exporter.collectors.histograms import COMMAND as HISTOGRAMS
from cephqos_exporter.collectors.histograms import histograms_of
from cephqos_exporter.collectors.recovery import RESERVATIONS
from cephqos_exporter.daemon import DaemonView, ReplyMissing
from cephqos_exporter.families import Family, counter, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.cost_models import QosState
from cephqos_exporter.qos.reservations import degraded_share
from cephqos_exporter.qos.sizes import Counted, SizeAxis, read_size_axis
from cephqos_exporter.qos.work import RecoveryItems, Scrubbed, Totals, WorkMeter

# Recovery of data that is merely misplaced is best effort.
_OF_RECOVERY: Final = frozenset({RECOVERY, BEST_EFFORT})
_HISTOGRAM: Final = "{}_latency_in_bytes_histogram"
_ITEMS: Final = (
    "l_osd_recovery_queue_latency",
    *(
        f"l_osd_recovery_{kind}_queue_latency"
        for kind in ("push", "push_reply", "pull", "scan", "context")
    ),
)
_SCRUBBED: Final = (
    *(f"scrub_{kind}_stats_cnt" for kind in ("replicated", "ec")),
    *(f"scrub_{kind}_read_bytes" for kind in ("replicated", "ec")),
)
_STORE_BYTES: Final = ("write_big_bytes", "write_small_bytes")


class AttainedWork:
    """Follows the work that one OSD does."""

    def __init__(self) -> None:
        self._meter = WorkMeter()
        self._axis: SizeAxis | None = None
        self._totals: Totals | None = None  # as last read
        self._all_counted = False
        self._shown: Sequence[str] = ()  # classes

    def advance(self, view: DaemonView, loggers: Loggers, qos: QosState) -> None:
        """Count what was done since the last histograms."""
        not_understood = view.not_understood
        histograms = histograms_of(view)
        if self._axis is None:
            self._axis = _size_axis(histograms, not_understood)
        reading = _Reading(loggers.required("osd"), histograms, len(self._axis), not_understood)
        self._totals = totals = reading.totals(self._totals, loggers)
        unknown = reading.unknown
        degraded = None
        # Only how work is divided between classes: without the reply the last answer holds.
        reservations = view.replies.get(RESERVATIONS)
        if reservations is not None:
            try:
                degraded = degraded_share(reservations)
            except (LookupError, TypeError, ValueError) as exc:
                not_understood.add("reply", f"{RESERVATIONS}: {exc!r}")
                unknown |= _OF_RECOVERY
        self._meter.advance(totals, self._axis, qos, degraded)
        # The whole is unknown without a part that the release does count.
        self._all_counted = not unknown
        # What the release does not count: the work of recovery is charged by its items, and without
        # scrubs, what best effort got cannot be known.
        if totals.recovery is None:
            unknown |= _OF_RECOVERY
        if totals.scrub is None:
            unknown |= {BEST_EFFORT}
        self._shown = [c for c in (CLIENT, RECOVERY, IMMEDIATE, BEST_EFFORT) if c not in unknown]

    @property
    def done(self) -> Mapping[str, float]:
        """Work by class, of the classes that are counted."""
        return {cls: self._meter.done[cls] for cls in self._shown}

    def families(self, labels: Labels) -> Iterable[Family]:
        """Work by class, and all of it, as last counted."""
        if self._shown:
            yield _by_class(self._meter.done, self._shown, labels)
        if self._all_counted:
            yield _delivered(self._meter.done, labels)


def _by_class(done: Mapping[str, float], shown: Sequence[str], labels: Labels) -> Family:
    attained = counter(
        "cephqos_qos_normalised_ops_total",
        "Work done for a class since the exporter first saw the daemon, in normalised "
        "ops, at the cost in force when it was done. Exact for client reads, otherwise "
        "estimated. Absent for a class whose work the release does not count.",
    )
    for cls in shown:
        attained.add(labels.of("class", cls), done[cls])
    return attained


def _delivered(done: Mapping[str, float], labels: Labels) -> Family:
    text = (
        "All work that the OSD's counters show, in normalised ops. It is a lower bound:"
        " snapshot trimming and PG deletion are not counted, recovery only from 18.x "
        "on, scrubs only from 20.x on, and sub-operations of erasure-coded pools never "
        "(cephqos_qos_delivered_is_lower_bound)."
    )
    name = "cephqos_qos_delivered_normalised_ops_total"
    return single(name, "counter", text, labels.base, sum(done.values()))


def _size_axis(histograms: Mapping[str, Any], not_understood: NotUnderstood) -> SizeAxis:
    """The rows of the histograms by size of operation; all of them have the same."""
    for kind in ("op_w", "op_rw"):
        histogram = histograms.get(_HISTOGRAM.format(kind))
        if histogram is not None:
            return read_size_axis(histogram["axes"][1])
    not_understood.add("reply", f"{HISTOGRAMS}: no histogram of writes")
    raise ReplyMissing(HISTOGRAMS, "no histogram of writes")


class _Reading:
    """One look at an OSD's counters. `unknown`: classes of which not all work could be read."""

    def __init__(
        self,
        osd: Mapping[str, Any],
        histograms: Mapping[str, Any],
        rows: int,
        not_understood: NotUnderstood,
    ) -> None:
        self._osd = osd
        self._rows = rows
        self._histograms = histograms
        self._not_understood = not_understood
        self.unknown: set[str] = set()

    def totals(self, before: Totals | None, loggers: Loggers) -> Totals:
        """What the OSD has counted since it started; what is missing is taken to be as before."""

        def value(name: str, key: str, classes: Set[str]) -> float:
            counted = figure(self._osd, key, self._not_understood)
            if counted is None:
                self.unknown |= classes
                return 0.0 if before is None else float(getattr(before, name))
            return counted

        return Totals(
            reads=value("reads", "op_r", {CLIENT}),
            writes=self._sized("op_w", None if before is None else before.writes),
            read_writes=self._sized("op_rw", None if before is None else before.read_writes),
            subops=value("subops", "subop_w", {IMMEDIATE}),
            subop_bytes=value("subop_bytes", "subop_w_in_bytes", {IMMEDIATE}),
            recovery_ops=value("recovery_ops", "recovery_ops", _OF_RECOVERY),
            recovery_bytes=value("recovery_bytes", "recovery_bytes", _OF_RECOVERY),
            pushes_sent=value("pushes_sent", "push", _OF_RECOVERY),
            push_bytes=value("push_bytes", "push_out_bytes", _OF_RECOVERY),
            store_bytes=self._store_bytes(loggers),
            recovery=self._recovery_items(),
            scrub=self._scrubbed(loggers),
        )

    def _sized(self, kind: str, before: Counted | None) -> Counted:
        ops = figure(self._osd, kind, self._not_understood)
        in_bytes = figure(self._osd, f"{kind}_in_bytes", self._not_understood)
        histogram = self._histograms.get(_HISTOGRAM.format(kind))
        if histogram is None:
            self._not_understood.add("counter", _HISTOGRAM.format(kind))
        if ops is None or in_bytes is None or histogram is None:
            self.unknown.add(CLIENT)
            return before or Counted([0.0] * self._rows, 0.0, 0.0)
        seen = [row for row in histogram["values"] if any(row)]  # a quarter of them, and less
        rows = list(map(sum, zip(*seen, strict=True))) if seen else [0] * self._rows
        return Counted(rows=rows, ops=ops, bytes=in_bytes)

    def _recovery_items(self) -> RecoveryItems | None:
        """How many recovery items of each kind were dequeued, from counters of their queueing time.

        None before 18.x, which has none of these. The times are unsound. The counts of messages are
        nested: for want of a `break` each kind is counted for itself and for all that follow it in
        the source.
        """
        if not any(key in self._osd for key in _ITEMS):
            return None
        counts = self._all(_ITEMS, "avgcount")
        if counts is None:
            self.unknown |= _OF_RECOVERY
            return None
        starts, push, reply, pull, scan, context = counts
        return RecoveryItems(
            starts=starts,
            continuations=context,
            pushes=push,
            replies=reply,
            pulls=pull,
            messages=scan,
            nested=push <= reply <= pull <= scan,
        )

    def _store_bytes(self, loggers: Loggers) -> float | None:
        """None where BlueStore does not count them, or is not the store."""
        store = loggers.get("bluestore") or {}
        if not all(key in store for key in _STORE_BYTES):
            return None
        found = self._all(_STORE_BYTES, counters=store)
        return None if found is None else sum(found)

    def _scrubbed(self, loggers: Loggers) -> Scrubbed | None:
        """None before 20.x, which has none of these."""
        if not any(key in self._osd for key in _SCRUBBED):
            return None
        counted = self._all(_SCRUBBED)
        chunks = loggers.total("osd_scrub_", "chunk_selected")
        if chunks is None:
            self._not_understood.add("counter", "chunk_selected")
        if counted is None or chunks is None:
            self.unknown.add(BEST_EFFORT)
            return None
        return Scrubbed(objects=sum(counted[:2]), bytes=sum(counted[2:]), chunks=chunks)

    def _all(
        self, keys: Sequence[str], part: str = "", counters: Mapping[str, Any] | None = None
    ) -> Sequence[float] | None:
        """Of the OSD's counters, or of these. None if one of them is missing."""
        source = self._osd if counters is None else counters
        values = [figure(source, key, self._not_understood, part) for key in keys]
        known = [value for value in values if value is not None]
        return known if len(known) == len(keys) else None
