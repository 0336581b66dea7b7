"""Heat maps of points over two numeric axes, such as volumes and depth."""

from collections.abc import Iterator, Sequence
from typing import Final

from cephqos_loadgen.report import metrics, plots
from cephqos_loadgen.report.analysis import Row
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.tables import Column, Subject, Table, figure, text

_MOST: Final = 8


def heat_maps(subject: Subject) -> Iterator[Chart]:
    """Throughput over the first two axes of numbers; one map for each rest of the point."""
    axes = [axis for axis in subject.varying if _numeric(subject, axis)][:2]
    if len(axes) < 2:
        return
    groups: dict[str, list[Row]] = {}
    for row in subject.main_loads:
        if all(axis in row.axes for axis in axes):
            rest = [
                f"{a}={v}" for a, v in row.axes.items() if a in subject.varying and a not in axes
            ]
            run = [row.key.run] if len(subject.runs) > 1 else []
            groups.setdefault(", ".join([row.key.phase, *rest, *run]), []).append(row)
    for number, (name, rows) in enumerate(list(groups.items())[:_MOST], start=1):
        yield _heat_map(number, name, rows, axes)


def _numeric(subject: Subject, axis: str) -> bool:
    return all(_is_number(row.axes[axis]) for row in subject.rows if axis in row.axes)


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).isdigit()


def _heat_map(number: int, name: str, rows: Sequence[Row], axes: Sequence[str]) -> Chart:
    across, up = (sorted({row.axes[axis] for row in rows}, key=float) for axis in axes)
    values = {
        (row.axes[axes[0]], row.axes[axes[1]]): row.figures[metrics.IOPS.key].value for row in rows
    }
    title = f"Throughput, IOPS: {name}"
    drawing = plots.heat(title, axes[0], axes[1], across, up, values)
    data = tuple((text(y), *(figure(metrics.IOPS, values.get((x, y))) for x in across)) for y in up)
    columns = (
        Column(f"{axes[1]} / {axes[0]}", numeric=False),
        *(Column(x, "IOPS") for x in across),
    )
    chart = f"surface-{number:02d}"
    return Chart(chart, title, drawing, Table(f"chart-{chart}", title, columns, data))
