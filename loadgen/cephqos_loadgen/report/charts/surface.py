"""The charts of throughput over two dimensions of numbers, such as volumes and depth: surfaces.

The tables of `of_axes` show the same as heat maps.
"""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.charts.plot_surface import Grid, surface
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_axes import DEPTH, as_number, numeric_axes, value_on_axis

_MOST_SURFACES: Final = 16


def surfaces(subject: Subject) -> Iterator[Chart]:
    """One for each load and each combination of the other axes, all on one scale. None where there
    are no two dimensions of numbers; the depth of a curve is one."""
    dimensions = [*numeric_axes(subject), *([DEPTH] if subject.steps else [])]
    if len(dimensions) < 2:
        return
    x_axis, y_axis = dimensions[:2]
    rows = [
        row
        for row in subject.steps or subject.main_loads
        if metrics.IOPS.key in row.figures and {x_axis, y_axis} <= {DEPTH, *row.axes}
    ]
    largest = max((row.figures[metrics.IOPS.key].value for row in rows), default=0.0)
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(_name_of_surface(subject, row, x_axis, y_axis), []).append(row)
    grids = [_grid(name, groups[name], x_axis, y_axis, largest) for name in sorted(groups)]
    drawn = [grid for grid in grids if len(grid.across) > 1 and len(grid.up) > 1]
    for number, grid in enumerate(drawn[:_MOST_SURFACES], start=1):
        yield Chart(f"surface-{number:02d}", grid.title, surface(grid), beside=True)


def _grid(name: str, rows: list[ReportRow], x_axis: str, y_axis: str, largest: float) -> Grid:
    values = {
        (value_on_axis(row, x_axis), value_on_axis(row, y_axis)): row.figures[
            metrics.IOPS.key
        ].value
        for row in rows
    }
    across = sorted({x for x, _ in values}, key=as_number)
    up = sorted({y for _, y in values}, key=as_number)
    return Grid(f"Throughput: {name}", "IOPS", x_axis, y_axis, across, up, values, largest)


def _name_of_surface(subject: Subject, row: ReportRow, x_axis: str, y_axis: str) -> str:
    """The load, the other axes, and the run last, so that surfaces of two runs are neighbours."""
    others = [
        f"{axis}={value}"
        for axis, value in row.axes.items()
        if axis in subject.varying and axis not in (x_axis, y_axis)
    ]
    run = [row.key.run] if len(subject.runs) > 1 else []
    return ", ".join([row.key.phase, *others, *run])
