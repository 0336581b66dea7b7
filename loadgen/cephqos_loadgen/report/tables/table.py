"""Tables as data. Writers turn them into HTML, Markdown and CSV."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.words import number, percent, shown


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, what is sorted by and written to CSV, and how it stands out."""

    text: str
    value: float | str | None = None
    mark: str = ""  # best, worst, caveat
    shade: float = 0.0  # 0 to 1: how dark the background is, as on a heat map


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The head of a column. One that is not `numeric` is text, aligned to the left."""

    title: str
    unit: str = ""
    numeric: bool = True


def text_columns(*titles: str) -> list[TableColumn]:
    return [TableColumn(title, numeric=False) for title in titles]


def number_columns(*titles: str, unit: str = "") -> list[TableColumn]:
    return [TableColumn(title, unit) for title in titles]


@dataclass(frozen=True, slots=True)
class Table:
    """`name` is that of its CSV file. `note` stands below."""

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


Row = TypeVar("Row")
# A column, and how its cell is made from a row of any kind.
ColumnOf = tuple[TableColumn, Callable[[Row], Cell]]


def table_of(
    name: str, title: str, rows: Iterable[Row], columns: Sequence[ColumnOf[Row]], note: str = ""
) -> Table:
    """A table with a line for each row, whose cells the columns make."""
    lines = tuple(tuple(cell(row) for _, cell in columns) for row in rows)
    return Table(name, title, tuple(column for column, _ in columns), lines, note)


def text(value: str) -> Cell:
    return Cell(value, value)


def figure(metric: FigureKind, value: float | None, mark: str = "") -> Cell:
    return Cell(shown(metric, value), None if value is None else value * metric.scale, mark)


def count(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def percent_cell(ratio: float | None) -> Cell:
    """A change of 0.05 as `+5.0 %`; sorted and written as 5."""
    return Cell(percent(ratio), None if ratio is None else ratio * 100)


def depth_cell(depth: int | None) -> Cell:
    """Of a step of a curve; a dash for a load of one depth."""
    return Cell("–") if depth is None else count(depth)


def caveats_cell(numbers: Sequence[int]) -> Cell:
    joined = ", ".join(map(str, numbers))
    return Cell(joined or "–", joined, "caveat" if numbers else "")


def plain_figure(value: float | None) -> Cell:
    """A figure that is shown in the unit that it is kept in."""
    return Cell(number(value), value)
