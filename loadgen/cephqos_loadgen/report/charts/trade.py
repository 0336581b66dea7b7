"""The charts of the trade: what clients kept against how long scrub or recovery took.

One mark per point of the matrix: throughput (or p99) beside the work is across, its time is up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cephqos_loadgen.report.arrays.statistics import CONFIDENCE, reach_of_mean
from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.charts.of_points import labels_of
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, LOAD, Figure, ReportRow
from cephqos_loadgen.report.figures.loads import DURING
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text
from cephqos_loadgen.report.words import number

_WIDTH: Final = 412.0
_TOP: Final = 62.0
_BOTTOM: Final = 330.0
_LINE: Final = 18.0  # height of a name below the axes
_WORK: Final = (("scrub", metrics.SCRUB_SECONDS), ("recovery", metrics.RECOVERY_SECONDS))
_BARS: Final = f"bars: {CONFIDENCE:.0%} interval of the mean over repeats"


@dataclass(frozen=True, slots=True)
class _Reach:
    """A figure in the unit that is shown, and the interval of its mean over repeats."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, figure: Figure, metric: FigureKind) -> "_Reach":
        value, reach = figure.value * metric.scale, reach_of_mean(figure.samples)
        if reach is None:
            return cls(value)
        reach *= metric.scale
        return cls(value, max(0.0, value - reach), value + reach)

    def cells(self) -> Iterator[Cell]:
        for value in (self.value, self.low, self.high):
            yield Cell(number(value), value)


class _Mark(NamedTuple):
    """One point of the matrix on the chart."""

    label: str
    clients: _Reach  # what they got
    work: _Reach  # how long it took


def trades(subject: Subject) -> Iterator[Chart]:
    """Throughput and p99 of the load beside scrub or recovery, each against the time of that work,
    where there are points to choose from."""
    for work, seconds in _WORK:
        pairs = list(_pairs(subject, work, seconds))
        if len({time.key.point for _, time in pairs}) < 2:
            continue
        labels = labels_of(subject, [load for load, _ in pairs])
        for metric in (metrics.IOPS, metrics.P99):
            marks = [
                _Mark(
                    label,
                    _Reach.of(load.figures[metric.key], metric),
                    _Reach.of(time.figures[seconds.key], seconds),
                )
                for label, (load, time) in zip(labels, pairs, strict=True)
                if metric.key in load.figures
            ]
            if marks:
                yield _chart(f"trade-{work}-{metric.key}", metric, seconds, marks)


def _pairs(
    subject: Subject, work: str, seconds: FigureKind
) -> Iterator[tuple[ReportRow, ReportRow]]:
    """The part of each load during which the work was active, with the row of that work."""
    times = {
        (row.key.run, row.key.point): row
        for row in subject.rows
        if row.key.kind == BACKGROUND and seconds.key in row.figures
    }
    for row in subject.rows:
        key = row.key
        is_beside = (key.kind, key.op, key.window) == (LOAD, "total", DURING[work])
        time = times.get((key.run, key.point))
        if is_beside and key.depth is None and time is not None:
            yield row, time


def _chart(name: str, metric: FigureKind, seconds: FigureKind, marks: Sequence[_Mark]) -> Chart:
    title = f"{metric.title} of clients against {seconds.title.lower()}"
    has_intervals = any(
        reach.low is not None for mark in marks for reach in (mark.clients, mark.work)
    )
    columns = [TableColumn("Point", numeric=False)]
    for kind in (metric, seconds):
        columns.append(TableColumn(kind.title, kind.unit))
        columns += [TableColumn(f"{kind.title}, {end}", kind.unit) for end in ("low", "high")]
    rows = tuple((text(m.label), *m.clients.cells(), *m.work.cells()) for m in marks)
    note = _BARS if has_intervals else ""
    table = Table(f"chart-{name}", title, tuple(columns), rows, note=note)
    drawing = _drawing(table, f"{metric.title}, {metric.unit}", f"{seconds.title}, s", marks)
    return Chart(name, title, drawing, table, beside=True)


def _drawing(table: Table, across: str, up: str, marks: Sequence[_Mark]) -> str:
    left, right = 52.0, _WIDTH - 30
    x_ends = [mark.clients.high or mark.clients.value for mark in marks]
    y_ends = [mark.work.high or mark.work.value for mark in marks]
    xs, ys = svg.linear(x_ends, left, right), svg.linear(y_ends, _BOTTOM, _TOP)
    body = [svg.text(8, 16, table.title, "title"), svg.text(8, 33, table.note, "soft")]
    body += [*svg.x_axis(xs, _TOP, _BOTTOM, across), *svg.y_axis(ys, left, right, up)]
    for index, (label, got, took) in enumerate(marks):
        x, y, kind = xs.at(got.value), ys.at(took.value), f"l s{index % svg.COLOURS}"
        if got.low is not None and got.high is not None:
            body.append(svg.line(xs.at(got.low), y, xs.at(got.high), y, kind))
        if took.low is not None and took.high is not None:
            body.append(svg.line(x, ys.at(took.low), x, ys.at(took.high), kind))
        tip = f"{label}: {number(got.value)} {across}; {number(took.value)} {up}"
        name_y = _BOTTOM + 44 + _LINE * (index + 1)
        body += [svg.marker(x, y, index, tip, 5.0), svg.marker(left, name_y - 4, index)]
        body.append(svg.text(left + 12, name_y, svg.cut(label, 44)))
    height = _BOTTOM + 56 + _LINE * len(marks)
    return svg.drawing(_WIDTH, height, table.title, body)
