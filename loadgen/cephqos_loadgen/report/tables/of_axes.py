"""One table per load and figure with the values of an axis across, as the studies printed them.

For example throughput of a load: a column per scheduler, a line per object size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.units import parse_size
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import Marks, best_and_worst
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text, text_columns
from cephqos_loadgen.report.words import shown

_PRINTED: Final = (metrics.IOPS, metrics.BANDWIDTH, metrics.MEAN, metrics.P99)
DEPTH: Final = "depth"
_DARKEST: Final = 0.6  # text on it can still be read
_RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class _AxisAcross:
    """Which axis has a column for each value, and which others tell one line from another."""

    across: str
    others: Sequence[str]
    shaded: bool = False  # the darker, the more, on one scale for all lines


def axis_tables(subject: Subject) -> Iterator[Table]:
    """Names across (schedulers, profiles) where the matrix has other axes too. Numbers across
    (volumes) where there is a second dimension of numbers: another axis, or the depth."""
    name_axis = subject.named_axis
    number_axes = numeric_axes(subject)
    if name_axis and len(subject.varying) > 1 and len(subject.runs) == 1:
        layout = _AxisAcross(name_axis, [axis for axis in subject.varying if axis != name_axis])
        yield from _tables_of_loads(subject.main_loads, layout, _PRINTED)
    if number_axes and (subject.steps or len(number_axes) > 1):
        others = [axis for axis in subject.varying if axis != number_axes[0]]
        others += [DEPTH] if subject.steps else []
        others += [_RUN] if len(subject.runs) > 1 else []
        layout = _AxisAcross(number_axes[0], others, shaded=True)
        yield from _tables_of_loads(subject.steps or subject.main_loads, layout, [metrics.IOPS])


def numeric_axes(subject: Subject) -> list[str]:
    """Those whose values are all numbers, or sizes such as 128K."""
    return [
        axis
        for axis in subject.varying
        if all(as_number(row.axes[axis]) >= 0 for row in subject.rows if axis in row.axes)
    ]


def as_number(value: str) -> float:
    """A number or a size; -1 where it is neither."""
    try:
        return float(parse_size(value))
    except UsageError:
        return float(value) if value.replace(".", "", 1).isdigit() else -1.0


def _tables_of_loads(
    rows: Sequence[ReportRow], layout: _AxisAcross, printed: Sequence[FigureKind]
) -> Iterator[Table]:
    for phase in dict.fromkeys(row.key.phase for row in rows):
        of_load = [row for row in rows if row.key.phase == phase and layout.across in row.axes]
        for metric in printed:
            if any(metric.key in row.figures for row in of_load):
                yield _table(layout, phase, of_load, metric)


def _table(layout: _AxisAcross, phase: str, rows: Sequence[ReportRow], metric: FigureKind) -> Table:
    values = list(dict.fromkeys(row.axes[layout.across] for row in rows))
    by_others: dict[tuple[str, ...], dict[str, ReportRow]] = {}
    for row in rows:
        other_values = tuple(value_on_axis(row, axis) for axis in layout.others)
        by_others.setdefault(other_values, {})[row.axes[layout.across]] = row
    lines = []
    largest = max((row.value(metric.key) or 0.0) * metric.scale for row in rows) or 1.0
    for other_values, by_value in by_others.items():
        marks = best_and_worst(list(by_value.values()), [metric])
        cells = [_mean_and_deviation(by_value.get(value), metric, marks) for value in values]
        if layout.shaded:
            shades = (_DARKEST * float(cell.value or 0) / largest for cell in cells)
            cells = [replace(cell, shade=s) for cell, s in zip(cells, shades, strict=True)]
        lines.append((*map(text, other_values), *cells))
    return Table(
        f"by-{layout.across}-{phase}-{metric.key}",
        f"{metric.title} of {phase} by {layout.across}, mean ± σ",
        (*text_columns(*layout.others), *(TableColumn(value, metric.unit) for value in values)),
        tuple(lines),
        "▲ best and ▼ worst of a line are marked only where mean ± 1 σ over the repeats of the two"
        " do not overlap.",
    )


def value_on_axis(row: ReportRow, axis: str) -> str:
    """Of an axis of the matrix, or of DEPTH or _RUN, which are axes of these tables only."""
    key = row.key
    return row.axes.get(axis, {DEPTH: f"{key.depth}", _RUN: key.run}.get(axis, "–"))


def _mean_and_deviation(row: ReportRow | None, metric: FigureKind, marks: Marks) -> Cell:
    if row is None or metric.key not in row.figures:
        return Cell("–")
    figure = row.figures[metric.key]
    words = shown(metric, figure.value)
    if figure.deviation is not None:
        words += f" ± {shown(metric, figure.deviation)}"
    return Cell(words, figure.value * metric.scale, marks.get((row.key, metric.key), ""))
