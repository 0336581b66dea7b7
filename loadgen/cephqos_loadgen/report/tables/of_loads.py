"""Tables of client loads, response curves, and scrub and recovery."""

from collections.abc import Sequence
from typing import Final

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, Key, ReportRow
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    caveats_cell,
    count,
    figure,
    percent_cell,
    text,
    text_columns,
)
from cephqos_loadgen.report.words import number

_SAME: Final = 1e-9  # figures that differ by less differ by rounding
_CAVEATS: Final = TableColumn("Caveats", numeric=False)
WHO: Final = tuple(text_columns("Point", "Load"))


def who(subject: Subject, row: ReportRow) -> list[Cell]:
    return [text(subject.label(row.key)), text(row.key.phase)]


def _columns(kinds: Sequence[FigureKind]) -> list[TableColumn]:
    return [TableColumn(metric.title, metric.unit) for metric in kinds]


def present(rows: Sequence[ReportRow], wanted: Sequence[FigureKind]) -> list[FigureKind]:
    return [metric for metric in wanted if any(metric.key in row.figures for row in rows)]


def loads_table(subject: Subject) -> Table:
    rows = subject.loads(curves=False)
    wanted = [*present(rows, metrics.LOAD), *_extra(subject)]
    others = [axis for axis in subject.varying if subject.named_axis not in (None, axis)]
    marks = best_and_worst(rows, wanted, others)
    lines = []
    for row in rows:
        spread = row.figures[metrics.IOPS.key]
        part = row.key.window if row.key.op == "total" else f"{row.key.op}s, {row.key.window}"
        cells = [*who(subject, row), text(part), caveats_cell(subject.marked.get(row.key, ()))]
        cells.append(count(row.repeats))
        for metric in wanted:
            cells.append(figure(metric, _value(row, metric), marks.get((row.key, metric.key), "")))
            if metric is metrics.IOPS:
                cells.append(figure(metric, spread.deviation))
                ratio = spread.variation
                cells.append(percent_cell(number(ratio and ratio * 100), ratio))
        lines.append(tuple(cells))
    columns = [*WHO, TableColumn("Part", numeric=False), _CAVEATS, TableColumn("Repeats")]
    for metric in wanted:
        columns.append(TableColumn(metric.title, metric.unit))
        if metric is metrics.IOPS:
            columns += [TableColumn("σ over repeats", "IOPS"), TableColumn("CV", "%")]
    return Table(
        "loads",
        "Client load",
        tuple(columns),
        tuple(lines),
        "Latency is completion latency. Percentiles are of all completions of all jobs, volumes and"
        " repeats together, from fio's bins (at most 1.6 % wide). ▲ best and ▼ worst are marked"
        " only where mean ± 1 σ over the repeats of the two do not overlap."
        + _unknown(subject, rows),
    )


def _extra(subject: Subject) -> list[FigureKind]:
    """Percentiles that were asked for, and that no table has by itself. Where they are known they
    are taken from the bins: rows have no figures of them."""
    asked = dict.fromkeys(subject.settings.percentiles)
    return [metrics.percentile(p) for p in asked if p not in metrics.PERCENTS]


def _value(row: ReportRow, metric: FigureKind) -> float | None:
    """Of percentiles that were asked for, those that so many completions can tell."""
    known = row.value(metric.key)
    if known is None and metric.key.startswith("clat_p"):
        percent = float(metric.key.removeprefix("clat_p"))
        return row.percentile_seconds(percent) if row.bins and row.bins.knows(percent) else None
    return known


def _unknown(subject: Subject, rows: Sequence[ReportRow]) -> str:
    """A line below the table, where a percentile that was asked for is not known."""
    if any(_value(row, metric) is None for metric in _extra(subject) for row in rows):
        return " A dash for a percentile: too few completions to know it."
    return ""


def best_and_worst(
    rows: Sequence[ReportRow], wanted: Sequence[FigureKind], others: Sequence[str] = ()
) -> dict[tuple[Key, str], str]:
    """The best and the worst point of each load and metric, where they really differ; among points
    that are alike in the other axes, such as object size."""
    groups: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        key = row.key
        alike = tuple(row.axes.get(axis) for axis in others)
        groups.setdefault((key.phase, key.depth, key.op, key.window, alike), []).append(row)
    marks: dict[tuple[Key, str], str] = {}
    for group in groups.values():
        for metric in wanted:
            have = [row for row in group if metric.key in row.figures]
            if metric.better and len(have) > 1:
                marks |= _apart(have, metric)
    return marks


def _apart(rows: Sequence[ReportRow], metric: FigureKind) -> dict[tuple[Key, str], str]:
    ordered = sorted(rows, key=lambda row: row.figures[metric.key].value)
    low, high = ordered[0].figures[metric.key], ordered[-1].figures[metric.key]
    if low.deviation is None or high.deviation is None:
        return {}
    if low.value + low.deviation >= (high.value - high.deviation) * (1 - _SAME):
        return {}
    ends = ("worst", "best") if metric.better == "more" else ("best", "worst")
    return {
        (ordered[0].key, metric.key): ends[0],
        (ordered[-1].key, metric.key): ends[1],
    }


# -- background work and curves --------------------------------------------------------------------


def background_rows(subject: Subject) -> list[ReportRow]:
    return [row for row in subject.rows if row.key.kind == BACKGROUND]


def background_table(subject: Subject) -> Table:
    rows = background_rows(subject)
    wanted = present(rows, metrics.BACKGROUND)
    marks = best_and_worst(rows, wanted)
    lines = [
        (
            *who(subject, row),
            caveats_cell(subject.marked.get(row.key, ())),
            count(row.repeats),
            *(
                figure(metric, row.value(metric.key), marks.get((row.key, metric.key), ""))
                for metric in wanted
            ),
        )
        for row in rows
    ]
    columns = (
        *text_columns("Point", "Phase"),
        _CAVEATS,
        TableColumn("Repeats"),
        *_columns(wanted),
    )
    return Table("background", "Scrub and recovery", columns, tuple(lines), "Means over repeats.")


def curves_table(subject: Subject) -> Table:
    rows = [r for r in subject.loads(curves=True) if r.key.window == WHOLE]
    wanted = [*present(rows, metrics.LOAD), *_extra(subject)]
    wanted += present(rows, (*metrics.RESERVATIONS, *metrics.COST))
    lines = []
    for row in rows:
        iops = row.figures[metrics.IOPS.key]
        cells = [*who(subject, row), text(row.key.op)]
        cells += [caveats_cell(subject.marked.get(row.key, ())), count(row.key.depth or 0)]
        cells += [count(row.repeats), figure(metrics.IOPS, iops.deviation)]
        cells += [figure(metric, _value(row, metric)) for metric in wanted]
        lines.append(tuple(cells))
    columns = (
        *WHO,
        TableColumn("Direction", numeric=False),
        _CAVEATS,
        TableColumn("Depth"),
        TableColumn("Repeats"),
        TableColumn("σ over repeats", "IOPS"),
        *_columns(wanted),
    )
    note = _CURVES_NOTE + _unknown(subject, rows)
    return Table("curves", "Response curves", columns, tuple(lines), note)


_CURVES_NOTE: Final = (
    "Every step is a row. Figures are means over repeats. Attainment is that of the OSD which gave"
    " clients the smallest share of their reservation. A small share is a violation only under"
    " demand: these are the violated seconds, of all OSDs together."
)
