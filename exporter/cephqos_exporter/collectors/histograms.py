"""The op histograms of an OSD as Prometheus histograms in seconds.

Ceph labels the latency axis "usec"; its values are nanoseconds. The first row of the axis holds
what lies below 0, the last is open-ended, and each in between ends at twice the end of the one
before: a quantile is at most a factor of two off.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import figure
from cephqos_exporter.collectors.interval import ReadInterval
from cephqos_exporter.config import flag, seconds
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family, Form, Sample
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.not_understood import NotUnderstood

COMMAND: Final = "perf histogram dump"

# Client ops -> the histogram that has each once, and the counter with the sum of its latencies.
OPS: Final[Mapping[str, tuple[str, str]]] = {
    "read": ("op_r_latency_out_bytes_histogram", "op_r_latency"),
    "write": ("op_w_latency_in_bytes_histogram", "op_w_latency"),
    "rw": ("op_rw_latency_in_bytes_histogram", "op_rw_latency"),
}

# Above this many seconds a request is stuck, not slow; one bucket holds them all.
DEFAULT_LONGEST_SECONDS: Final = 120.0

# Lower ends of the request-size classes, in bytes.
_SIZE_CLASSES: Final = (0, 4096, 16384, 65536, 262144, 1048576, 4194304)

_NANOSECONDS: Final = 1e9
_FIRST_NANOSECONDS: Final = 100_000  # the first bound, on 16.2 to 21.x

INTERVAL: Final = seconds(
    "collector.histograms.interval",
    5.0,
    "Seconds between reads of an OSD's histograms, the reply that costs an OSD most. Work by class "
    "is counted from them too.",
)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The buckets of the latency axis."""

    bounds: Sequence[str]  # the `le` values, +Inf last
    rows: Sequence[int]  # how many of Ceph's rows are below each bound


@dataclass(frozen=True, slots=True)
class _HistogramPlan:
    """What to make of an OSD's op histograms, which all have the same axes."""

    ops: tuple[str, ...]
    axis: _Axis
    columns: Sequence[tuple[int, int]]  # of each size class: the first, and the one behind the last
    form: Form


@dataclass(slots=True)
class _HistogramsOsd:
    interval: ReadInterval
    families: Iterable[Family] = ()
    plan: _HistogramPlan | None = None


class HistogramsCollector(
    DaemonCollector[_HistogramsOsd],
    name="histograms",
    help="Latency histograms of client operations.",
):
    """Latency histograms of client ops."""

    longest = seconds(
        "collector.histograms.longest",
        DEFAULT_LONGEST_SECONDS,
        "Highest bucket bound, in seconds.",
        least=0.001,
        most=1000,
    )
    # Between two replies, scrapes get the families of the last one.
    interval = INTERVAL
    # Seven times the series.
    by_size = flag(
        "collector.histograms.by-size",
        False,
        f"Also report latency by request size, in {len(_SIZE_CLASSES)} classes.",
    )

    def needed(self, daemon: Daemon, state: _HistogramsOsd | None) -> Sequence[Command]:
        if state is not None and not state.interval.due:
            return ()
        return [Command(COMMAND), *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> _HistogramsOsd:
        return _HistogramsOsd(ReadInterval(self.interval))

    def families(self, view: DaemonView, state: _HistogramsOsd) -> Iterable[Family]:
        asked = state.interval.due
        state.interval.scraped(view.time, read=COMMAND in view.replies)
        if asked or COMMAND in view.replies:
            state.families = ()  # what is not known any more is not shown
            state.families = self._read_all(view, state)
        return state.families

    def _read_all(self, view: DaemonView, state: _HistogramsOsd) -> Iterable[Family]:
        histograms = histograms_of(view)
        counters = self.counters.loggers(view).required("osd")
        not_understood = view.not_understood
        sums = _sums(histograms, counters, not_understood)
        if state.plan is None or state.plan.ops != tuple(sums):
            state.plan = self._make_plan(view.labels, histograms, tuple(sums), not_understood)
        plan = state.plan
        read = {op: _rows(histograms[OPS[op][0]], plan.axis) for op in plan.ops}
        values: list[float] = []
        for op in plan.ops:
            values += _counts(plan.axis, map(sum, read[op]))
            values.append(sums[op])
        for rows in read.values():
            for first, end in plan.columns:
                values += _counts(plan.axis, (sum(row[first:end]) for row in rows))
        return plan.form.fill(values)

    def _make_plan(
        self,
        labels: LabelText,
        histograms: Mapping[str, Any],
        ops: tuple[str, ...],
        not_understood: NotUnderstood,
    ) -> _HistogramPlan:
        """The families, their samples in the order in which `_read_all` counts."""
        if not ops:
            raise ReplyMissing(COMMAND, "no histogram of client operations")
        axes = histograms[OPS[ops[0]][0]]["axes"]
        if axes[0].get("quant_size") != _FIRST_NANOSECONDS:
            # Ceph's name of the axis is wrong. Only the first bound tells what its values are.
            not_understood.add(
                "unit", f"{axes[0].get('name')}, quant_size {axes[0].get('quant_size')}"
            )
            raise ReplyMissing(COMMAND, "the latency axis has another unit")
        axis = _latency_axis(axes[0], self.longest)
        if len(axis.rows) < 2:
            not_understood.add("unit", f"{axes[0].get('name')} without bounds")
            raise ReplyMissing(COMMAND, "the latency axis has no bounds")
        whole = Family(
            "cephqos_osd_op_latency_seconds",
            "histogram",
            "Latency of client operations, queueing included, from the OSD's op histograms.",
        )
        split = Family(
            "cephqos_osd_op_size_latency_seconds",
            "histogram",
            "Latency of client operations of at least size_min_bytes and less than the next class.",
        )
        for op in ops:
            with_op = extend_labels(labels, {"op": op})
            whole.samples += [*_places(axis, with_op), ("_sum", with_op, 0)]
            for least in _SIZE_CLASSES if self.by_size else ():
                split.samples += _places(
                    axis, extend_labels(with_op, {"size_min_bytes": str(least)})
                )
        columns = [*_size_columns(axes[1])] if self.by_size else []
        return _HistogramPlan(ops, axis, columns, Form.of([whole, split] if columns else [whole]))


def histograms_of(view: DaemonView) -> Mapping[str, Any]:
    """An OSD's histograms by name."""
    histograms: Mapping[str, Any] | None = view.reply(COMMAND).get("osd")
    if histograms is None:
        view.not_understood.add("reply", f"{COMMAND}: no histograms of the osd")
        raise ReplyMissing(COMMAND, "no histograms of the osd")
    return histograms


def _sums(
    histograms: Mapping[str, Any], counters: Mapping[str, Any], not_understood: NotUnderstood
) -> dict[str, float]:
    """The operations that have a histogram and a sum of latencies, with the sum."""
    sums = {}
    for op, (name, latency) in OPS.items():
        seconds = figure(counters, latency, not_understood, "sum")
        if name not in histograms:
            not_understood.add("counter", name)
        elif seconds is not None:
            sums[op] = seconds
    return sums


def _rows(histogram: Mapping[str, Any], axis: _Axis) -> Sequence[Sequence[int]]:
    values: Sequence[Sequence[int]] = histogram["values"]
    if len(values) != axis.rows[-1] or len(values[0]) != len(histogram["axes"][1]["ranges"]):
        raise ReplyMissing(COMMAND, "malformed")
    return values


def _latency_axis(axis: Mapping[str, Any], longest: float) -> _Axis:
    bounds: list[str] = []
    rows: list[int] = []
    ranges = axis["ranges"]
    for i, row in enumerate(ranges):
        if "max" not in row or row["max"] < 0:
            continue
        # Rows are bounded by whole nanoseconds, both ends included.
        seconds = (row["max"] + 1) / _NANOSECONDS
        if seconds > longest:
            break
        bounds.append(repr(seconds))
        rows.append(i + 1)
    return _Axis([*bounds, "+Inf"], [*rows, len(ranges)])


def _size_columns(axis: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The columns of each size class: rows of the size axis from its lower end to the next's."""
    lows = [row.get("min", -1) for row in axis["ranges"]]
    # What lies below 0 (it cannot) would belong to the lowest class.
    starts = [0] + [sum(low < least for low in lows) for least in _SIZE_CLASSES[1:]]
    return zip(starts, [*starts[1:], len(lows)], strict=True)


def _places(axis: _Axis, labels: LabelText) -> list[Sample]:
    """The samples of one histogram but for its sum, without numbers."""
    buckets = [extend_labels(labels, {"le": le}) for le in axis.bounds]
    return [*(("_bucket", text, 0) for text in buckets), ("_count", labels, 0)]


def _counts(axis: _Axis, rows: Iterable[int]) -> Iterator[int]:
    """The numbers for `_places`: what lies below each bound, and all."""
    below = list(accumulate(rows, initial=0))
    yield from [below[end] for end in axis.rows]
    yield below[-1]
