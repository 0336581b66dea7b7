"""What advice is made from, out of recorded metrics: no rules have judged them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from cephqos_base.series import RECOVERY, SCHEDULED, QosSeries, RecoverySeries
from cephqos_base.thresholds import THRESHOLDS
from cephqos_loadgen.advise.facts import (
    LEAST_PIECES,
    AdvicePiece,
    AdvisedOsd,
    Facts,
    RecoveryBacklog,
    SaturatedOps,
    shares_from,
)
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures.attained import WINDOW, Attained, attained_by_class

_PIECE: Final = 60.0
_MOST_PIECES: Final = 168
_HALF: Final = 0.5
# In so many of the samples each shard has work waiting that no limit holds back: the OSD does all
# that it can. A gauge is read while the queue is refilled, too.
_SATURATED: Final = 0.9


class _Stretch(NamedTuple):
    """A piece of the time, and what the classes got in it."""

    start: float
    end: float
    by_osd: Mapping[str, Sequence[Attained]]
    demand: frozenset[str]  # the classes that had it on any OSD


def advice_facts(
    samples: Samples, start: float, end: float, window: float = WINDOW
) -> Iterator[Facts]:
    """Each cluster that the samples are of, in a stretch of time."""
    clusters: dict[str, list[AdvisedOsd]] = {}
    stretches = list(_stretches(samples, start, end, window))
    for info in _last_infos(samples, start, end):
        osd = _osd(samples, info, stretches)
        clusters.setdefault(info.labels.get("cluster", ""), []).append(osd)
    for cluster, osds in sorted(clusters.items()):
        backlog = _backlog(samples, cluster, osds, start, end)
        yield Facts(cluster=cluster, seconds=end - start, osds=osds, backlog=backlog)


def _stretches(samples: Samples, start: float, end: float, window: float) -> Iterator[_Stretch]:
    """The whole time in pieces of a minute, or in fewer longer or shorter ones."""
    count = min(_MOST_PIECES, max(LEAST_PIECES, math.floor((end - start) / _PIECE)))
    for since, until in pairwise(np.linspace(start, end, count + 1).tolist()):
        by_osd: dict[str, list[Attained]] = {}
        for it in attained_by_class(samples, since, until, min(window, until - since)):
            by_osd.setdefault(it.osd, []).append(it)
        everything = chain.from_iterable(by_osd.values())
        yield _Stretch(since, until, by_osd, _with_demand(everything))


def _with_demand(classes: Iterable[Attained]) -> frozenset[str]:
    return frozenset(it.work for it in classes if it.part(it.demand_seconds) >= _HALF)


def _last_infos(samples: Samples, start: float, end: float) -> Iterable[Series]:
    """One for each OSD: what was changed in the time has a series before and one after it."""
    seen = [it for it in samples.of(QosSeries.SCHEDULER_INFO) if it.at(end, start) is not None]
    seen.sort(key=lambda it: float(it.times[it.times <= end][-1]))
    return {(it.labels.get("cluster"), it.labels.get("ceph_daemon")): it for it in seen}.values()


def _osd(samples: Samples, info: Series, stretches: Sequence[_Stretch]) -> AdvisedOsd:
    name = info.labels.get("ceph_daemon", "")
    start, end = stretches[0].start, stretches[-1].end

    def level(family: str, **labels: str) -> float | None:
        gauges = samples.of(family, ceph_daemon=name, **labels)
        return gauges[0].at(end, start) if gauges else None

    def shares(family: str) -> Mapping[str, float]:
        known = {cls: level(family, **{"class": cls}) for cls in SCHEDULED}
        return {cls: value for cls, value in known.items() if value is not None}

    limits = shares(QosSeries.LIMIT_RATIO)
    pieces = [(it, piece) for it in stretches if (piece := _piece(samples, name, it))]
    saturated = [
        piece.delivered for it, piece in pieces if _always_queued(samples, name, limits, it)
    ]
    saturated_ops = (
        SaturatedOps(min(saturated), max(saturated)) if len(saturated) >= LEAST_PIECES else None
    )
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
        most_delivered=max((piece.delivered for _, piece in pieces), default=0.0),
        saturated_ops=saturated_ops,
        suggested_capacity=_suggested(capacity, saturated_ops),
        delivered_is_lower_bound=bool(level(QosSeries.DELIVERED_IS_LOWER_BOUND)),
        pieces=[piece for _, piece in pieces],
    )


def _piece(samples: Samples, osd: str, stretch: _Stretch) -> AdvicePiece | None:
    """What the OSD did; None without samples of half of the time."""
    start, end, classes = stretch.start, stretch.end, stretch.by_osd.get(osd, ())
    delivered = samples.of(QosSeries.DELIVERED_OPS, ceph_daemon=osd)
    covered = max((it.covered(start, end) for it in delivered), default=0.0)
    if covered < _HALF * (end - start) or not classes:
        return None
    return AdvicePiece(
        attained={it.work: it.attained for it in classes},
        demand=_with_demand(classes),
        demand_elsewhere=stretch.demand,
        delivered=delivered[0].growth(start, end) / covered,
        violated_seconds=sum(it.seconds * it.part(it.violated_seconds or 0.0) for it in classes),
    )


def _always_queued(
    samples: Samples, osd: str, limits: Mapping[str, float], stretch: _Stretch
) -> bool:
    """Whether each shard had work in its queue that no limit holds back."""
    waiting: dict[str, list[Series]] = {}
    for it in samples.of(QosSeries.QUEUE_LENGTH, ceph_daemon=osd):
        if it.labels.get("class") in SCHEDULED and it.labels["class"] not in limits:
            waiting.setdefault(it.labels.get("shard", ""), []).append(it)
    for queues in waiting.values():
        lengths = [queue.between(stretch.start, stretch.end) for queue in queues]
        if len({len(it) for it in lengths}) != 1 or not len(lengths[0]):
            return False
        if float(np.mean(np.sum(lengths, axis=0) >= 1)) < _SATURATED:
            return False
    return bool(waiting)


def _suggested(capacity: float | None, saturated_ops: SaturatedOps | None) -> float | None:
    """As `cephqos capacity` does: where it is far from what the OSD did when it was saturated."""
    if not capacity or not saturated_ops:
        return None
    ops = float(math.floor(sum(saturated_ops) / 2))
    wrong = capacity > THRESHOLDS.more * ops or ops > THRESHOLDS.more * capacity
    return ops if wrong and ops else None


def _backlog(
    samples: Samples, cluster: str, osds: Sequence[AdvisedOsd], start: float, end: float
) -> RecoveryBacklog:
    """At the beginning: there it is what was to be done. What recovery did until the end."""

    def copies(family: str) -> float | None:
        """The most in the time, as it grows when an OSD goes out."""
        gauges = samples.of(family, cluster=cluster)
        values = [it.between(start, end) for it in gauges]
        return sum(float(its.max()) for its in values if len(its)) if gauges else None

    def grown(family: str, **labels: str) -> float:
        return samples.growth(family, start, end, **labels) or 0.0

    of_recovery = {"class": RECOVERY}
    return RecoveryBacklog(
        degraded=copies(RecoverySeries.POOL_DEGRADED_OBJECTS),
        misplaced=copies(RecoverySeries.POOL_MISPLACED_OBJECTS),
        recovered=grown(RecoverySeries.POOL_OBJECTS, cluster=cluster),
        work={it.osd: grown(QosSeries.OPS, ceph_daemon=it.osd, **of_recovery) for it in osds},
    )
