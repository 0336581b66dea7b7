"""What `cephqos advise` asks a Prometheus besides what `cephqos capacity` asks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, RECOVERY, QosSeries, RecoverySeries
from cephqos_base.units import duration, osd_order
from cephqos_doctor.capacity import series
from cephqos_doctor.capacity.estimate import JudgedCapacity, judge
from cephqos_doctor.capacity.series import Osd, osd_of, over_time
from cephqos_doctor.json_api import JsonApi, Sample
from cephqos_loadgen.advise.facts import (
    AdvicePiece,
    AdvisedOsd,
    Facts,
    NoAdvice,
    RecoveryBacklog,
    SaturatedOps,
    shares_from,
)

_HALF: Final = 0.5
_POOL: Final = "cluster, pool"
_WHOLE: Final = ("delivered", "")
_Figures = dict[tuple[str, str], float]  # of one piece, by name and class


def range_queries(step: float) -> Mapping[str, str]:
    """Averages over pieces of `step` seconds, by their name."""

    def average(by: str, name: str) -> str:
        return f"max by ({by}) (avg_over_time({name}[{duration(step)}]))"

    return {
        "attained": average(OSD_CLASS, PerClass.ATTAINED_OPS),
        "demand": average(OSD_CLASS, PerClass.DEMAND),
        "violated": average(OSD_CLASS, PerClass.VIOLATED),
        "delivered": average(OSD, PerOsd.DELIVERED_OPS),
    }


def now_queries(since: float) -> Mapping[str, str]:
    """What is now, and what recovery did in the time."""
    window = duration(since)
    return {
        "about": f"max by ({OSD}, profile, model) ({QosSeries.SCHEDULER_INFO})",
        "degraded": _of_pools(RecoverySeries.POOL_DEGRADED_OBJECTS),
        "misplaced": _of_pools(RecoverySeries.POOL_MISPLACED_OBJECTS),
        "recovered": _of_pools(f"increase({RecoverySeries.POOL_OBJECTS}[{window}])"),
        "work": f'max by ({OSD}) (increase({QosSeries.OPS}{{class="{RECOVERY}"}}[{window}]))',
    }


def _of_pools(expression: str) -> str:
    return f"sum by (cluster) (max by ({_POOL}) ({expression}))"


async def gather(
    api: JsonApi, since: float, note: Callable[[str], None] = lambda _: None
) -> Sequence[Facts]:
    """Each cluster. Raises ApiFailed, and NoAdvice without the series of the rules."""
    history = await series.gather(api, since, None, note)
    if history.records and not history.rules:
        raise NoAdvice(
            "found no series of the recording rules; expected those of `cephqos rules build`: they"
            " show demand and saturation"
        )
    now = await api.vectors(now_queries(since))
    queries = range_queries(history.step)
    ranges = await over_time(api, queries, history.start, history.end, history.step, note)
    pieces = _pieces(ranges, history.step)
    by_cluster: dict[str, list[AdvisedOsd]] = {}
    about = {osd_of(labels): labels for labels, _ in now["about"]}
    for one in sorted(judge(history.records), key=lambda it: osd_order(it.record.osd)):
        osd = (one.record.cluster, one.record.osd)
        facts = _osd(one, about.get(osd, {}), pieces.get(osd, ()))
        by_cluster.setdefault(one.record.cluster, []).append(facts)
    return [
        Facts(cluster=name, seconds=since, osds=osds, backlog=_backlog(now, name))
        for name, osds in sorted(by_cluster.items())
    ]


def _pieces(
    ranges: Sequence[tuple[str, Mapping[str, str], Sequence[tuple[float, float]]]], step: float
) -> Mapping[Osd, Sequence[AdvicePiece]]:
    """By OSD; a piece without its whole work is left out."""
    by_osd: dict[Osd, dict[float, _Figures]] = {}
    for name, labels, values in ranges:
        by_time = by_osd.setdefault(osd_of(labels), {})
        for time, value in values:
            by_time.setdefault(time, {})[name, labels.get("class", "")] = value
    elsewhere: dict[tuple[str, float], frozenset[str]] = {}  # by cluster and time
    for (cluster, _), by_time in by_osd.items():
        for time, figures in by_time.items():
            at = (cluster, time)
            elsewhere[at] = elsewhere.get(at, frozenset()) | _wanting(figures)
    return {
        osd: [
            _piece(figures, step, elsewhere[osd[0], time])
            for time, figures in sorted(by_time.items())
            if _WHOLE in figures
        ]
        for osd, by_time in by_osd.items()
    }


def _wanting(figures: _Figures) -> frozenset[str]:
    """The classes with demand."""
    demand = _by_class(figures, "demand")
    return frozenset(cls for cls, share in demand.items() if share >= _HALF)


def _piece(figures: _Figures, step: float, elsewhere: frozenset[str]) -> AdvicePiece:
    return AdvicePiece(
        attained=_by_class(figures, "attained"),
        demand=_wanting(figures),
        demand_elsewhere=elsewhere,
        delivered=figures[_WHOLE],
        violated_seconds=step * sum(_by_class(figures, "violated").values()),
    )


def _by_class(figures: _Figures, name: str) -> dict[str, float]:
    return {cls: value for (figure, cls), value in figures.items() if figure == name}


def _osd(
    one: JudgedCapacity, about: Mapping[str, str], pieces: Sequence[AdvicePiece]
) -> AdvisedOsd:
    record, its = one.record, one.estimate
    measured = its.kind == "measured" and its.low is not None and its.high is not None
    return AdvisedOsd(
        osd=record.osd,
        in_force=record.in_force,
        profile=about.get("profile", ""),
        model=about.get("model", ""),
        media=record.media,
        capacity_origin=record.origin,
        capacity=record.capacity,
        shares=shares_from(record.reservations, record.limits),
        most_delivered=its.most or 0.0,
        saturated_ops=SaturatedOps(its.low or 0.0, its.high or 0.0) if measured else None,
        suggested_capacity=one.suggested,
        delivered_is_lower_bound=record.lower_bound,
        pieces=pieces,
    )


def _backlog(now: Mapping[str, Sequence[Sample]], cluster: str) -> RecoveryBacklog:
    def of(name: str) -> float | None:
        return next((v for labels, v in now[name] if labels.get("cluster", "") == cluster), None)

    return RecoveryBacklog(
        degraded=of("degraded"),
        misplaced=of("misplaced"),
        recovered=of("recovered") or 0.0,
        work={osd: v for labels, v in now["work"] for c, osd in [osd_of(labels)] if c == cluster},
    )
