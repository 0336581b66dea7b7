"""Figures over two dimensions as a surface in space."""

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
    """Values over two dimensions. `most` is the top of the scale, which several grids may share."""

    title: str
    unit: str
    x_axis: str
    y_axis: str
    across: Sequence[str]
    up: Sequence[str]
    values: Mapping[tuple[str, str], float]
    most: float

    def tip(self, x: str, y: str) -> str:
        value = number(self.values.get((x, y)))
        return f"{self.x_axis} {x}, {self.y_axis} {y}: {value} {self.unit}"


@dataclass(frozen=True, slots=True)
class _Space:
    """Places on paper of places in space: the far corner has the last x and the last y."""

    columns: int
    rows: int
    most: float

    def at(self, column: float, row: float, value: float) -> tuple[float, float]:
        right = 1 - column / max(1, self.columns - 1)  # from the far corner to the right
        left = 1 - row / max(1, self.rows - 1)
        x = 285 + 190 * (right - left)
        y = 190 + 88 * (right + left) - 118 * value / self.most
        return x, y


def surface(grid: Grid) -> str:
    """The values as heights, seen from above a corner. High values usually lie at the far one."""
    space = _Space(len(grid.across), len(grid.up), _round_up(grid.most))
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


def _round_up(most: float) -> float:
    step = 10.0 ** math.floor(math.log10(most)) / 2 if most > 0 else 1.0
    return math.ceil(most / step) * step if most > 0 else 1.0


def _walls(space: _Space) -> Iterator[str]:
    """Heights behind the surface, with their numbers at the left edge."""
    right, back = space.columns - 1, space.rows - 1
    for part in range(5):
        value = space.most * part / 4
        corners = [
            space.at(right, 0, value),
            space.at(right, back, value),
            space.at(0, back, value),
        ]
        for start, end in itertools.pairwise(corners):
            yield svg.line(*start, *end, "grid")
        yield svg.text(corners[0][0] - 6, corners[0][1] + 4, svg.tick_text(value), "soft end")
    for corner in ((right, 0), (right, back), (0, back)):
        yield svg.line(*space.at(*corner, 0), *space.at(*corner, space.most), "grid")


def _floor_names(grid: Grid, space: _Space) -> Iterator[str]:
    """Lines of the floor, and what they stand for along the two near edges."""
    right, back = space.columns - 1, space.rows - 1
    for column, x in enumerate(grid.across):
        yield svg.line(*space.at(column, 0, 0), *space.at(column, back, 0), "grid")
        at = space.at(column, 0, 0)
        yield svg.text(at[0] - 6, at[1] + 15, x, "soft end")
    for row, y in enumerate(grid.up):
        yield svg.line(*space.at(0, row, 0), *space.at(right, row, 0), "grid")
        at = space.at(0, row, 0)
        yield svg.text(at[0] + 8, at[1] + 15, y, "soft")
    yield svg.text(100, _HEIGHT - 20, f"{grid.x_axis} ↖", "")
    yield svg.text(440, _HEIGHT - 20, f"↗ {grid.y_axis}", "")
    yield svg.text(8, 44, f"{grid.unit} ↑", "soft")


def _faces(grid: Grid, space: _Space) -> Iterator[str]:
    """From the far corner to the near one, so that the near ones hide what is behind them."""
    cells = [(c, r) for r in range(space.rows - 1) for c in range(space.columns - 1)]
    for column, row in sorted(cells, key=lambda cell: -cell[0] - cell[1]):
        corners = ((column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1))
        values = [grid.values.get((grid.across[c], grid.up[r])) for c, r in corners]
        heights = [value for value in values if value is not None]
        if len(heights) == len(corners):
            places = [space.at(*corner, h) for corner, h in zip(corners, heights, strict=True)]
            yield svg.polygon(places, "paper")
            yield svg.polygon(places, "face", 0.12 + 0.55 * sum(heights) / 4 / (grid.most or 1.0))
