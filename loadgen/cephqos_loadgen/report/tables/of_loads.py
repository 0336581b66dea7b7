"""Tables of client loads, response curves, and scrub and recovery."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, Key, ReportRow
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    ColumnOf,
    Table,
    TableColumn,
    caveats_cell,
    count,
    figure,
    plain_figure,
    table_of,
    text,
)

_ROUNDING: Final = 1e-9  # figures that differ by a smaller share differ by rounding only
# `best` or `worst`, by row and by the key of a figure.
Marks = Mapping[tuple[Key, str], str]


def loads_table(subject: Subject) -> Table:
    rows = subject.loads(curves=False)
    shown = [*recorded_of(rows, metrics.LOAD), *_asked_percentiles(subject)]
    other_axes = [axis for axis in subject.varying if subject.named_axis not in (None, axis)]
    marks = best_and_worst(rows, shown, other_axes)
    columns: list[ColumnOf[ReportRow]] = [
        *name_columns(subject),
        (TableColumn("Part", numeric=False), _part),
        _caveats_column(subject),
        _REPEATS,
    ]
    for metric in shown:
        columns.append(figure_column(metric, marks))
        columns += [_SPREAD, _CV] if metric is metrics.IOPS else []
    return table_of(
        "loads",
        "Client load",
        rows,
        columns,
        "Latency is completion latency. Percentiles are of all completions of all jobs, volumes and"
        " repeats together, from fio's bins (at most 1.6 % wide). ▲ best and ▼ worst are marked"
        " only where mean ± 1 σ over the repeats of the two do not overlap."
        + _note_on_dashes(subject, rows),
    )


def background_table(subject: Subject) -> Table:
    rows = background_rows(subject)
    shown = recorded_of(rows, metrics.BACKGROUND)
    marks = best_and_worst(rows, shown)
    columns = [
        *name_columns(subject, "Phase"),
        _caveats_column(subject),
        _REPEATS,
        *(figure_column(metric, marks) for metric in shown),
    ]
    return table_of("background", "Scrub and recovery", rows, columns, "Means over repeats.")


def curves_table(subject: Subject) -> Table:
    rows = [row for row in subject.loads(curves=True) if row.key.window == WHOLE]
    shown = [*recorded_of(rows, metrics.LOAD), *_asked_percentiles(subject)]
    shown += recorded_of(rows, (*metrics.RESERVATIONS, *metrics.COST))
    columns = [
        *name_columns(subject),
        (TableColumn("Direction", numeric=False), lambda row: text(row.key.op)),
        _caveats_column(subject),
        (TableColumn("Depth"), lambda row: count(row.key.depth or 0)),
        _REPEATS,
        _SPREAD,
        *map(figure_column, shown),
    ]
    note = (
        "Every step is a row. Figures are means over repeats. Attainment is that of the OSD which"
        " gave clients the smallest share of their reservation. A small share is a violation only"
        " under demand: these are the violated seconds, of all OSDs together."
    )
    return table_of(
        "curves", "Response curves", rows, columns, note + _note_on_dashes(subject, rows)
    )


def background_rows(subject: Subject) -> list[ReportRow]:
    return [row for row in subject.rows if row.key.kind == BACKGROUND]


def recorded_of(rows: Sequence[ReportRow], kinds: Sequence[FigureKind]) -> list[FigureKind]:
    """Those of these figures that some row has: a column without any would be empty."""
    return [metric for metric in kinds if any(metric.key in row.figures for row in rows)]


# -- columns ---------------------------------------------------------------------------------------


def name_columns(subject: Subject, phase: str = "Load") -> Iterator[ColumnOf[ReportRow]]:
    """The first two columns: which row it is."""
    yield TableColumn("Point", numeric=False), lambda row: text(subject.label(row.key))
    yield TableColumn(phase, numeric=False), lambda row: text(row.key.phase)


def _part(row: ReportRow) -> Cell:
    """`during scrub`, or `reads, all of it`."""
    key = row.key
    return text(key.window if key.op == "total" else f"{key.op}s, {key.window}")


def _caveats_column(subject: Subject) -> ColumnOf[ReportRow]:
    column = TableColumn("Caveats", numeric=False)
    return column, lambda row: caveats_cell(subject.marked.get(row.key, ()))


_REPEATS: Final[ColumnOf[ReportRow]] = (TableColumn("Repeats"), lambda row: count(row.repeats))


def _spread(row: ReportRow) -> Cell:
    return figure(metrics.IOPS, row.figures[metrics.IOPS.key].deviation)


def _variation(row: ReportRow) -> Cell:
    ratio = row.figures[metrics.IOPS.key].variation
    return plain_figure(None if ratio is None else ratio * 100)


_SPREAD: Final = (TableColumn("σ over repeats", "IOPS"), _spread)
_CV: Final = (TableColumn("CV", "%"), _variation)


def figure_column(metric: FigureKind, marks: Marks | None = None) -> ColumnOf[ReportRow]:
    def cell(row: ReportRow) -> Cell:
        mark = (marks or {}).get((row.key, metric.key), "")
        return figure(metric, _value(row, metric), mark)

    return TableColumn(metric.title, metric.unit), cell


# -- percentiles that were asked for ---------------------------------------------------------------


def _asked_percentiles(subject: Subject) -> list[FigureKind]:
    """Percentiles that the user asked for and no row has a figure of: `_value` takes them from the
    row's bins."""
    asked = dict.fromkeys(subject.settings.percentiles)
    return [metrics.percentile(percent) for percent in asked if percent not in metrics.PERCENTS]


def _value(row: ReportRow, metric: FigureKind) -> float | None:
    """A figure of a row, or a percentile that was asked for; None where the row's completions are
    too few for that percentile."""
    value = row.value(metric.key)
    if value is None and metric.key.startswith("clat_p"):
        percent = float(metric.key.removeprefix("clat_p"))
        return row.percentile_seconds(percent) if row.bins and row.bins.knows(percent) else None
    return value


def _note_on_dashes(subject: Subject, rows: Sequence[ReportRow]) -> str:
    """A sentence below the table, where a percentile that was asked for is not known."""
    asked = _asked_percentiles(subject)
    if any(_value(row, metric) is None for metric in asked for row in rows):
        return " A dash for a percentile: too few completions to know it."
    return ""


# -- the best and the worst ------------------------------------------------------------------------


def best_and_worst(
    rows: Sequence[ReportRow], kinds: Sequence[FigureKind], other_axes: Sequence[str] = ()
) -> Marks:
    """The best and the worst row of each load and figure, where they really differ; among rows with
    the same values on the other axes, such as object size."""
    groups: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        key = row.key
        other_values = tuple(row.axes.get(axis) for axis in other_axes)
        groups.setdefault((key.phase, key.depth, key.op, key.window, other_values), []).append(row)
    marks: dict[tuple[Key, str], str] = {}
    for group in groups.values():
        for metric in kinds:
            rows_with_it = [row for row in group if metric.key in row.figures]
            if metric.better and len(rows_with_it) > 1:
                marks |= _marks_of_group(rows_with_it, metric)
    return marks


def _marks_of_group(rows: Sequence[ReportRow], metric: FigureKind) -> Marks:
    """None where mean ± 1 σ over the repeats of the two overlap, or where there is no σ."""
    ordered = sorted(rows, key=lambda row: row.figures[metric.key].value)
    low, high = ordered[0].figures[metric.key], ordered[-1].figures[metric.key]
    if low.deviation is None or high.deviation is None:
        return {}
    if low.value + low.deviation >= (high.value - high.deviation) * (1 - _ROUNDING):
        return {}
    lowest, highest = ("worst", "best") if metric.better == "more" else ("best", "worst")
    return {(ordered[0].key, metric.key): lowest, (ordered[-1].key, metric.key): highest}
