"""The lines of a chart over time, as numbers: clients, background work, classes.

`tracks_of` makes them for `over_time`. Each has a value for every step of the chart's time axis.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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
from cephqos_loadgen.report.figures.observe import Observation

# Rates of counters are means over this time before each moment, as long as the windows in which a
# report judges reservations (`WINDOW` of `figures.attained`).
RATE_SECONDS: Final = 10.0
# A series is not known where its last sample is older.
_FRESH_SECONDS: Final = 5.0
_PERCENTS: Final = (50.0, 95.0, 99.0)
CLASS_NAMES: Final = {CLIENT: "clients", RECOVERY: "recovery", BEST_EFFORT: "best effort"}


@dataclass(frozen=True, slots=True)
class Track:
    """One line of a panel. A value that is not known is NaN."""

    panel: str
    name: str
    unit: str
    values: Floats  # one for each step

    @property
    def is_known(self) -> bool:
        return bool(np.isfinite(self.values).any())


def tracks_of(observed: Observation, times: Floats, step: float) -> Iterator[Track]:
    """All lines of one repeat. `times` are the middles of the steps, in seconds since its start."""
    yield from _client_tracks(observed, times, step)
    moments = times + observed.record.start_unix_seconds
    window = max(RATE_SECONDS, step)
    samples = observed.samples
    for name, family in (
        ("scrub", ScrubSeries.POOL_OBJECTS),
        ("recovery", RecoverySeries.POOL_OBJECTS),
    ):
        rates = rate(samples.of(family), moments, window)
        if np.nanmax(rates, initial=0.0) > 0:
            yield Track("background", name, "objects/s", rates)
    yield from _class_tracks(samples, moments, window)


def _class_tracks(samples: Samples, moments: Floats, window: float) -> Iterator[Track]:
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

    def growth_per_second(series: Series) -> Floats:
        grown, times = series.grown(), series.times
        begin = np.maximum(moments - window, times[0])
        seconds = np.minimum(moments, times[-1]) - begin
        growth = np.interp(moments, times, grown) - np.interp(begin, times, grown)
        return np.where(seconds > 0, growth / np.maximum(seconds, 1e-9), np.nan)

    usable = [series for series in counters if len(series.times) > 1]
    return _sum_of_known(usable, moments, growth_per_second)


def grown_since(counters: Sequence[Series], moments: Floats, start: float) -> Floats:
    """Growth of all these counters together from `start` to each moment."""

    def growth(series: Series) -> Floats:
        grown = series.grown()
        return np.interp(moments, series.times, grown) - np.interp(start, series.times, grown)

    return _sum_of_known([series for series in counters if len(series.times)], moments, growth)


def mean_latency(intervals: Intervals, phase: str, moments: Floats, step: float) -> Floats:
    """In seconds: of what completed in the intervals whose middle lies in each step of the phase.
    `moments` are the middles of the steps."""
    chosen = intervals.of(phase)
    at = np.floor((intervals.middles[chosen] - moments[0]) / step + 0.5).astype(np.int64)
    inside = (at >= 0) & (at < len(moments))
    ios = np.bincount(at[inside], intervals.ios[chosen][inside], len(moments))
    sums = np.bincount(at[inside], intervals.latency_sum[chosen][inside], len(moments))
    return np.where(ios > 0, sums / np.maximum(ios, 1), np.nan)


def level(gauges: Sequence[Series], moments: Floats) -> Floats:
    """The sum of all these gauges at each moment, each as of its last sample."""

    def last_value(series: Series) -> Floats:
        return series.values[np.searchsorted(series.times, moments, side="right") - 1]

    return _sum_of_known([series for series in gauges if len(series.times)], moments, last_value)


def _sum_of_known(
    several: Sequence[Series], moments: Floats, values_of: Callable[[Series], Floats]
) -> Floats:
    """At each moment the sum of `values_of` over the series that have samples then.

    NaN where one of them has a gap: without its part the sum would seem to fall. A series that has
    not begun yet, or has ended, has no part.
    """
    total = np.full(len(moments), np.nan)
    in_a_gap = np.zeros(len(moments), np.bool_)
    for series in several:
        last = np.searchsorted(series.times, moments, side="right") - 1
        has_part = (last >= 0) & (moments <= series.times[-1] + _FRESH_SECONDS)
        in_a_gap |= has_part & (moments - series.times[last] > _FRESH_SECONDS)
        part = np.where(has_part, values_of(series), np.nan)
        total = np.where(np.isnan(total), part, total + np.nan_to_num(part))
    return np.where(in_a_gap, np.nan, total)


def _client_tracks(observed: Observation, times: Floats, step: float) -> Iterator[Track]:
    """Throughput and percentiles of latency of all clients together."""
    start = observed.record.start_unix_seconds
    done = _done_in_steps(observed.intervals, start, step, len(times))
    # A step that a load fills by less than half has no rate: it would look like a fall.
    half = step / 2
    rates = np.where(done.seconds >= half, done.ios / np.maximum(done.seconds, half), np.nan)
    yield Track("throughput", "clients", "IOPS", rates)
    latencies = _latency_percentiles(observed.intervals, start, step, len(times))
    for percent, milliseconds in latencies.items():
        yield Track("latency", f"p{percent:g}", "ms", milliseconds)


def _latency_percentiles(
    intervals: Intervals, start: float, step: float, count: int
) -> dict[float, Floats]:
    """By percent: milliseconds in each of `count` steps, by the bins of the intervals whose middle
    lies in it."""
    since = intervals.middles - start
    step_of_interval = np.clip(np.floor(since / step), 0, count - 1).astype(np.int64)
    step_of_bin = step_of_interval[intervals.owner]
    by_step = np.argsort(step_of_bin, kind="stable")
    edges = np.searchsorted(step_of_bin[by_step], np.arange(count + 1))
    percentiles = {percent: np.full(count, np.nan) for percent in _PERCENTS}
    for index in np.unique(step_of_interval):
        chosen = by_step[edges[index] : edges[index + 1]]
        bins = merged_arrays(intervals.centres[chosen], intervals.counts[chosen])
        for percent, milliseconds in percentiles.items():
            seconds = bins.percentile_seconds(percent)
            milliseconds[index] = np.nan if seconds is None else seconds * 1e3
    return percentiles


class _DoneInSteps(NamedTuple):
    """What the clients did in each step of the time axis."""

    ios: Floats
    seconds: Floats  # of the step, in which a load ran


def _done_in_steps(intervals: Intervals, start: float, step: float, count: int) -> _DoneInSteps:
    """An interval seldom begins where a step does: its I/Os are shared out among the steps that it
    lies in."""
    edges = np.arange(count + 1, dtype=np.float64) * step
    ios, seconds = np.zeros(count), np.zeros(count)
    order = np.lexsort((intervals.middles, intervals.job))
    first_of_job = np.searchsorted(intervals.job[order], np.arange(1, len(intervals.jobs)))
    for of_job in np.split(order, first_of_job):
        ends = intervals.middles[of_job] + intervals.seconds[of_job] / 2 - start
        # An interval does not begin before the end of the one before it: lengths are rounded.
        ends_before = np.concatenate([[-np.inf], ends[:-1]])
        begins = np.minimum(np.maximum(ends - intervals.seconds[of_job], ends_before), ends)
        ios += _shared_out(edges, begins, ends, intervals.ios[of_job])
        seconds = np.maximum(seconds, _shared_out(edges, begins, ends, ends - begins))
    return _DoneInSteps(ios, seconds)


def _shared_out(edges: Floats, begins: Floats, ends: Floats, amounts: Floats | Ints) -> Floats:
    """How much of these amounts falls between each two edges. An amount is spread evenly from where
    it begins to where it ends."""
    if not len(amounts):
        return np.zeros(len(edges) - 1)
    sums = np.concatenate([[0.0], np.cumsum(amounts)])
    moments = np.stack([begins, ends], axis=1).ravel()
    so_far = np.stack([sums[:-1], sums[1:]], axis=1).ravel()
    return np.diff(np.interp(edges, moments, so_far))
