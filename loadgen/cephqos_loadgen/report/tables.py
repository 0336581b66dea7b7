"""Tables of a report, as data. Writers turn them into HTML, Markdown and CSV."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cephqos_loadgen.report import metrics
from cephqos_loadgen.report.analysis import (
    BACKGROUND,
    LOAD,
    Key,
    ReportRow,
    ReportRun,
    ReportSettings,
)
from cephqos_loadgen.report.metrics import FigureKind
from cephqos_loadgen.report.observe import WHOLE
from cephqos_loadgen.report.words import number, shown

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, what is sorted by and written to CSV, and how it stands out."""

    text: str
    value: float | str | None = None
    mark: str = ""  # best, worst, doubt


@dataclass(frozen=True, slots=True)
class TableColumn:
    title: str
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """`name` is that of its CSV file. `note` stands below."""

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


Doubted = Mapping[Key, Sequence[int]]  # the numbers of the findings that touch a row
Label = Callable[[Key], str]


def text(value: str) -> Cell:
    return Cell(value, value)


def figure(metric: FigureKind, value: float | None, mark: str = "") -> Cell:
    return Cell(shown(metric, value), None if value is None else value * metric.scale, mark)


def count(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def doubts_cell(numbers: Sequence[int]) -> Cell:
    joined = ", ".join(map(str, numbers))
    return Cell(joined or "–", joined, "doubt" if numbers else "")


@dataclass(frozen=True)
class Subject:
    """The rows of a report, how they are called, and which findings touch them."""

    runs: Sequence[ReportRun]
    settings: ReportSettings
    doubted: Doubted = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[ReportRow]:
        return [row for run in self.runs for row in run.rows]

    @cached_property
    def _axes(self) -> Mapping[Key, Mapping[str, str]]:
        return {row.key: row.axes for row in self.rows}

    @cached_property
    def varying(self) -> list[str]:
        """Axes that have more than one value."""
        values: dict[str, set[str]] = {}
        for row in self.rows:
            for axis, value in row.axes.items():
                values.setdefault(axis, set()).add(value)
        return [axis for axis, found in values.items() if len(found) > 1]

    @cached_property
    def named_axis(self) -> str | None:
        """The first axis of names, such as schedulers: its values are what is compared."""
        for axis in self.varying:
            values = [row.axes[axis] for row in self.rows if axis in row.axes]
            if not all(value[:1].isdigit() for value in values):
                return axis
        return None

    def label(self, key: Key) -> str:
        """The point in short, with the run where there are several."""
        axes = self._axes[key]
        named = [(axis, axes[axis]) for axis in self.varying if axis in axes]
        if len(named) == 1 and len(self.varying) == 1:
            point = named[0][1]
        else:
            point = ", ".join(f"{axis}={value}" for axis, value in named) or key.point
        return f"{point} ({key.run})" if len(self.runs) > 1 else point

    def loads(self, *, curves: bool) -> list[ReportRow]:
        """Whole loads of one depth, or the steps of curves."""
        return [
            row
            for row in self.rows
            if row.key.kind == LOAD and (row.key.depth is not None) == curves
        ]

    @property
    def main_loads(self) -> list[ReportRow]:
        """One row per point and load: both directions together, the whole time."""
        return [
            row
            for row in self.loads(curves=False)
            if row.key.op == "total" and row.key.window == WHOLE
        ]

    @cached_property
    def _references(self) -> Mapping[tuple[object, ...], ReportRow]:
        """By all that a key has besides run and point: the row that others are compared with."""
        found: dict[tuple[object, ...], ReportRow] = {}
        wanted = self.settings.reference
        for row in self.rows:
            if not wanted or wanted in (row.key.point, self.label(row.key)):
                found.setdefault(_same_load(row.key), row)
        return found

    def reference_of(self, row: ReportRow) -> ReportRow | None:
        """The row of the reference point that this one is compared with."""
        return self._references.get(_same_load(row.key))


def _same_load(key: Key) -> tuple[object, ...]:
    return (key.phase, key.kind, key.depth, key.op, key.window)


_SAME: Final = 1e-9  # figures that differ by less differ by rounding
_DOUBTS: Final = TableColumn("Doubts", numeric=False)
WHO: Final = (TableColumn("Point", numeric=False), TableColumn("Load", numeric=False))


def who(subject: Subject, row: ReportRow) -> list[Cell]:
    return [text(subject.label(row.key)), text(row.key.phase)]


def _columns(found: Sequence[FigureKind]) -> list[TableColumn]:
    return [TableColumn(metric.title, metric.unit) for metric in found]


def present(rows: Sequence[ReportRow], wanted: Sequence[FigureKind]) -> list[FigureKind]:
    return [metric for metric in wanted if any(metric.key in row.figures for row in rows)]


def tables(subject: Subject) -> Iterator[Table]:
    """All tables that have rows."""
    for build in (loads_table, background_table, curves_table):
        table = build(subject)
        if table.rows:
            yield table


def loads_table(subject: Subject) -> Table:
    rows = subject.loads(curves=False)
    wanted = present(rows, (*metrics.LOAD, *_extra(subject)))
    others = [axis for axis in subject.varying if subject.named_axis not in (None, axis)]
    marks = best_and_worst(rows, wanted, others)
    lines = []
    for row in rows:
        spread = row.figures[metrics.IOPS.key]
        part = row.key.window if row.key.op == "total" else f"{row.key.op}s, {row.key.window}"
        cells = [*who(subject, row), text(part), doubts_cell(subject.doubted.get(row.key, ()))]
        cells.append(count(row.repeats))
        for metric in wanted:
            cells.append(figure(metric, _value(row, metric), marks.get((row.key, metric.key), "")))
            if metric is metrics.IOPS:
                cells.append(figure(metric, spread.deviation))
                cells.append(_ratio(spread.variation))
        lines.append(tuple(cells))
    columns = [*WHO, TableColumn("Part", numeric=False), _DOUBTS, TableColumn("Repeats")]
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
        " only where mean ± 1 σ over the repeats of the two do not overlap.",
    )


def _extra(subject: Subject) -> list[FigureKind]:
    return [metrics.percentile(p) for p in subject.settings.percentiles]


def _value(row: ReportRow, metric: FigureKind) -> float | None:
    found = row.value(metric.key)
    if found is None and metric.key.startswith("clat_p"):
        return row.percentile_seconds(float(metric.key.removeprefix("clat_p")))
    return found


def _ratio(value: float | None) -> Cell:
    return Cell(number(None if value is None else value * 100), value and value * 100)


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
    found: dict[tuple[Key, str], str] = {}
    for group in groups.values():
        for metric in wanted:
            have = [row for row in group if metric.key in row.figures]
            if metric.better and len(have) > 1:
                found |= _apart(have, metric)
    return found


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
            doubts_cell(subject.doubted.get(row.key, ())),
            count(row.repeats),
            *(
                figure(metric, row.value(metric.key), marks.get((row.key, metric.key), ""))
                for metric in wanted
            ),
        )
        for row in rows
    ]
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn("Phase", numeric=False),
        _DOUBTS,
        TableColumn("Repeats"),
        *_columns(wanted),
    )
    return Table("background", "Scrub and recovery", columns, tuple(lines), "Means over repeats.")


def curves_table(subject: Subject) -> Table:
    rows = [r for r in subject.loads(curves=True) if r.key.window == WHOLE]
    wanted = present(rows, (*metrics.LOAD, *_extra(subject), *metrics.COST))
    lines = []
    for row in rows:
        iops = row.figures[metrics.IOPS.key]
        cells = [*who(subject, row), text(row.key.op)]
        cells += [doubts_cell(subject.doubted.get(row.key, ())), count(row.key.depth or 0)]
        cells += [count(row.repeats), figure(metrics.IOPS, iops.deviation)]
        cells += [figure(metric, _value(row, metric)) for metric in wanted]
        lines.append(tuple(cells))
    columns = (
        *WHO,
        TableColumn("Direction", numeric=False),
        _DOUBTS,
        TableColumn("Depth"),
        TableColumn("Repeats"),
        TableColumn("σ over repeats", "IOPS"),
        *_columns(wanted),
    )
    return Table("curves", "Response curves", columns, tuple(lines), "Every step is a row.")
