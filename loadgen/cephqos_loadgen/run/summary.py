"""What a run found, in short: figures per point over its repeats, and what was looked for."""

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
            records_of_phase = _alike([repeat.phases[phase.name] for repeat in repeats])
            rows = [record.headline() for record in records_of_phase]
            points.setdefault(point.name, {})[phase.name] = _over_repeats(rows)
    return Summary(points, find(plan.find, plan, points) if plan.find else None)


def _alike(phases: Sequence[PhaseRecord]) -> list[PhaseRecord]:
    """Of a sweep that ended sooner in some repeats than in others, the steps that all of them have:
    a mean over different depths would be of none."""
    lengths = [len(it.result.steps) for it in phases if _is_sweep(it.result)]
    alike = []
    for phase in phases:
        if _is_sweep(phase.result):
            steps = phase.result.steps[: min(lengths)]
            phase = replace(phase, result=replace(phase.result, steps=steps))
        alike.append(phase)
    return alike


def _is_sweep(result: PhaseResult | None) -> TypeGuard[FioResult]:
    return isinstance(result, FioResult) and result.mode == "sweep"


def _over_repeats(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    spreads = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row[key] for row in rows if key in row]
        deviation = statistics.stdev(values) if len(values) > 1 else None
        spreads[key] = Spread(statistics.fmean(values), deviation, len(values))
    return spreads


def find(wanted: Find, plan: Plan, points: Figures) -> Found | None:
    """The first value of the axis that keeps the share of the best throughput.

    Values are in the order of the scenario, smallest first. None while not all points have run, or
    if nothing was done. A value that is less than a deviation from the share is too close to say.
    """
    rates: dict[str, Spread] = {}
    for point in plan.points:
        figures = points.get(point.name, {}).get(wanted.phase, {})
        if "iops" not in figures:
            return None
        label = dict(point.axes)[wanted.axis]
        iops = figures["iops"]
        rates[label] = max(rates.get(label, iops), iops, key=lambda it: it.mean)
    best = max(it.mean for it in rates.values())
    if not best:
        return None  # every value keeps all of nothing
    bound = wanted.keeping * best
    kept = next(label for label, rate in rates.items() if rate.mean >= bound)
    return Found(
        axis=wanted.axis,
        value=kept,
        iops={label: rate.mean for label, rate in rates.items()},
        keeping=wanted.keeping,
        too_close=tuple(
            label
            for label, rate in rates.items()
            if rate.mean < best and abs(rate.mean - bound) < (rate.deviation or 0.0)
        ),
    )
