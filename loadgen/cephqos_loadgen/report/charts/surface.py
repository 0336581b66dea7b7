"""Throughput over two dimensions of numbers, such as volumes and depth, as surfaces."""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.charts.plot_surface import Grid, surface
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_axes import DEPTH, as_number, numeric_axes, place

_MOST: Final = 16


def surfaces(subject: Subject) -> Iterator[Chart]:
    """Beside the heat maps, which are tables: one for each rest of the point, on one scale."""
    axes = [*numeric_axes(subject)[:2], *([DEPTH] if subject.steps else [])][:2]
    if len(axes) < 2:
        return
    rows = [
        row
        for row in subject.steps or subject.main_loads
        if metrics.IOPS.key in row.figures and all(it == DEPTH or it in row.axes for it in axes)
    ]
    most = max((row.figures[metrics.IOPS.key].value for row in rows), default=0.0)
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(_rest(subject, row, axes), []).append(row)
    grids = [_grid(name, groups[name], axes, most) for name in sorted(groups)]
    drawn = [grid for grid in grids if len(grid.across) > 1 and len(grid.up) > 1]
    for number, grid in enumerate(drawn[:_MOST], start=1):
        yield Chart(f"surface-{number:02d}", grid.title, surface(grid), beside=True)


def _grid(name: str, rows: list[ReportRow], axes: list[str], most: float) -> Grid:
    x_axis, y_axis = axes
    values = {
        (place(row, x_axis), place(row, y_axis)): row.figures[metrics.IOPS.key].value
        for row in rows
    }
    across = sorted({x for x, _ in values}, key=as_number)
    up = sorted({y for _, y in values}, key=as_number)
    return Grid(f"Throughput: {name}", "IOPS", x_axis, y_axis, across, up, values, most)


def _rest(subject: Subject, row: ReportRow, axes: list[str]) -> str:
    """What tells one surface from another; the run last, so that two runs are neighbours."""
    rest = [f"{a}={v}" for a, v in row.axes.items() if a in subject.varying and a not in axes]
    run = [row.key.run] if len(subject.runs) > 1 else []
    return ", ".join([row.key.phase, *rest, *run])
