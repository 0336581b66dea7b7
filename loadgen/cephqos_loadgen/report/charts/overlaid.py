"""Policies laid over one another: a line each, over the time since their phase began.

Points that differ only in the last axis of the matrix share a chart. If they are more than there
are colours, they share several, and the first of them is in each. A line is the mean of the repeats
that ran at that moment.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from cephqos_base.series import RecoverySeries, ScrubSeries
from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.charts import plot_time, svg
from cephqos_loadgen.report.charts.over_time import data_of
from cephqos_loadgen.report.charts.plot_time import Panel, line_of
from cephqos_loadgen.report.charts.tracks import RATE_SECONDS, grown_since, mean_latency, rate
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import TableColumn
from cephqos_loadgen.report.words import listed

MOST_CHARTS: Final = 12
_MOST_POINTS: Final = 300


class PhaseTimes(NamedTuple):
    """A phase of one repeat, and the moments of the chart in it."""

    observed: Observation
    phase: str
    start: float  # Unix seconds
    times: Floats  # since then
    step: float

    @property
    def moments(self) -> Floats:
        return self.start + self.times

    @property
    def window(self) -> float:
        return max(RATE_SECONDS, self.step)


def _scrubbed(it: PhaseTimes) -> Floats:
    return rate(it.observed.samples.of(ScrubSeries.POOL_OBJECTS), it.moments, it.window)


def _recovered(it: PhaseTimes) -> Floats:
    counters = it.observed.samples.of(RecoverySeries.POOL_OBJECTS)
    return grown_since(counters, it.moments, it.start)


def _latency(it: PhaseTimes) -> Floats:
    return mean_latency(it.observed.intervals, it.phase, it.moments, it.step) * 1e3


# Title of a panel, name and unit of its columns, its values.
_PANELS: Final[Sequence[tuple[str, str, str, Callable[[PhaseTimes], Floats]]]] = (
    ("mean latency, ms", "Mean latency", "ms", _latency),
    (f"scrub, objects/s, mean of {RATE_SECONDS:.0f} s", "Scrub", "objects/s", _scrubbed),
    ("objects recovered since then", "Recovered", "objects", _recovered),
)
# By value of the axis, the repeats of its point.
_Group = Mapping[str, Sequence[Observation]]


def overlaid(subject: Subject) -> Iterator[Chart]:
    """A chart for each load of points that differ in one axis only."""
    number = 0
    for run in subject.runs:
        for others, group in _groups(run).items():
            for phase in _loads(group):
                for part in _parts(group):
                    number += 1
                    if number <= MOST_CHARTS:
                        chart = _chart(f"overlaid-{number:02d}", listed(others, 8), phase, part)
                        yield from [chart] if chart else []


def _groups(run: ReportRun) -> dict[tuple[str, ...], dict[str, list[Observation]]]:
    """By what points have in common, the repeats by the value of the axis that varies last."""
    axes = [observed.record.axes for observed in run.finished]
    names = list(axes[0]) if axes else []
    varying = [name for name in names if len({its.get(name) for its in axes}) > 1]
    groups: dict[tuple[str, ...], dict[str, list[Observation]]] = {}
    planned = [point["name"] for point in run.plan["points"]]
    ran = sorted(run.finished, key=lambda observed: planned.index(observed.record.point))
    for observed in ran if varying else []:
        its = observed.record.axes
        others = tuple(f"{name} {its[name]}" for name in varying[:-1])
        groups.setdefault(others, {}).setdefault(its[varying[-1]], []).append(observed)
    return {others: group for others, group in groups.items() if len(group) > 1}


def _parts(group: _Group) -> Iterator[_Group]:
    """As many values as there are colours, in each the first."""
    first, *rest = group
    parts = math.ceil(len(rest) / (svg.COLOURS - 1))
    size = math.ceil(len(rest) / parts)
    for start in range(0, len(rest), size):
        yield {value: group[value] for value in (first, *rest[start : start + size])}


def _loads(group: _Group) -> list[str]:
    """The loads of one depth that all points have."""
    of_points = [
        {part.phase for it in repeats for part in it.loads if part.depth_of_curve is None}
        for repeats in group.values()
    ]
    first = next(iter(group.values()))[0]
    return [name for name in first.record.phases if all(name in its for its in of_points)]


def _chart(name: str, others: str, phase: str, group: _Group) -> Chart | None:
    spans = [
        (it.record.phases[phase].start_unix_seconds, it.record.phases[phase].end_unix_seconds)
        for repeats in group.values()
        for it in repeats
        if phase in it.record.phases
    ]
    seconds = max(end - start for start, end in spans)
    step = max(1.0, float(np.ceil(seconds / _MOST_POINTS)))
    times = np.arange(step / 2, seconds, step)
    panels: list[Panel] = []
    columns: list[tuple[TableColumn, Floats]] = []
    for title, column, unit, values_of in _PANELS:
        found = {
            value: _mean_of_repeats(values_of, repeats, phase, times, step)
            for value, repeats in group.items()
        }
        if any(np.nanmax(values, initial=0.0) > 0 for values in found.values()):
            lines = [line_of(value, times, values) for value, values in found.items()]
            panels.append(Panel(title, lines, step))
            columns += [
                (TableColumn(f"{column}, {value}", unit), values) for value, values in found.items()
            ]
    if not panels:
        return None
    repeats = max(map(len, group.values()))
    where = ", ".join(filter(None, (phase, others)))
    title = f"{where}: over time, mean of {repeats} repeat{'s' * (repeats > 1)}"
    drawing = plot_time.over_time(
        title, panels, [], [], [], seconds, since=f"seconds since {phase} began"
    )
    return Chart(name, title, drawing, data_of(name, title, times, columns))


def _mean_of_repeats(
    values_of: Callable[[PhaseTimes], Floats],
    repeats: Sequence[Observation],
    phase: str,
    times: Floats,
    step: float,
) -> Floats:
    """At each moment, of the repeats in which the phase still ran."""
    found = []
    for observed in repeats:
        if span := observed.record.phases.get(phase):
            its = PhaseTimes(observed, phase, span.start_unix_seconds, times, step)
            found.append(np.where(its.moments <= span.end_unix_seconds, values_of(its), np.nan))
    known = np.sum(np.isfinite(found), axis=0)
    total = np.nansum(found, axis=0)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)
