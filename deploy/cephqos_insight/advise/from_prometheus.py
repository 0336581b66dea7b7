"""What `cephqos advise` asks a Prometheus besides what `cephqos capacity` asks.

`gather` returns the facts of each cluster: its OSDs, and what each class attained and wanted on
them in each piece of the time. `cephqos_loadgen.advise` computes from them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from cephqos_base.prometheus import OsdKey, Prometheus, Sample, of_clusters, of_osds, osd_of
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, RECOVERY, QosSeries, RecoverySeries, ScrubSeries
from cephqos_base.time_left import TimeLeft
from cephqos_base.units import duration, osd_order
from cephqos_insight.capacity import from_prometheus
from cephqos_insight.capacity.estimate import JudgedCapacity, judge
from cephqos_insight.capacity.from_prometheus import Progress, SeriesOverTime, over_time
from cephqos_loadgen.advise.facts import (
    AdvicePiece,
    AdvisedOsd,
    Facts,
    NoAdvice,
    RecoveryBacklog,
    saturated_range,
    shares_from,
)

_DEMAND_SHARE: Final = 0.5  # a class has demand in a piece if it has it half of the time
_POOL: Final = "cluster, pool"
_DELIVERED: Final = ("delivered", "")  # the figure of a piece that has no class
_Figures = dict[tuple[str, str], float]  # of one OSD in one piece, by query and class


def range_queries(step: float) -> Mapping[str, str]:
    """Queries for averages over pieces of `step` seconds, by name."""

    def average(by: str, name: str) -> str:
        return f"max by ({by}) (avg_over_time({name}[{duration(step)}]))"

    return {
        "attained": average(OSD_CLASS, PerClass.ATTAINED_OPS),
        "demand": average(OSD_CLASS, PerClass.DEMAND),
        "violated": average(OSD_CLASS, PerClass.VIOLATED),
        "delivered": average(OSD, PerOsd.DELIVERED_OPS),
    }


def now_queries(since: float) -> Mapping[str, str]:
    """Queries for how OSDs are set up now, and what recovery did in the last `since` seconds."""
    window = duration(since)
    return {
        "about": f"max by ({OSD}, profile, model) {of_osds(QosSeries.SCHEDULER_INFO)}",
        "degraded": _of_pools(of_clusters(RecoverySeries.POOL_DEGRADED_OBJECTS)),
        "misplaced": _of_pools(of_clusters(RecoverySeries.POOL_MISPLACED_OBJECTS)),
        "recovered": _of_pools(f"increase({RecoverySeries.POOL_OBJECTS}[{window}])"),
        "recovery_end": _ends(RecoverySeries.CLUSTER_ETA_SECONDS),
        "scrub_end": _ends(ScrubSeries.POOL_BACKLOG_ETA_SECONDS),
        "work": f'max by ({OSD}) (increase({QosSeries.OPS}{{class="{RECOVERY}"}}[{window}]))',
    }


def _of_pools(expression: str) -> str:
    return f"sum by (cluster) (max by ({_POOL}) ({expression}))"


def _ends(series: str) -> str:
    return f"max by (cluster, bound) {of_clusters(series)}"


async def gather(
    api: Prometheus, since: float, progress: Progress = lambda _: None
) -> Sequence[Facts]:
    """The facts of each cluster.

    Raises NoAnswer, and NoAdvice if the series of the recording rules are missing.
    """
    history = await from_prometheus.gather(api, since, None, progress)
    if history.records and not history.rules:
        raise NoAdvice(
            "found no series of the recording rules; expected those of `cephqos rules build`: they"
            " show demand and saturation"
        )
    now = await api.vectors(now_queries(since), history.end)
    queries = range_queries(history.step)
    averages = await over_time(api, queries, history.start, history.end, history.step, progress)
    pieces = _pieces(averages, history.step)
    info = {osd_of(labels): labels for labels, _ in now["about"]}
    by_cluster: dict[str, list[AdvisedOsd]] = {}
    for judged in sorted(judge(history.records), key=lambda judged: osd_order(judged.record.osd)):
        osd = OsdKey(judged.record.cluster, judged.record.osd)
        advised = _advised_osd(judged, info.get(osd, {}), pieces.get(osd, ()))
        by_cluster.setdefault(osd.cluster, []).append(advised)
    return [
        Facts(
            cluster=name,
            seconds=since,
            osds=osds,
            backlog=_backlog(now, name),
            recovery_end=_time_left(now["recovery_end"], name),
            scrub_end=_time_left(now["scrub_end"], name),
        )
        for name, osds in sorted(by_cluster.items())
    ]


def _time_left(vector: Sequence[Sample], cluster: str) -> TimeLeft | None:
    return TimeLeft.of(
        {
            labels.get("bound", ""): seconds
            for labels, seconds in vector
            if labels.get("cluster", "") == cluster
        }
    )


def _pieces(
    averages: Sequence[SeriesOverTime], step: float
) -> Mapping[OsdKey, Sequence[AdvicePiece]]:
    """The pieces of each OSD. One without the OSD's delivered operations is left out."""
    by_osd: dict[OsdKey, dict[float, _Figures]] = {}  # by OSD and the end of the piece
    for query, labels, values in averages:
        by_time = by_osd.setdefault(osd_of(labels), {})
        for time, value in values:
            by_time.setdefault(time, {})[query, labels.get("class", "")] = value
    # By cluster and time: the classes that have demand on any of its OSDs.
    cluster_demand: dict[tuple[str, float], frozenset[str]] = {}
    for osd, by_time in by_osd.items():
        for time, figures in by_time.items():
            at = (osd.cluster, time)
            cluster_demand[at] = cluster_demand.get(at, frozenset()) | _with_demand(figures)
    return {
        osd: [
            _piece(figures, step, cluster_demand[osd.cluster, time])
            for time, figures in sorted(by_time.items())
            if _DELIVERED in figures
        ]
        for osd, by_time in by_osd.items()
    }


def _with_demand(figures: _Figures) -> frozenset[str]:
    """The classes with demand."""
    demand = _by_class(figures, "demand")
    return frozenset(cls for cls, share in demand.items() if share >= _DEMAND_SHARE)


def _piece(figures: _Figures, step: float, cluster_demand: frozenset[str]) -> AdvicePiece:
    return AdvicePiece(
        attained=_by_class(figures, "attained"),
        demand=_with_demand(figures),
        demand_elsewhere=cluster_demand,
        delivered=figures[_DELIVERED],
        violated_seconds=step * sum(_by_class(figures, "violated").values()),
    )


def _by_class(figures: _Figures, wanted: str) -> dict[str, float]:
    return {cls: value for (query, cls), value in figures.items() if query == wanted}


def _advised_osd(
    judged: JudgedCapacity, info: Mapping[str, str], pieces: Sequence[AdvicePiece]
) -> AdvisedOsd:
    """An OSD as advice needs it. `info`: the labels of its scheduler's series."""
    record, estimate = judged.record, judged.estimate
    most = estimate.most or 0.0
    saturated = [it.saturated_ops or 0.0 for it in record.pieces if it.is_proof]
    measured = estimate.kind == "measured"
    return AdvisedOsd(
        osd=record.osd,
        in_force=record.in_force,
        profile=info.get("profile", ""),
        model=info.get("model", ""),
        media=record.media,
        capacity_origin=record.origin,
        capacity=record.capacity,
        shares=shares_from(record.reservations, record.limits),
        most_delivered=most,
        saturated_ops=saturated_range(saturated, most) if measured else None,
        suggested_capacity=judged.suggested,
        delivered_is_lower_bound=record.lower_bound,
        pieces=pieces,
    )


def _backlog(now: Mapping[str, Sequence[Sample]], cluster: str) -> RecoveryBacklog:
    def total(query: str) -> float | None:
        values = [value for labels, value in now[query] if labels.get("cluster", "") == cluster]
        return values[0] if values else None

    work = {osd_of(labels): value for labels, value in now["work"]}
    return RecoveryBacklog(
        degraded=total("degraded"),
        misplaced=total("misplaced"),
        recovered=total("recovered") or 0.0,
        work={osd.osd: value for osd, value in work.items() if osd.cluster == cluster},
    )
