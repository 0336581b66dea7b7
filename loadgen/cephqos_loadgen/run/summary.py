"""The summary of a run, for its manifest: figures per point over its repeats, and what a scenario's
`find` looked for."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.plan.planned import Find, Plan
from cephqos_loadgen.results.phase import PhaseRecord, PhaseResult
from cephqos_loadgen.results.repeat import Found, RepeatRecord, Spread, Summary

Figures = Mapping[str, Mapping[str, Mapping[str, Spread]]]


def summarise(plan: Plan, records: Sequence[RepeatRecord]) -> Summary:
    """Per point and phase: mean and standard deviation over the finished repeats."""
    finished = [record for record in records if record.status == "finished"]
    points: dict[str, dict[str, dict[str, Spread]]] = {}
    for point in plan.points:
        repeats = [record for record in finished if record.point == point.name]
        for phase in point.phases if repeats else ():
            records_of_phase = _with_common_steps([repeat.phases[phase.name] for repeat in repeats])
            rows = [record.headline() for record in records_of_phase]
            points.setdefault(point.name, {})[phase.name] = _over_repeats(rows)
    return Summary(points, find(plan.find, plan, points) if plan.find else None)


def _with_common_steps(phases: Sequence[PhaseRecord]) -> list[PhaseRecord]:
    """The same phase in several repeats. Of a sweep that ended sooner in some of them, only the
    steps that all have: a mean over different depths is a figure of no depth."""
    lengths = [len(phase.result.steps) for phase in phases if _is_sweep(phase.result)]
    common = []
    for phase in phases:
        if _is_sweep(phase.result):
            steps = phase.result.steps[: min(lengths)]
            phase = replace(phase, result=replace(phase.result, steps=steps))
        common.append(phase)
    return common


def _is_sweep(result: PhaseResult | None) -> TypeGuard[FioResult]:
    return isinstance(result, FioResult) and result.mode == "sweep"


def _over_repeats(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    spreads = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row[key] for row in rows if key in row]
        deviation = statistics.stdev(values) if len(values) > 1 else None
        spreads[key] = Spread(statistics.fmean(values), deviation, len(values))
    return spreads


def find(search: Find, plan: Plan, points: Figures) -> Found | None:
    """The first value of the axis that keeps the share of the best throughput.

    Values are in the order of the scenario, smallest first. None while not all points have run, or
    if nothing was done. A value that is less than a deviation from the share is too close to say.
    """
    rates: dict[str, Spread] = {}
    for point in plan.points:
        figures = points.get(point.name, {}).get(search.phase, {})
        if "iops" not in figures:
            return None
        value = dict(point.axes)[search.axis]
        iops = figures["iops"]
        rates[value] = max(rates.get(value, iops), iops, key=lambda rate: rate.mean)
    best = max(rate.mean for rate in rates.values())
    if not best:
        return None  # nothing was done, and every value keeps all of that
    bound = search.keeping * best
    return Found(
        axis=search.axis,
        value=next(value for value, rate in rates.items() if rate.mean >= bound),
        iops={value: rate.mean for value, rate in rates.items()},
        keeping=search.keeping,
        too_close=tuple(
            value
            for value, rate in rates.items()
            if rate.mean < best and abs(rate.mean - bound) < (rate.deviation or 0.0)
        ),
    )
