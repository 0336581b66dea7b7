"""Every figure of every repeat, so that others can compute each interval again."""

from collections.abc import Iterator, Sequence

from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.figures.metrics import METRICS
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    count,
    depth_cell,
    figure,
    number_columns,
    text,
    text_columns,
)

COLUMNS = (
    *text_columns("Run", "Point", "Phase"),
    *number_columns("Depth"),
    *text_columns("Direction", "Part", "Figure", "Unit"),
    *number_columns("Shown", "Bin width", "Sample", "Value"),
)


def samples_table(runs: Sequence[ReportRun]) -> Table:
    """A line per row, figure and repeat. Shown is the figure of all repeats together. A repeat
    without the figure has no line."""
    rows = tuple(line for run in dict.fromkeys(runs) for row in run.rows for line in _lines(row))
    return Table("per-repeat", "Each figure of each repeat", COLUMNS, rows)


def _lines(row: ReportRow) -> Iterator[tuple[Cell, ...]]:
    key = row.key
    names = [text(key.run), text(key.point), text(key.phase), depth_cell(key.depth)]
    names += [text(key.op), text(key.window)]
    for name, found in row.figures.items():
        kind = METRICS[name]
        whole = [text(name), text(kind.unit), figure(kind, found.value), figure(kind, found.width)]
        for number, value in enumerate(found.samples, start=1):
            yield (*names, *whole, count(number), figure(kind, value))
