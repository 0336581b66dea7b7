"""Whether each class got its reservation on each OSD, second by second, from recorded metrics.

Figures are over windows of WINDOW seconds. The judge decides on each window by itself.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cephqos_base.judge import UNKNOWN, Hold
from cephqos_base.series import CLIENT, SCHEDULED, QosSeries
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.intervals import Mask
from cephqos_loadgen.report.figures.samples import Samples, Series
from cephqos_loadgen.report.figures.statistics import Floats

WINDOW: Final = 10.0
# The shards in which a class has demand are those of this many windows, as in the rules.
_WINDOWS_OF_SHARDS: Final = 5
FAMILIES: Final = frozenset(
    {
        QosSeries.CAPACITY_OPS,
        QosSeries.CLIENT_OPS_IN_PROGRESS,
        QosSeries.CLIENT_WAIT_SECONDS,
        QosSeries.DELIVERED_OPS,
        QosSeries.LIMIT_OPS,
        QosSeries.OPS,
        QosSeries.QUEUE_LENGTH,
        QosSeries.RESERVATION_LAG_SECONDS,
        QosSeries.RESERVATION_OPS,
        QosSeries.SCHEDULER_INFO,
        QosSeries.SHARDS,
        QosSeries.STORE_SECONDS,
        QosSeries.STORE_TRANSACTIONS,
        QosSeries.THROTTLE_USED_RATIO,
        QosSeries.THROTTLE_WAIT_SECONDS,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Attained:
    """One class on one OSD in a stretch of time, normalised operations per second."""

    osd: str
    work: str  # the class
    reservation: float | None
    limit: float | None
    attained: float
    attained_most: float  # over WINDOW seconds
    seconds: float
    demand_seconds: float
    violated_seconds: float | None  # None: no reservation is recorded
    lag_most_seconds: float | None
    demand_ends: Floats  # of the windows with demand
    step: float  # seconds from one window's end to the next

    @property
    def attainment(self) -> float | None:
        return self.attained / self.reservation if self.reservation else None

    def wanted_at(self, times: Floats) -> Mask:
        """At which moments the last window had demand."""
        if not len(self.demand_ends):
            return np.zeros(len(times), np.bool_)
        last = np.searchsorted(self.demand_ends, times, side="right") - 1
        found: Mask = (last >= 0) & (times - self.demand_ends[last] < self.step)
        return found


def attained_by_class(
    samples: Samples, start: float, end: float, window: float = WINDOW
) -> Iterator[Attained]:
    """Every OSD and class that mClock schedules, except those without metrics."""
    for series in samples.of(QosSeries.OPS):
        osd, work = series.labels.get("ceph_daemon", ""), series.labels.get("class", "")
        if work in SCHEDULED:
            found = _attained(samples, series, (osd, work), (start, end), window)
            if found:
                yield found


def kept_by_clients(samples: Samples, start: float, end: float) -> dict[str, float]:
    """Attainment of the clients' class: the minimum of all OSDs, and the sum of violated seconds.

    Empty if no OSD reports a reservation.
    """
    found = [p for p in attained_by_class(samples, start, end) if p.work == CLIENT]
    shares = [p.attainment for p in found if p.attainment is not None]
    lost = [p.violated_seconds for p in found if p.violated_seconds is not None]
    if not shares:
        return {}
    return {metrics.ATTAINMENT.key: min(shares), metrics.VIOLATED.key: sum(lost)}


def _attained(
    samples: Samples,
    series: Series,
    of: tuple[str, str],
    within: tuple[float, float],
    window: float,
) -> Attained | None:
    (osd, work), (start, end) = of, within
    times, rates = window_rates(series, start, end, window)
    if not len(times):
        return None
    labels = {"ceph_daemon": osd, "class": work}
    hold = hold_of(samples, osd, work, times, rates, window)
    wanted = hold.has_demand
    reservation = _level(samples.of(QosSeries.RESERVATION_OPS, **labels), end)
    step = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    lags = [
        s.values[(s.times >= start) & (s.times <= end)]
        for s in samples.of(QosSeries.RESERVATION_LAG_SECONDS, **labels)
    ]
    worst = max((float(lag.max()) for lag in lags if len(lag)), default=None)
    # An OSD may not answer at the end of the stretch: only the time with samples counts.
    seconds = series.covered(start, end)
    return Attained(
        osd=osd,
        work=work,
        reservation=reservation,
        limit=_level(samples.of(QosSeries.LIMIT_OPS, **labels), end),
        attained=series.growth(start, end) / seconds if seconds else 0.0,
        attained_most=float(rates.max()),
        seconds=seconds,
        demand_seconds=float(wanted.sum()) * step,
        violated_seconds=float(hold.violated.sum()) * step if reservation else None,
        lag_most_seconds=worst,
        demand_ends=times[wanted],
        step=step,
    )


def _level(found: Sequence[Series], time: float) -> float | None:
    """The value of the only such gauge at this time."""
    return found[0].at(time) if found else None


def _figure(found: Sequence[Series], time: float) -> float:
    level = _level(found, time)
    return UNKNOWN if level is None else level


def window_rates(
    series: Series, start: float, end: float, window: float = WINDOW
) -> tuple[Floats, Floats]:
    """Ends of the windows between `start` and `end`, and the counter's rate over each."""
    kept = (series.times >= start) & (series.times <= end)
    within = Series(series.name, series.labels, series.times[kept], series.values[kept])
    times = within.times
    if len(times) < 2:
        return times[:0], times[:0]
    rates = _rates_at(within, times, window)
    first, last, _ = _windows(within, times, window)
    whole = times[last] - times[first] >= min(window, float(times[-1] - times[0])) - 0.5
    whole &= ~np.isnan(rates)
    return times[whole], rates[whole]


def _windows(
    series: Series, times: Floats, window: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask]:
    """First and last sample of the windows that end at these times, and which windows have both."""
    last = np.searchsorted(series.times, times, side="right") - 1
    first = np.searchsorted(series.times, times - window - 0.5, side="left")
    seen: Mask = last > first  # before its first sample, last is -1
    return first, last, seen


def _rates_at(counter: Series, times: Floats, window: float) -> Floats:
    """Its rate over the window that ends at each time; UNKNOWN without two samples there."""
    first, last, seen = _windows(counter, times, window)
    first, last, grown = first[seen], last[seen], counter.grown()
    found = np.full(len(times), UNKNOWN)
    found[seen] = (grown[last] - grown[first]) / (counter.times[last] - counter.times[first])
    return found


def _rates_together(counters: Sequence[Series], times: Floats, window: float) -> Floats:
    """The sum of the rates that are known; UNKNOWN where none is."""
    found = np.full(len(times), UNKNOWN)
    for counter in counters:
        rate = _rates_at(counter, times, window)
        found = np.where(np.isnan(found), rate, found + np.nan_to_num(rate))
    return found


def _restarted(counters: Sequence[Series], times: Floats, window: float) -> Mask:
    """The windows, by their end, in which one of the counters restarted at 0."""
    found: Mask = np.zeros(len(times), np.bool_)
    for counter in counters:
        first, last, seen = _windows(counter, times, window)
        falls = np.concatenate([[0], np.cumsum(np.diff(counter.values) < 0)])
        found[seen] |= falls[last[seen]] > falls[first[seen]]
    return found


def hold_of(
    samples: Samples,
    osd: str,
    work: str,
    times: Floats,
    attained: Floats,
    window: float = WINDOW,
) -> Hold:
    """What a class of an OSD shows in each window that ends at one of these times."""
    own = {"ceph_daemon": osd}

    def of(family: str, **labels: str) -> list[Series]:
        return samples.of(family, **own, **labels)

    # After a restart there is neither demand nor a violation, as in the rules.
    restarted = _restarted(of(QosSeries.DELIVERED_OPS), times, window)

    def rate(*families: str) -> Floats:
        counters = [s for family in families for s in of(family)]
        return np.where(restarted, UNKNOWN, _rates_together(counters, times, window))

    def least(gauges: Sequence[Series], fold: np.ufunc = np.add) -> Floats:
        found = _extreme(np.minimum, together(gauges, fold), times, window)
        return np.where(restarted, UNKNOWN, found)

    of_class = {"class": work}
    queues = of(QosSeries.QUEUE_LENGTH, **of_class)
    there = of(QosSeries.CLIENT_OPS_IN_PROGRESS)
    return Hold(
        work=work,
        attained=attained,
        reserved=_figure(of(QosSeries.RESERVATION_OPS, **of_class), times[-1]),
        limit=_figure(of(QosSeries.LIMIT_OPS, **of_class), times[-1]),
        queued=least(queues),
        lag=least(of(QosSeries.RESERVATION_LAG_SECONDS, **of_class), np.maximum),
        shards_with_demand=_shards_with_demand(queues, of(QosSeries.SHARDS), times, window),
        # Operations that wait in the scheduler's queue are not yet in progress for the OSD.
        in_progress=least([*there, *queues] if there else []),
        waiting=rate(QosSeries.CLIENT_WAIT_SECONDS, QosSeries.THROTTLE_WAIT_SECONDS),
        store_seconds=rate(QosSeries.STORE_SECONDS),
        store_ended=rate(QosSeries.STORE_TRANSACTIONS),
        store_used=least(of(QosSeries.THROTTLE_USED_RATIO, throttle="bluestore")),
        on_disk=bool(of(QosSeries.SCHEDULER_INFO, media="hdd")),
    )


def _shards_with_demand(
    queues: Sequence[Series], shards: Sequence[Series], times: Floats, window: float
) -> Floats:
    """The share of the shards with a queue. 1 if no shard has one: operations wait elsewhere."""
    count = _level(shards, times[-1]) or math.inf
    long = _WINDOWS_OF_SHARDS * window
    wanting = np.zeros(len(times))
    for queue in queues:
        if shards and queue.values.any():
            wanting += _extreme(np.maximum, [queue], times, long) > 0
    return np.where(wanting, wanting / count, 1.0)


def together(gauges: Sequence[Series], fold: np.ufunc = np.add) -> list[Series]:
    """One series from several, such as those of shards: `fold` of all samples of each time."""
    if len(gauges) < 2:
        return list(gauges)
    times = gauges[0].times
    if all(np.array_equal(gauge.times, times) for gauge in gauges):  # as from one exporter
        return [Series(gauges[0].name, {}, times, fold.reduce([it.values for it in gauges]))]
    times = np.unique(np.concatenate([gauge.times for gauge in gauges]))
    total = np.zeros(len(times))
    for gauge in gauges:
        at = np.searchsorted(times, gauge.times)
        total[at] = fold(total[at], gauge.values)
    return [Series(gauges[0].name, {}, times, total)]


def _extreme(of: np.ufunc, gauges: Sequence[Series], times: Floats, window: float) -> Floats:
    """Minimum or maximum in the window that ends at each time; UNKNOWN without a sample."""
    if not gauges:
        return np.full(len(times), UNKNOWN)
    (gauge,) = gauges
    last = np.searchsorted(gauge.times, times, side="right")
    first = np.searchsorted(gauge.times, times - window, side="left")
    ends = np.column_stack([first, last]).ravel()
    found = of.reduceat(np.append(gauge.values, UNKNOWN), ends)[::2]
    return np.where(last > first, found, UNKNOWN)
