"""What `cephqos advise` is made from, taken from an archive's metrics.

On a live cluster the recording rules have judged the same: here `attained_by_class` judges, piece
by piece of the time. The table of advice in a report and `cephqos advise --archive` call it.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from cephqos_base.series import RECOVERY, SCHEDULED, QosSeries, RecoverySeries, ScrubSeries
from cephqos_base.thresholds import THRESHOLDS
from cephqos_base.time_left import TimeLeft
from cephqos_loadgen.advise.facts import (
    LEAST_PIECES,
    AdvicePiece,
    AdvisedOsd,
    Facts,
    RecoveryBacklog,
    best_rates,
    saturated_range,
    shares_from,
)
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures.attained import WINDOW, Attained, attained_by_class

_PIECE_SECONDS: Final = 60.0
_MOST_PIECES: Final = 168
_FRESH_SECONDS: Final = 30.0  # a figure that is older has ended
_HALF: Final = 0.5  # of a piece: with samples, or with demand
# An OSD is saturated, and does all that it can, when in this share of the samples each shard has
# work waiting that no limit holds back. Not in all: a gauge may be read while a queue is refilled.
_SATURATED: Final = 0.9


class _Piece(NamedTuple):
    """A piece of the time, and what the classes got in it on all OSDs."""

    start: float
    end: float
    by_osd: Mapping[str, Sequence[Attained]]
    demand: frozenset[str]  # the classes that had it on any OSD


def advice_facts(
    samples: Samples, start: float, end: float, window: float = WINDOW
) -> Iterator[Facts]:
    """The facts of each cluster that the samples are of, from `start` to `end`."""
    infos = samples.families.get(QosSeries.SCHEDULER_INFO, [])
    for cluster in sorted({info.labels.get("cluster", "") for info in infos}):
        of_it = samples.of_cluster(cluster)
        pieces = list(_pieces(of_it, start, end, window))
        osds = [_osd(of_it, info, pieces) for info in _last_infos(of_it, start, end)]
        if osds:
            backlog = _backlog(of_it, osds, start, end)
            yield Facts(
                cluster=cluster,
                seconds=end - start,
                osds=osds,
                backlog=backlog,
                recovery_end=_time_left(of_it, RecoverySeries.CLUSTER_ETA_SECONDS, start, end),
                scrub_end=_time_left(of_it, ScrubSeries.POOL_BACKLOG_ETA_SECONDS, start, end),
            )


def _pieces(samples: Samples, start: float, end: float, window: float) -> Iterator[_Piece]:
    """The whole time in pieces of a minute. They are shorter where there would be fewer than
    LEAST_PIECES, longer where there would be more than _MOST_PIECES."""
    count = min(_MOST_PIECES, max(LEAST_PIECES, math.floor((end - start) / _PIECE_SECONDS)))
    for since, until in pairwise(np.linspace(start, end, count + 1).tolist()):
        by_osd: dict[str, list[Attained]] = {}
        for attained in attained_by_class(samples, since, until, min(window, until - since)):
            by_osd.setdefault(attained.osd, []).append(attained)
        on_all_osds = chain.from_iterable(by_osd.values())
        yield _Piece(since, until, by_osd, _with_demand(on_all_osds))


def _with_demand(classes: Iterable[Attained]) -> frozenset[str]:
    """The classes that had demand for half of the time or longer."""
    return frozenset(
        attained.work for attained in classes if attained.part(attained.demand_seconds) >= _HALF
    )


def _last_infos(samples: Samples, start: float, end: float) -> Iterable[Series]:
    """The info series of each OSD that was seen last: a change of the profile, say, ends one series
    and begins another."""
    infos = [
        info for info in samples.of(QosSeries.SCHEDULER_INFO) if info.at(end, start) is not None
    ]
    infos.sort(key=lambda info: float(info.times[info.times <= end][-1]))
    return {info.labels.get("ceph_daemon"): info for info in infos}.values()


def _osd(samples: Samples, info: Series, pieces: Sequence[_Piece]) -> AdvisedOsd:
    name = info.labels.get("ceph_daemon", "")
    start, end = pieces[0].start, pieces[-1].end

    def level(family: str, **labels: str) -> float | None:
        gauges = samples.of(family, ceph_daemon=name, **labels)
        return gauges[0].at(end, start) if gauges else None

    def shares(family: str) -> Mapping[str, float]:
        by_class = {work: level(family, **{"class": work}) for work in SCHEDULED}
        return {work: value for work, value in by_class.items() if value is not None}

    limits = shares(QosSeries.LIMIT_RATIO)
    advice_pieces, delivered_saturated = [], []
    for piece in pieces:
        if advice_piece := _advice_piece(samples, name, piece):
            advice_pieces.append(advice_piece)
            if _is_saturated(samples, name, limits, piece):
                delivered_saturated.append(advice_piece.delivered)
    most = max((piece.delivered for piece in advice_pieces), default=0.0)
    capacity = level(QosSeries.CAPACITY_OPS)
    return AdvisedOsd(
        osd=name,
        in_force=info.labels.get("in_force", ""),
        profile=info.labels.get("profile", ""),
        model=info.labels.get("model", ""),
        media=info.labels.get("media", ""),
        capacity_origin=info.labels.get("capacity_origin", ""),
        capacity=capacity,
        shares=shares_from(shares(QosSeries.RESERVATION_RATIO), limits),
        most_delivered=most,
        saturated_ops=saturated_range(delivered_saturated, most),
        suggested_capacity=_suggested(capacity, delivered_saturated),
        delivered_is_lower_bound=bool(level(QosSeries.DELIVERED_IS_LOWER_BOUND)),
        pieces=advice_pieces,
    )


def _advice_piece(samples: Samples, osd: str, piece: _Piece) -> AdvicePiece | None:
    """What the OSD did in a piece of the time; None without samples of half of it."""
    start, end, classes = piece.start, piece.end, piece.by_osd.get(osd, ())
    delivered = samples.of(QosSeries.DELIVERED_OPS, ceph_daemon=osd)
    covered = max((series.covered(start, end) for series in delivered), default=0.0)
    if covered < _HALF * (end - start) or not classes:
        return None
    return AdvicePiece(
        attained={c.work: c.attained for c in classes},
        demand=_with_demand(classes),
        demand_elsewhere=piece.demand,
        delivered=delivered[0].growth(start, end) / covered,
        violated_seconds=sum(c.seconds * c.part(c.violated_seconds or 0.0) for c in classes),
    )


def _is_saturated(samples: Samples, osd: str, limits: Mapping[str, float], piece: _Piece) -> bool:
    """Whether each shard had work in its queue that no limit holds back."""
    queues_by_shard: dict[str, list[Series]] = {}
    for queue in samples.of(QosSeries.QUEUE_LENGTH, ceph_daemon=osd):
        if queue.labels.get("class") in SCHEDULED and queue.labels["class"] not in limits:
            queues_by_shard.setdefault(queue.labels.get("shard", ""), []).append(queue)
    for queues in queues_by_shard.values():
        lengths = [queue.between(piece.start, piece.end) for queue in queues]
        if len({len(samples_of_queue) for samples_of_queue in lengths}) != 1 or not len(lengths[0]):
            return False
        if float(np.mean(np.sum(lengths, axis=0) >= 1)) < _SATURATED:
            return False
    return bool(queues_by_shard)


def _suggested(capacity: float | None, saturated: Sequence[float]) -> float | None:
    """The capacity to set, as `cephqos capacity` suggests it: the median of the best pieces in
    which the OSD was saturated. None where the present one is not far from it."""
    if not capacity or len(saturated) < LEAST_PIECES:
        return None
    middle = float(math.floor(statistics.median(best_rates(saturated))))
    is_far = capacity > THRESHOLDS.more * middle or middle > THRESHOLDS.more * capacity
    return middle if is_far and middle else None


def _backlog(
    samples: Samples, osds: Sequence[AdvisedOsd], start: float, end: float
) -> RecoveryBacklog:
    """What there was to recover, and what recovery did of it."""

    def copies(family: str) -> float | None:
        """The largest number, not the first: it grows when an OSD goes out."""
        gauges = samples.of(family)
        by_pool = [gauge.between(start, end) for gauge in gauges]
        return sum(float(values.max()) for values in by_pool if len(values)) if gauges else None

    def grown(family: str, **labels: str) -> float:
        return samples.growth(family, start, end, **labels) or 0.0

    of_recovery = {"class": RECOVERY}
    return RecoveryBacklog(
        degraded=copies(RecoverySeries.POOL_DEGRADED_OBJECTS),
        misplaced=copies(RecoverySeries.POOL_MISPLACED_OBJECTS),
        recovered=grown(RecoverySeries.POOL_OBJECTS),
        work={osd.osd: grown(QosSeries.OPS, ceph_daemon=osd.osd, **of_recovery) for osd in osds},
    )


def _time_left(samples: Samples, series: str, start: float, end: float) -> TimeLeft | None:
    """How long it still took at the end of the time, as the exporter said it then; the longest of
    all pools."""
    seconds: dict[str, float] = {}
    for gauge in samples.of(series):
        value = gauge.at(end, max(start, end - _FRESH_SECONDS))
        if value is not None:
            bound = gauge.labels.get("bound", "")
            seconds[bound] = max(value, seconds.get(bound, 0.0))
    return TimeLeft.of(seconds)
