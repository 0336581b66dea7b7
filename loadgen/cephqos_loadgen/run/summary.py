"""What a run found, in short: figures per point over its repeats, and what was looked for."""

import statistics
from collections.abc import Mapping, Sequence

from cephqos_loadgen.plan.model import Find, Plan
from cephqos_loadgen.results.repeat import Found, RepeatRecord, Spread, Summary

Figures = Mapping[str, Mapping[str, Mapping[str, Spread]]]


def summarise(plan: Plan, records: Sequence[RepeatRecord]) -> Summary:
    """Per point and phase: mean and standard deviation over the finished repeats."""
    finished = [record for record in records if record.status == "finished"]
    points = {}
    for point in plan.points:
        repeats = [record for record in finished if record.point == point.name]
        if repeats:
            points[point.name] = {
                phase.name: _over_repeats([r.phases[phase.name].headline() for r in repeats])
                for phase in point.phases
            }
    return Summary(points, find(plan.find, plan, points) if plan.find else None)


def _over_repeats(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    found = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row[key] for row in rows if key in row]
        deviation = statistics.stdev(values) if len(values) > 1 else None
        found[key] = Spread(statistics.fmean(values), deviation, len(values))
    return found


def find(wanted: Find, plan: Plan, points: Figures) -> Found | None:
    """The first value of the axis (in the order of the scenario, smallest first) that keeps the
    share of the best throughput; None while not all points have run, or where nothing was done."""
    rates: dict[str, float] = {}
    for point in plan.points:
        figures = points.get(point.name, {}).get(wanted.phase, {})
        if "iops" not in figures:
            return None
        label = dict(point.axes)[wanted.axis]
        rates[label] = max(rates.get(label, 0.0), figures["iops"].mean)
    best = max(rates.values())
    if not best:
        return None  # every value keeps all of nothing
    kept = next(label for label, rate in rates.items() if rate >= wanted.keeping * best)
    return Found(wanted.axis, kept, rates, wanted.keeping)
