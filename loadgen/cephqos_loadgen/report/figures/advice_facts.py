"""What advice is made from, out of recorded metrics: no rules have judged them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from cephqos_base.series import RECOVERY, SCHEDULED, QosSeries, RecoverySeries
from cephqos_base.thresholds import THRESHOLDS
from cephqos_loadgen.advise.facts import (
    LEAST_PIECES,
    AdvicePiece,
    AdvisedOsd,
    Facts,
    RecoveryBacklog,
    bounds_of,
)
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures.attained import WINDOW, Attained, attained_by_class

_PIECE: Final = 60.0
_MOST_PIECES: Final = 168
_HALF: Final = 0.5
# In so many of the samples each shard has work waiting that no limit holds back: the OSD does all
# that it can. A gauge is read while the queue is refilled, too.
_SATURATED: Final = 0.9


def advice_facts(
    samples: Samples, start: float, end: float, window: float = WINDOW
) -> Iterator[Facts]:
    """Each cluster that the samples are of, in a stretch of time."""
    clusters: dict[str, list[AdvisedOsd]] = {}
    of_classes = _of_classes(samples, start, end, window)
    for info in _last_infos(samples, start, end):
        osd = _osd(samples, info, of_classes, (start, end))
        clusters.setdefault(info.labels.get("cluster", ""), []).append(osd)
    for cluster, osds in sorted(clusters.items()):
        yield Facts(
            cluster=cluster,
            seconds=end - start,
            osds=osds,
            backlog=_backlog(samples, cluster, osds, (start, end)),
        )


def _last_infos(samples: Samples, start: float, end: float) -> Iterable[Series]:
    """One for each OSD: what was changed in the time has a series before and one after it."""
    seen = [it for it in samples.of(QosSeries.SCHEDULER_INFO) if it.at(end, start) is not None]
    seen.sort(key=lambda it: float(it.times[it.times <= end][-1]))
    return {(it.labels.get("cluster"), it.labels.get("ceph_daemon")): it for it in seen}.values()


Of = Mapping[str, Sequence[Attained]]


def _of_classes(
    samples: Samples, start: float, end: float, window: float
) -> Sequence[tuple[float, float, Of]]:
    """The pieces of the time, and what each OSD's classes got in each."""
    count = min(_MOST_PIECES, max(LEAST_PIECES, math.floor((end - start) / _PIECE)))
    step = (end - start) / count
    pieces = []
    for number in range(count):
        a = start + number * step
        by_osd: dict[str, list[Attained]] = {}
        for it in attained_by_class(samples, a, a + step, min(window, step)):
            by_osd.setdefault(it.osd, []).append(it)
        pieces.append((a, a + step, by_osd))
    return pieces


def _osd(
    samples: Samples,
    info: Series,
    pieces: Sequence[tuple[float, float, Of]],
    within: tuple[float, float],
) -> AdvisedOsd:
    name, (start, end) = info.labels.get("ceph_daemon", ""), within

    def level(family: str, **labels: str) -> float | None:
        gauges = samples.of(family, ceph_daemon=name, **labels)
        return gauges[0].at(end, start) if gauges else None

    def shares(family: str) -> Mapping[str, float]:
        known = {cls: level(family, **{"class": cls}) for cls in SCHEDULED}
        return {cls: value for cls, value in known.items() if value is not None}

    limits = shares(QosSeries.LIMIT_RATIO)
    own = list(_pieces(samples, name, pieces))
    saturated = [
        piece.delivered for a, b, piece in own if _always_queued(samples, name, limits, a, b)
    ]
    can_do = (min(saturated), max(saturated)) if len(saturated) >= LEAST_PIECES else None
    capacity = level(QosSeries.CAPACITY_OPS)
    return AdvisedOsd(
        osd=name,
        in_force=info.labels.get("in_force", ""),
        profile=info.labels.get("profile", ""),
        model=info.labels.get("model", ""),
        media=info.labels.get("media", ""),
        origin=info.labels.get("capacity_origin", ""),
        capacity=capacity,
        present=bounds_of(shares(QosSeries.RESERVATION_RATIO), limits),
        most=max((piece.delivered for *_, piece in own), default=0.0),
        can_do=can_do,
        suggested=_suggested(capacity, can_do),
        not_all_counted=bool(level(QosSeries.DELIVERED_IS_LOWER_BOUND)),
        pieces=[piece for *_, piece in own],
    )


def _pieces(
    samples: Samples, osd: str, pieces: Sequence[tuple[float, float, Of]]
) -> Iterator[tuple[float, float, AdvicePiece]]:
    """Start, end, and what the OSD did, of the pieces that have samples of it."""
    for a, b, by_osd in pieces:
        elsewhere = (it for of in by_osd.values() for it in of)
        piece = _piece(samples, osd, (a, b), by_osd.get(osd, ()), _wanting(elsewhere))
        if piece is not None:
            yield a, b, piece


def _suggested(capacity: float | None, can_do: tuple[float, float] | None) -> float | None:
    """As `cephqos capacity` does: where it is far from what the OSD did when it was saturated."""
    if not capacity or not can_do:
        return None
    ops = float(math.floor(sum(can_do) / 2))
    wrong = capacity > THRESHOLDS.more * ops or ops > THRESHOLDS.more * capacity
    return ops if wrong and ops else None


def _wanting(of: Iterable[Attained]) -> frozenset[str]:
    """The classes with demand."""
    return frozenset(it.work for it in of if it.part(it.demand_seconds) >= _HALF)


def _piece(
    samples: Samples,
    osd: str,
    within: tuple[float, float],
    of: Sequence[Attained],
    elsewhere: frozenset[str],
) -> AdvicePiece | None:
    """None without samples of half of it."""
    delivered = samples.of(QosSeries.DELIVERED_OPS, ceph_daemon=osd)
    covered = max((it.covered(*within) for it in delivered), default=0.0)
    if covered < _HALF * (within[1] - within[0]) or not of:
        return None
    return AdvicePiece(
        attained={it.work: it.attained for it in of},
        demand=_wanting(of),
        elsewhere=elsewhere,
        delivered=delivered[0].growth(*within) / covered,
        violated=sum(it.seconds * it.part(it.violated_seconds or 0.0) for it in of),
    )


def _always_queued(
    samples: Samples, osd: str, limits: Mapping[str, float], start: float, end: float
) -> bool:
    """Whether each shard had work in its queue that no limit holds back."""
    waiting: dict[str, list[Series]] = {}
    for it in samples.of(QosSeries.QUEUE_LENGTH, ceph_daemon=osd):
        if it.labels.get("class") in SCHEDULED and it.labels["class"] not in limits:
            waiting.setdefault(it.labels.get("shard", ""), []).append(it)
    for series in waiting.values():
        kept = [it.values[(it.times >= start) & (it.times <= end)] for it in series]
        if len({len(it) for it in kept}) != 1 or not len(kept[0]):
            return False
        if float(np.mean(np.sum(kept, axis=0) >= 1)) < _SATURATED:
            return False
    return bool(waiting)


def _backlog(
    samples: Samples, cluster: str, osds: Sequence[AdvisedOsd], within: tuple[float, float]
) -> RecoveryBacklog:
    """At the beginning: there it is what was to be done. What recovery did until the end."""
    start, end = within

    def copies(family: str) -> float | None:
        """The most in the time, as it grows when an OSD goes out."""
        gauges = samples.of(family, cluster=cluster)
        within = [it.values[(it.times >= start) & (it.times <= end)] for it in gauges]
        return sum(float(values.max()) for values in within if len(values)) if gauges else None

    work = {
        osd.osd: samples.growth(
            QosSeries.OPS, start, end, ceph_daemon=osd.osd, **{"class": RECOVERY}
        )
        or 0.0
        for osd in osds
    }
    return RecoveryBacklog(
        degraded=copies(RecoverySeries.POOL_DEGRADED_OBJECTS),
        misplaced=copies(RecoverySeries.POOL_MISPLACED_OBJECTS),
        recovered=samples.growth(RecoverySeries.POOL_OBJECTS, start, end, cluster=cluster) or 0.0,
        work=work,
    )
