"""Windows of time that move over series: rates of counters, extremes of gauges.

`times` are the ends of the windows, `window` is their length in seconds. A result has one value per
window, which is UNKNOWN without samples. `figures.attained` judges reservations with them.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cephqos_base.judge import UNKNOWN
from cephqos_loadgen.report.arrays.intervals import Mask
from cephqos_loadgen.report.arrays.samples import Series
from cephqos_loadgen.report.arrays.statistics import Floats

# A scrape may come late by as much: a window is whole without it.
_LATE_SECONDS: Final = 0.5


def window_rates(counter: Series, start: float, end: float, window: float) -> tuple[Floats, Floats]:
    """Ends of the windows between `start` and `end`, and the counter's rate over each."""
    inside = (counter.times >= start) & (counter.times <= end)
    within = Series(counter.name, counter.labels, counter.times[inside], counter.values[inside])
    times = within.times
    if len(times) < 2:
        return times[:0], times[:0]
    rates = _rates(within, times, window)
    first, last, _ = _samples(within, times, window)
    # Less than a window between the two times makes one window of what there is.
    longest = min(window, float(times[-1] - times[0]))
    is_whole = times[last] - times[first] >= longest - _LATE_SECONDS
    is_whole &= ~np.isnan(rates)
    return times[is_whole], rates[is_whole]


def summed_rates(counters: Sequence[Series], times: Floats, window: float) -> Floats:
    """The sum of the rates that are known."""
    total = np.full(len(times), UNKNOWN)
    for counter in counters:
        rates = _rates(counter, times, window)
        total = np.where(np.isnan(total), rates, total + np.nan_to_num(rates))
    return total


def _rates(counter: Series, times: Floats, window: float) -> Floats:
    """Growth from the first sample in each window to its last, per second."""
    first, last, known = _samples(counter, times, window)
    first, last, grown = first[known], last[known], counter.grown()
    rates = np.full(len(times), UNKNOWN)
    rates[known] = (grown[last] - grown[first]) / (counter.times[last] - counter.times[first])
    return rates


def restarts(counters: Sequence[Series], times: Floats, window: float) -> Mask:
    """The windows in which one of the counters restarted at 0."""
    restarted: Mask = np.zeros(len(times), np.bool_)
    for counter in counters:
        first, last, known = _samples(counter, times, window)
        falls = np.concatenate([[0], np.cumsum(np.diff(counter.values) < 0)])  # up to each sample
        restarted[known] |= falls[last[known]] > falls[first[known]]
    return restarted


def _samples(
    series: Series, times: Floats, window: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask]:
    """First and last sample of each window, and which windows have both."""
    last = np.searchsorted(series.times, times, side="right") - 1
    first = np.searchsorted(series.times, times - window - _LATE_SECONDS, side="left")
    known: Mask = last > first  # before its first sample, last is -1
    return first, last, known


def extremes(extreme: np.ufunc, gauge: Series | None, times: Floats, window: float) -> Floats:
    """The minimum or maximum in each window: `extreme` is np.minimum or np.maximum."""
    if gauge is None:
        return np.full(len(times), UNKNOWN)
    last = np.searchsorted(gauge.times, times, side="right")
    first = np.searchsorted(gauge.times, times - window, side="left")
    # Of all stretches between two of these, every second one is a window.
    ends = np.column_stack([first, last]).ravel()
    values = extreme.reduceat(np.append(gauge.values, UNKNOWN), ends)[::2]
    return np.where(last > first, values, UNKNOWN)


def combined(gauges: Sequence[Series], fold: np.ufunc = np.add) -> Series | None:
    """One series from several, such as those of shards: `fold` of all samples of each time."""
    if len(gauges) < 2:
        return gauges[0] if gauges else None
    times = gauges[0].times
    if all(np.array_equal(gauge.times, times) for gauge in gauges):  # as from one exporter
        return Series(gauges[0].name, {}, times, fold.reduce([gauge.values for gauge in gauges]))
    times = np.unique(np.concatenate([gauge.times for gauge in gauges]))
    total = np.zeros(len(times))
    for gauge in gauges:
        at = np.searchsorted(times, gauge.times)
        total[at] = fold(total[at], gauge.values)
    return Series(gauges[0].name, {}, times, total)
