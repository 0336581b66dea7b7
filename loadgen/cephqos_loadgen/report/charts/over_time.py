"""What happened in one repeat, second by second: clients, background work, classes, causes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cephqos_base.series import (
    BEST_EFFORT,
    CLIENT,
    RECOVERY,
    SCHEDULED,
    QosSeries,
    RecoverySeries,
    ScrubSeries,
)
from cephqos_loadgen.report.arrays.bins import Ints, merged_arrays
from cephqos_loadgen.report.arrays.intervals import Intervals
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.charts import plot_time
from cephqos_loadgen.report.charts.plot_time import Band, Line, Panel, Strip, stretches
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn

MOST_TIMELINES: Final = 12
_MOST_POINTS: Final = 600
_WINDOW: Final = 10.0
# A gauge is not known where its last sample is older.
_FRESH: Final = 5.0
_AVERAGED: Final = ("background", "attained")  # rates over a window, which lag behind
_PERCENTS: Final = (50.0, 95.0, 99.0)
CLASS_NAMES: Final = {CLIENT: "clients", RECOVERY: "recovery", BEST_EFFORT: "best effort"}


@dataclass(frozen=True, slots=True)
class Track:
    """A line of a timeline: NaN where it is not known."""

    panel: str
    name: str
    unit: str
    values: Floats

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.values).any())


def timelines(subject: Subject) -> Iterator[Chart]:
    """Of each point the first finished repeat."""
    drawn = [
        (subject.point_label(run, point), observed)
        for run in subject.runs
        for point, observed in run.first_repeats.items()
        if len(observed.intervals.middles)
    ]
    for number, (label, observed) in enumerate(drawn[:MOST_TIMELINES], start=1):
        yield timeline(observed, label, number)


def timeline(observed: Observation, label: str, number: int) -> Chart:
    """Clients, scrub and recovery, backlog and attainment of one repeat on one axis of time."""
    record = observed.record
    start = record.start_unix_seconds
    seconds = record.end_unix_seconds - start
    step = max(1.0, float(np.ceil(seconds / _MOST_POINTS)))
    times = np.arange(step / 2, seconds, step)
    tracks = [track for track in _tracks(observed, times, step) if track.known]
    title = f"Over time: {label}, repeat {record.repeat}"
    drawing = plot_time.over_time(
        title,
        list(_panels(times, tracks)),
        [
            Band(name, phase.start_unix_seconds - start, phase.end_unix_seconds - start)
            for name, phase in record.phases.items()
        ],
        [
            Band(work, begin - start, end - start)
            for work, spans in observed.stretches.items()
            for begin, end in spans
        ],
        strips(observed),
        seconds,
    )
    name = f"time-{number:02d}"
    return Chart(name, title, drawing, _data(name, title, times, tracks))


def _panels(times: Floats, tracks: Sequence[Track]) -> Iterator[Panel]:
    for panel in dict.fromkeys(track.panel for track in tracks):
        own = [track for track in tracks if track.panel == panel]
        lines = [
            Line(
                track.name,
                tuple(
                    (float(t), float(v))
                    for t, v in zip(times, track.values, strict=True)
                    if np.isfinite(v)
                ),
            )
            for track in own
        ]
        whose = f" of {own[0].name}" if len(own) == 1 else ""
        mean = f", mean of {_WINDOW:.0f} s" if panel in _AVERAGED else ""
        step = float(times[1] - times[0]) if len(times) > 1 else 0.0
        yield Panel(f"{panel}{whose}, {own[0].unit}{mean}", lines, step)


def _data(name: str, title: str, times: Floats, tracks: Sequence[Track]) -> Table:
    columns = [TableColumn(f"{track.panel}, {track.name}", track.unit) for track in tracks]
    rows = tuple(
        (Cell(f"{t:.1f}", float(t)), *(_cell(track.values[index]) for track in tracks))
        for index, t in enumerate(times)
    )
    return Table(f"chart-{name}", title, (TableColumn("Time", "s"), *columns), rows)


def _cell(value: float) -> Cell:
    # Six digits: CSV files of an hour stay readable.
    return Cell("", None) if not np.isfinite(value) else Cell(f"{value:.6g}", float(f"{value:.6g}"))


def _tracks(observed: Observation, times: Floats, step: float) -> Iterator[Track]:
    yield from _clients(observed, times, step)
    moments = times + observed.record.start_unix_seconds
    window = max(_WINDOW, step)
    samples = observed.samples
    for name, family in (
        ("scrub", ScrubSeries.POOL_OBJECTS),
        ("recovery", RecoverySeries.POOL_OBJECTS),
    ):
        rates = rate(samples.of(family), moments, window)
        if np.nanmax(rates, initial=0.0) > 0:
            yield Track("background", name, "objects/s", rates)
    yield from _classes(samples, moments, window)


def _classes(samples: Samples, moments: Floats, window: float) -> Iterator[Track]:
    """Of each class, over all OSDs: what waits, and what it got of what is reserved."""
    for work in SCHEDULED:
        queues = samples.of(QosSeries.QUEUE_LENGTH, **{"class": work})
        if queues:
            yield Track("backlog", CLASS_NAMES[work], "requests", level(queues, moments))
    for work in SCHEDULED:
        reserved = level(samples.of(QosSeries.RESERVATION_OPS, **{"class": work}), moments)
        attained = rate(samples.of(QosSeries.OPS, **{"class": work}), moments, window)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(reserved > 0, attained / reserved * 100, np.nan)
        yield Track("attained", CLASS_NAMES[work], "% of reserved", share)


def rate(counters: Sequence[Series], moments: Floats, window: float) -> Floats:
    """Growth per second of all these counters together over the window before each moment."""

    def growth(series: Series) -> Floats:
        grown, times = series.grown(), series.times
        begin = np.maximum(moments - window, times[0])
        span = np.minimum(moments, times[-1]) - begin
        growth = np.interp(moments, times, grown) - np.interp(begin, times, grown)
        return np.where(span > 0, growth / np.maximum(span, 1e-9), np.nan)

    return _together([it for it in counters if len(it.times) > 1], moments, growth)


def level(gauges: Sequence[Series], moments: Floats) -> Floats:
    """All these gauges together, each as of its last sample."""

    def value(series: Series) -> Floats:
        return series.values[np.searchsorted(series.times, moments, side="right") - 1]

    return _together([it for it in gauges if len(it.times)], moments, value)


def _together(
    several: Sequence[Series], moments: Floats, value: Callable[[Series], Floats]
) -> Floats:
    """The sum of what is known of each; not known at all where one of them has a gap: without its
    part the sum would seem to fall."""
    total = np.full(len(moments), np.nan)
    gaps = np.zeros(len(moments), np.bool_)
    for series in several:
        last = np.searchsorted(series.times, moments, side="right") - 1
        there = (last >= 0) & (moments <= series.times[-1] + _FRESH)
        gaps |= there & (moments - series.times[last] > _FRESH)
        own = np.where(there, value(series), np.nan)
        total = np.where(np.isnan(total), own, total + np.nan_to_num(own))
    return np.where(gaps, np.nan, total)


def _clients(observed: Observation, times: Floats, step: float) -> Iterator[Track]:
    """Throughput and latency of all clients together; long repeats in longer steps."""
    table = observed.intervals
    since = table.middles - observed.record.start_unix_seconds
    slot = np.clip(np.floor(since / step), 0, len(times) - 1).astype(np.int64)
    there = np.bincount(slot, minlength=len(times)) > 0
    done, took = _spread(table, observed.record.start_unix_seconds, step, len(times))
    # Where a load fills a small part of its step it has no rate: it would look like a fall.
    rates = np.where(took >= step / 2, done / np.maximum(took, step / 2), np.nan)
    yield Track("throughput", "clients", "IOPS", rates)
    owner_slot = slot[table.owner]
    order = np.argsort(owner_slot, kind="stable")
    edges = np.searchsorted(owner_slot[order], np.arange(len(times) + 1))
    by_percent = {percent: np.full(len(times), np.nan) for percent in _PERCENTS}
    for index in np.flatnonzero(there):
        chosen = order[edges[index] : edges[index + 1]]
        bins = merged_arrays(table.centres[chosen], table.counts[chosen])
        for percent, values in by_percent.items():
            value = bins.percentile_seconds(percent)
            values[index] = np.nan if value is None else value * 1e3
    for percent, values in by_percent.items():
        yield Track("latency", f"p{percent:g}", "ms", values)


def _spread(table: Intervals, start: float, step: float, count: int) -> tuple[Floats, Floats]:
    """I/Os of each step of time, and seconds of it in which a load ran. Intervals are not in step
    with these: each counts in the steps that it lies in, for its part in each."""
    edges = np.arange(count + 1, dtype=np.float64) * step
    done, took = np.zeros(count), np.zeros(count)
    order = np.lexsort((table.middles, table.job))
    for own in np.split(order, np.searchsorted(table.job[order], np.arange(1, len(table.jobs)))):
        ends = table.middles[own] + table.seconds[own] / 2 - start
        begins = np.maximum(ends - table.seconds[own], np.concatenate([[-np.inf], ends[:-1]]))
        begins = np.minimum(begins, ends)
        done += _in_steps(edges, begins, ends, table.ios[own])
        took = np.maximum(took, _in_steps(edges, begins, ends, ends - begins))
    return done, took


def _in_steps(edges: Floats, begins: Floats, ends: Floats, amounts: Floats | Ints) -> Floats:
    """How much of these amounts falls between each two edges; each is spread evenly from where it
    begins to where it ends."""
    if not len(amounts):
        return np.zeros(len(edges) - 1)
    sums = np.concatenate([[0.0], np.cumsum(amounts)])
    at = np.stack([begins, ends], axis=1).ravel()
    so_far = np.stack([sums[:-1], sums[1:]], axis=1).ravel()
    return np.diff(np.interp(edges, at, so_far))


def strips(observed: Observation) -> list[Strip]:
    """One strip per class and cause: on how many OSDs it was the main one at each second."""
    start = observed.record.start_unix_seconds
    known = {series.labels.get("ceph_daemon") for series in observed.samples.of(QosSeries.OPS)}
    most = len(known | {cause.osd for cause in observed.causes or ()})
    osds: dict[tuple[str, str], dict[int, set[str]]] = {}
    for cause in observed.causes or ():
        seconds = osds.setdefault((cause.work, cause.cause), {})
        for time in cause.times:
            seconds.setdefault(round(float(time) - start), set()).add(cause.osd)
    drawn = []
    for (work, name), seconds in sorted(osds.items()):
        times = sorted(seconds)
        counts = [len(seconds[time]) for time in times]
        short = work.removeprefix("background_").replace("_", " ")
        drawn.append(Strip(f"{short}: {name}", stretches(times, counts), most))
    return drawn
