"""Draws figures over two dimensions as a surface in space. `charts.surface` gives the grid."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.words import number

_WIDTH: Final = 540.0  # two of them lie side by side
_HEIGHT: Final = 420.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Values over two dimensions, by a value of the x axis and one of the y axis."""

    title: str
    unit: str
    x_axis: str
    y_axis: str
    across: Sequence[str]  # the values of the x axis, in order
    up: Sequence[str]  # those of the y axis
    values: Mapping[tuple[str, str], float]
    largest: float  # the top of the scale, which several grids may share

    def tip(self, x: str, y: str) -> str:
        value = number(self.values.get((x, y)))
        return f"{self.x_axis} {x}, {self.y_axis} {y}: {value} {self.unit}"


@dataclass(frozen=True, slots=True)
class _Space:
    """Places on paper of places in space: the far corner has the last x and the last y.

    On paper the far corner of the floor is at (285, 190). Each side of the floor goes 190 pixels to
    its side and 88 down from there, and the highest value is 118 pixels above the floor.
    """

    columns: int
    rows: int
    top: float  # value at the top of the scale

    def at(self, column: float, row: float, value: float) -> tuple[float, float]:
        to_the_right = 1 - column / max(1, self.columns - 1)  # share of a side, from the far corner
        to_the_left = 1 - row / max(1, self.rows - 1)
        x = 285 + 190 * (to_the_right - to_the_left)
        y = 190 + 88 * (to_the_right + to_the_left) - 118 * value / self.top
        return x, y


def surface(grid: Grid) -> str:
    """The values as heights, seen from above a corner. High values usually lie at the far one."""
    space = _Space(len(grid.across), len(grid.up), _round_up(grid.largest))
    body = [svg.text(8, 20, grid.title, "title")]
    body += _walls(space)
    body += _floor_names(grid, space)
    body += _faces(grid, space)
    for row, y in enumerate(grid.up):
        for column, x in enumerate(grid.across):
            value = grid.values.get((x, y))
            if value is not None:
                body.append(svg.marker(*space.at(column, row, value), 0, grid.tip(x, y), 2.6))
    return svg.drawing(_WIDTH, _HEIGHT, grid.title, body)


def _round_up(value: float) -> float:
    """To half a power of ten: 1,234 becomes 1,500."""
    if value <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step


def _walls(space: _Space) -> Iterator[str]:
    """Heights behind the surface, with their numbers at the left edge."""
    last_column, last_row = space.columns - 1, space.rows - 1
    corners = ((last_column, 0), (last_column, last_row), (0, last_row))
    for quarter in range(5):
        value = space.top * quarter / 4
        places = [space.at(*corner, value) for corner in corners]
        for start, end in itertools.pairwise(places):
            yield svg.line(*start, *end, "grid")
        x, y = places[0]
        yield svg.text(x - 6, y + 4, svg.tick_text(value), "soft end")
    for corner in corners:
        yield svg.line(*space.at(*corner, 0), *space.at(*corner, space.top), "grid")


def _floor_names(grid: Grid, space: _Space) -> Iterator[str]:
    """Lines of the floor, and what they stand for along the two near edges."""
    last_column, last_row = space.columns - 1, space.rows - 1
    for column, x_value in enumerate(grid.across):
        x, y = space.at(column, 0, 0)
        yield svg.line(x, y, *space.at(column, last_row, 0), "grid")
        yield svg.text(x - 6, y + 15, x_value, "soft end")
    for row, y_value in enumerate(grid.up):
        x, y = space.at(0, row, 0)
        yield svg.line(x, y, *space.at(last_column, row, 0), "grid")
        yield svg.text(x + 8, y + 15, y_value, "soft")
    yield svg.text(100, _HEIGHT - 20, f"{grid.x_axis} ↖", "")
    yield svg.text(440, _HEIGHT - 20, f"↗ {grid.y_axis}", "")
    yield svg.text(8, 44, f"{grid.unit} ↑", "soft")


def _faces(grid: Grid, space: _Space) -> Iterator[str]:
    """From the far corner to the near one, so that the near ones hide what is behind them. A face
    that lacks a value of its four corners is left out."""
    cells = [(c, r) for r in range(space.rows - 1) for c in range(space.columns - 1)]
    for column, row in sorted(cells, key=lambda cell: -cell[0] - cell[1]):
        corners = ((column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1))
        values = [grid.values.get((grid.across[c], grid.up[r])) for c, r in corners]
        heights = [value for value in values if value is not None]
        if len(heights) == len(corners):
            places = [space.at(*corner, h) for corner, h in zip(corners, heights, strict=True)]
            share = sum(heights) / 4 / (grid.largest or 1.0)
            yield svg.polygon(places, "paper")
            yield svg.polygon(places, "face", 0.12 + 0.55 * share)
