"""Throughput over two dimensions of numbers, such as volumes and depth: surfaces and heat maps."""

from collections.abc import Iterator, Sequence
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.units import parse_size
from cephqos_loadgen.report.charts import plot_surface
from cephqos_loadgen.report.charts.plot_surface import Grid
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Table, TableColumn, figure, text

_MOST: Final = 16
DEPTH: Final = "depth"


def surfaces(subject: Subject) -> Iterator[Chart]:
    """A surface and a heat map for each rest of the point; runs beside each other, on one scale."""
    maps = list(_grids(subject))
    for number, grid in enumerate(maps[:_MOST], start=1):
        data = tuple(
            (text(y), *(figure(metrics.IOPS, grid.values.get((x, y))) for x in grid.across))
            for y in grid.up
        )
        columns = (
            TableColumn(f"{grid.y_axis} / {grid.x_axis}", numeric=False),
            *(TableColumn(x, "IOPS") for x in grid.across),
        )
        for name, draw in (("surface", plot_surface.surface), ("heat", plot_surface.heat)):
            chart = f"{name}-{number:02d}"
            table = Table(f"chart-{chart}", grid.title, columns, data)
            yield Chart(chart, grid.title, draw(grid), table, beside=True)


def _grids(subject: Subject) -> Iterator[Grid]:
    rows, axes = _rows_and_axes(subject)
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        if all(axis == DEPTH or axis in row.axes for axis in axes):
            groups.setdefault(_rest(subject, row, axes), []).append(row)
    most = max((row.figures[metrics.IOPS.key].value for row in rows), default=0.0)
    for name, of_name in sorted(groups.items()):
        values = {
            (_place(row, axes[0]), _place(row, axes[1])): row.figures[metrics.IOPS.key].value
            for row in of_name
        }
        across = sorted({x for x, _ in values}, key=_number)
        up = sorted({y for _, y in values}, key=_number)
        if len(across) > 1 and len(up) > 1:
            yield Grid(f"Throughput: {name}", "IOPS", axes[0], axes[1], across, up, values, most)


def _rows_and_axes(subject: Subject) -> tuple[Sequence[ReportRow], tuple[str, ...]]:
    """Steps of curves over an axis and their depth, else loads over two axes."""
    numeric = [axis for axis in subject.varying if _numeric(subject, axis)]
    if subject.steps and numeric:
        return subject.steps, (numeric[0], DEPTH)
    return (subject.main_loads, tuple(numeric[:2])) if len(numeric) > 1 else ([], ())


def _place(row: ReportRow, axis: str) -> str:
    if axis == DEPTH and axis not in row.axes:
        return str(row.key.depth)
    return row.axes[axis]


def _rest(subject: Subject, row: ReportRow, axes: Sequence[str]) -> str:
    """What tells one map from another; the run last, so that two runs of a map are neighbours."""
    rest = [f"{a}={v}" for a, v in row.axes.items() if a in subject.varying and a not in axes]
    run = [row.key.run] if len(subject.runs) > 1 else []
    return ", ".join([row.key.phase, *rest, *run])


def _numeric(subject: Subject, axis: str) -> bool:
    values = {row.axes[axis] for row in subject.rows if axis in row.axes}
    return all(_number(value) >= 0 for value in values)


def _number(value: str) -> float:
    """A number or a size such as 128K; -1 where it is neither."""
    try:
        return float(value) if value.replace(".", "", 1).isdigit() else float(parse_size(value))
    except UsageError:
        return -1.0
