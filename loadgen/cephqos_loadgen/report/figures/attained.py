"""Whether each class got its reservation on each OSD, second by second, from recorded metrics.

`attained_by_class` cuts the time into windows of WINDOW seconds that begin a scrape apart, and lets
the judge of all of cephqos (`cephqos_base.judge.Hold`) decide on each. `Attained` has the sums.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cephqos_base.judge import UNKNOWN, Hold
from cephqos_base.series import CLIENT, SCHEDULED, QosSeries
from cephqos_loadgen.report.arrays import windows
from cephqos_loadgen.report.arrays.intervals import Mask
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.figures import metrics

WINDOW: Final = 10.0
# A class has demand in a shard that had a queue of it within this many windows, as in the rules.
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
    """One class on one OSD from one time to another; rates in normalised operations per second."""

    osd: str
    work: str  # the class
    reservation: float | None
    limit: float | None
    attained: float
    attained_most: float  # of any window
    seconds: float  # with samples
    demand_seconds: float
    violated_seconds: float | None  # None: no reservation is recorded
    lag_most_seconds: float | None
    demand_ends: Floats  # ends of the windows with demand
    step: float  # seconds from one window's end to the next
    windows: int  # how many there are

    def part(self, seconds: float) -> float:
        """The share that these seconds, of demand or violation, are of all windows."""
        return min(1.0, seconds / (self.windows * self.step))

    @property
    def attainment(self) -> float | None:
        return self.attained / self.reservation if self.reservation else None

    def had_demand_at(self, times: Floats) -> Mask:
        """At which moments the last window had demand."""
        if not len(self.demand_ends):
            return np.zeros(len(times), np.bool_)
        last = np.searchsorted(self.demand_ends, times, side="right") - 1
        had_demand: Mask = (last >= 0) & (times - self.demand_ends[last] < self.step)
        return had_demand


def attained_by_class(
    samples: Samples, start: float, end: float, window: float = WINDOW
) -> Iterator[Attained]:
    """Every OSD and class that mClock schedules, except those without metrics."""
    for series in samples.of(QosSeries.OPS):
        osd, work = series.labels.get("ceph_daemon", ""), series.labels.get("class", "")
        if work in SCHEDULED:
            attained = _attained(samples, series, osd, work, start, end, window)
            if attained:
                yield attained


def kept_by_clients(samples: Samples, start: float, end: float) -> dict[str, float]:
    """Attainment of the clients' class: the minimum of all OSDs, and the sum of violated seconds.

    Empty if no OSD reports a reservation.
    """
    by_class = attained_by_class(samples, start, end)
    clients = [attained for attained in by_class if attained.work == CLIENT]
    shares = [osd.attainment for osd in clients if osd.attainment is not None]
    violated = [osd.violated_seconds for osd in clients if osd.violated_seconds is not None]
    if not shares:
        return {}
    return {metrics.ATTAINMENT.key: min(shares), metrics.VIOLATED.key: sum(violated)}


def _attained(
    samples: Samples, series: Series, osd: str, work: str, start: float, end: float, window: float
) -> Attained | None:
    times, rates = windows.window_rates(series, start, end, window)
    if not len(times):
        return None
    labels = {"ceph_daemon": osd, "class": work}
    hold = hold_of(samples, osd, work, times, rates, window)
    has_demand = hold.has_demand
    reservation = _level(samples.of(QosSeries.RESERVATION_OPS, **labels), end, start)
    step = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    gauges = samples.of(QosSeries.RESERVATION_LAG_SECONDS, **labels)
    lags = [lag for gauge in gauges if len(lag := gauge.between(start, end))]
    # An OSD may not answer at the end of the stretch: only the time with samples counts.
    seconds = series.covered(start, end)
    return Attained(
        osd=osd,
        work=work,
        reservation=reservation,
        limit=_level(samples.of(QosSeries.LIMIT_OPS, **labels), end, start),
        attained=series.growth(start, end) / seconds if seconds else 0.0,
        attained_most=float(rates.max()),
        seconds=seconds,
        demand_seconds=float(has_demand.sum()) * step,
        violated_seconds=float(hold.violated.sum()) * step if reservation else None,
        lag_most_seconds=max((float(lag.max()) for lag in lags), default=None),
        demand_ends=times[has_demand],
        step=step,
        windows=len(times),
    )


def _level(gauges: Sequence[Series], time: float, since: float) -> float | None:
    """The value of the only such gauge at this time. One that ended before `since` has none: a
    class without a limit has no gauge of it, and may have had one at an earlier point."""
    return gauges[0].at(time, since) if gauges else None


def hold_of(
    samples: Samples, osd: str, work: str, times: Floats, attained: Floats, window: float = WINDOW
) -> Hold:
    """What a class of an OSD shows in each window that ends at one of these times.

    `attained` are the class's rates over these windows. Demand must last for a whole window, so the
    judge gets the lowest value of a gauge in it.
    """

    def series_of(family: str, **labels: str) -> list[Series]:
        return samples.of(family, ceph_daemon=osd, **labels)

    # After a restart there is neither demand nor a violation, as in the rules.
    restarted = windows.restarts(series_of(QosSeries.DELIVERED_OPS), times, window)

    def rate(*families: str) -> Floats:
        counters = [series for family in families for series in series_of(family)]
        return np.where(restarted, UNKNOWN, windows.summed_rates(counters, times, window))

    def lowest(gauges: Sequence[Series], fold: np.ufunc = np.add) -> Floats:
        """Of several gauges, as of the shards, that of their sum or, by `fold`, their maximum."""
        values = windows.extremes(np.minimum, windows.combined(gauges, fold), times, window)
        return np.where(restarted, UNKNOWN, values)

    def level(family: str) -> float:
        value = _level(series_of(family, **of_class), times[-1], times[0] - window)
        return UNKNOWN if value is None else value

    of_class = {"class": work}
    queues = series_of(QosSeries.QUEUE_LENGTH, **of_class)
    in_progress = series_of(QosSeries.CLIENT_OPS_IN_PROGRESS)
    return Hold(
        work=work,
        attained=attained,
        reserved=level(QosSeries.RESERVATION_OPS),
        limit=level(QosSeries.LIMIT_OPS),
        queued=lowest(queues),
        lag=lowest(series_of(QosSeries.RESERVATION_LAG_SECONDS, **of_class), np.maximum),
        shards_with_demand=_shards_with_demand(queues, series_of(QosSeries.SHARDS), times, window),
        # Operations that wait in the scheduler's queue are not yet in progress for the OSD.
        in_progress=lowest([*in_progress, *queues] if in_progress else []),
        waiting=rate(QosSeries.CLIENT_WAIT_SECONDS, QosSeries.THROTTLE_WAIT_SECONDS),
        store_seconds=rate(QosSeries.STORE_SECONDS),
        store_ended=rate(QosSeries.STORE_TRANSACTIONS),
        store_used=lowest(series_of(QosSeries.THROTTLE_USED_RATIO, throttle="bluestore")),
        on_disk=bool(series_of(QosSeries.SCHEDULER_INFO, media="hdd")),
    )


def _shards_with_demand(
    queues: Sequence[Series], shards: Sequence[Series], times: Floats, window: float
) -> Floats:
    """The share of the shards with a queue. 1 if no shard has one: operations wait elsewhere."""
    all_shards = _level(shards, times[-1], times[0] - window) or math.inf
    with_queue = np.zeros(len(times))
    for queue in queues:
        if shards and queue.values.any():
            longest = windows.extremes(np.maximum, queue, times, _WINDOWS_OF_SHARDS * window)
            with_queue += longest > 0
    return np.where(with_queue, with_queue / all_shards, 1.0)
