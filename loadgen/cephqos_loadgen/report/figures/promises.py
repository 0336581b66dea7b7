"""Whether OSDs got what mClock promises each class, second by second, from recorded metrics.

Rates are over windows of WINDOW seconds. A class has demand in a window when requests waited in its
queue at every sample of it. Clients have demand too when operations were in progress at every
sample, and waited before the scheduler or piled up behind it: many transactions in the store, and
each takes long for its media. A window is violated when the class had demand and got too little of
its reservation. Bounds (`results.demand`) are those of the alerts' rules, which see more evidence,
and hold a violation longer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cephqos_base.series import CLIENT, SCHEDULED, QosSeries
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.intervals import Mask
from cephqos_loadgen.report.figures.samples import Samples, Series
from cephqos_loadgen.report.figures.statistics import Floats
from cephqos_loadgen.results import demand

WINDOW: Final = 10.0
FAMILIES: Final = frozenset(
    {
        *(
            QosSeries.OPS,
            QosSeries.RESERVATION_OPS,
            QosSeries.LIMIT_OPS,
            QosSeries.QUEUE_LENGTH,
            QosSeries.CAPACITY_OPS,
        ),
        *(QosSeries.DELIVERED_OPS, QosSeries.RESERVATION_LAG_SECONDS, QosSeries.RESERVATION_RATIO),
        *(
            QosSeries.CLIENT_OPS_IN_PROGRESS,
            QosSeries.CLIENT_WAIT_SECONDS,
            QosSeries.THROTTLE_WAIT_SECONDS,
        ),
        *(QosSeries.STORE_SECONDS, QosSeries.STORE_TRANSACTIONS),
        *(QosSeries.THROTTLE_USED_RATIO, QosSeries.SCHEDULER_INFO),
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class KeptPromise:
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


def promises(samples: Samples, start: float, end: float) -> Iterator[KeptPromise]:
    """Every OSD and class that mClock schedules; nothing where its metrics are absent."""
    for series in samples.of(QosSeries.OPS):
        osd, work = series.labels.get("ceph_daemon", ""), series.labels.get("class", "")
        if work in SCHEDULED:
            found = _promise(samples, series, osd, work, start, end)
            if found:
                yield found


def kept_by_clients(samples: Samples, start: float, end: float) -> dict[str, float]:
    """Figures of a load: the least attainment of the clients' class on any OSD, and the seconds in
    which it was violated, of all OSDs; nothing where no OSD reports a reservation."""
    found = [p for p in promises(samples, start, end) if p.work == CLIENT]
    shares = [p.attainment for p in found if p.attainment is not None]
    lost = [p.violated_seconds for p in found if p.violated_seconds is not None]
    if not shares:
        return {}
    return {metrics.ATTAINMENT.key: min(shares), metrics.VIOLATED.key: sum(lost)}


def _promise(
    samples: Samples, series: Series, osd: str, work: str, start: float, end: float
) -> KeptPromise | None:
    times, rates = window_rates(series, start, end)
    if not len(times):
        return None
    labels = {"ceph_daemon": osd, "class": work}
    reservation = _level(samples.of(QosSeries.RESERVATION_OPS, **labels), end)
    wanted = held(together(samples.of(QosSeries.QUEUE_LENGTH, **labels)), times)
    if work == CLIENT:
        wanted |= client_demand(samples, osd, times)
    step = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    short = wanted & (rates < demand.SHORTFALL * (reservation or 0.0))
    lags = [
        s.values[(s.times >= start) & (s.times <= end)]
        for s in samples.of(QosSeries.RESERVATION_LAG_SECONDS, **labels)
    ]
    worst = max((float(lag.max()) for lag in lags if len(lag)), default=None)
    # An OSD that does not answer at the end goes on all the same.
    seconds = series.covered(start, end)
    return KeptPromise(
        osd=osd,
        work=work,
        reservation=reservation,
        limit=_level(samples.of(QosSeries.LIMIT_OPS, **labels), end),
        attained=series.growth(start, end) / seconds if seconds else 0.0,
        attained_most=float(rates.max()),
        seconds=seconds,
        demand_seconds=float(wanted.sum()) * step,
        violated_seconds=float(short.sum()) * step if reservation else None,
        lag_most_seconds=worst,
        demand_ends=times[wanted],
        step=step,
    )


def _level(found: Sequence[Series], time: float) -> float | None:
    """The value of the only such gauge at this time."""
    return found[0].at(time) if found else None


def window_rates(series: Series, start: float, end: float) -> tuple[Floats, Floats]:
    """Ends of the windows that lie within, and the counter's rate over each."""
    kept = (series.times >= start) & (series.times <= end)
    times, values = series.times[kept], series.values[kept]
    if len(times) < 2:
        return times[:0], values[:0]
    steps = np.diff(values)
    grown = np.concatenate([[0.0], np.cumsum(np.where(steps >= 0, steps, values[1:]))])
    first = np.searchsorted(times, times - WINDOW - 0.5, side="left")
    whole = times - times[first] >= min(WINDOW, float(times[-1] - times[0])) - 0.5
    whole &= times > times[first]
    span = times[whole] - times[first[whole]]
    return times[whole], (grown[whole] - grown[first[whole]]) / span


def client_demand(samples: Samples, osd: str, times: Floats) -> Mask:
    """Whether clients' operations were there all the time, and waited or piled up in the store."""
    own = {"ceph_daemon": osd}
    # Operations that wait in the scheduler's queue are not yet in progress for the OSD.
    there = samples.of(QosSeries.CLIENT_OPS_IN_PROGRESS, **own)
    there += samples.of(QosSeries.QUEUE_LENGTH, **own, **{"class": CLIENT}) if there else []
    present = held(together(there), times, demand.PRESENT)
    waits = samples.of(QosSeries.CLIENT_WAIT_SECONDS, **own)
    waits += samples.of(QosSeries.THROTTLE_WAIT_SECONDS, **own)
    return present & ((_rates_at(waits, times) >= demand.WAITING) | _piling_up(samples, osd, times))


def _piling_up(samples: Samples, osd: str, times: Floats) -> Mask:
    """Many transactions in the store, each longer than its media explains; or none of them ends."""
    own = {"ceph_daemon": osd}
    seconds = _rates_at(samples.of(QosSeries.STORE_SECONDS, **own), times)
    counters = samples.of(QosSeries.STORE_TRANSACTIONS, **own)
    ended = _rates_at(counters, times)
    disks = samples.of(QosSeries.SCHEDULER_INFO, media="hdd", **own)
    bound = demand.STORE_LATENCY["hdd" if disks else "ssd"]
    slow = (ended > 0) & (seconds >= demand.IN_STORE) & (seconds >= bound * ended)
    used = samples.of(QosSeries.THROTTLE_USED_RATIO, throttle="bluestore", **own)
    found: Mask = slow
    if counters:
        found |= held(used, times, np.finfo(float).tiny) & (ended == 0)
    return found


def _rates_at(counters: Sequence[Series], times: Floats) -> Floats:
    """The rate of all counters together over the window that ends at each time."""
    found = np.zeros(len(times))
    for counter in counters:
        last = np.searchsorted(counter.times, times, side="right") - 1
        first = np.maximum(0, np.searchsorted(counter.times, times - WINDOW, side="right") - 1)
        span = counter.times[last] - counter.times[first]
        grown = np.maximum(0.0, counter.values[last] - counter.values[first])
        found += np.where(span > 0, grown / np.maximum(span, 1e-9), 0.0)
    return found


def together(gauges: Sequence[Series]) -> list[Series]:
    """Their sum at every time at which one of them has a sample; those of shards, for example."""
    if len(gauges) < 2:
        return list(gauges)
    times = np.unique(np.concatenate([gauge.times for gauge in gauges]))
    total = np.zeros(len(times))
    for gauge in gauges:
        total[np.searchsorted(times, gauge.times)] += gauge.values
    return [Series(gauges[0].name, {}, times, total)]


def held(queues: Sequence[Series], times: Floats, least: float = 1) -> Mask:
    """Whether so much waited at every sample of the window that ends at each time."""
    found = np.zeros(len(times), np.bool_)
    for queue in queues:
        waiting = np.concatenate([[0], np.cumsum(queue.values >= least)])
        last = np.searchsorted(queue.times, times, side="right")
        first = np.searchsorted(queue.times, times - WINDOW, side="left")
        found |= (last > first) & (waiting[last] - waiting[first] == last - first)
    return found
