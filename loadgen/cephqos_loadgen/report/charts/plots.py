"""Draws dots with error bars (`dots`) and curves (`curves`). Lengths are pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.charts.plot_time import Line
from cephqos_loadgen.report.charts.svg import Scale
from cephqos_loadgen.report.words import number

_WIDTH = 860.0
_TOP = 58.0
_ROW = 26.0  # height of a row of dots
_LABEL_LETTERS = 44  # a longer label is cut off
_LABEL_LETTER = 6.9  # about, width of one


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its error bar, of one of the chart's series."""

    series: int
    value: float
    low: float | None = None
    high: float | None = None

    def values(self) -> list[float]:
        """All that must fit on the axis."""
        return [value for value in (self.value, self.low, self.high) if value is not None]


def dots(
    title: str,
    axis: str,
    labels: Sequence[str],
    rows: Sequence[Sequence[Dot]],
    names: Sequence[str],
    *,
    log: bool = False,
) -> str:
    """One row per label, with values from left to right. `names` are those of the series that the
    dots of a row belong to."""
    left = 24 + _LABEL_LETTER * min(max(map(len, labels), default=0), _LABEL_LETTERS)
    values = [value for row in rows for dot in row for value in dot.values()]
    make_scale = svg.logarithmic if log else svg.linear
    scale = make_scale(values, left, _WIDTH - 70)
    bottom = _TOP + _ROW * len(rows)
    body = [svg.text(8, 20, title, "title"), *svg.x_axis(scale, _TOP - 6, bottom, axis)]
    if len(names) > 1:
        body.append(svg.legend(8, 42, names, lines=False))
    for index, (label, row) in enumerate(zip(labels, rows, strict=True)):
        y = _TOP + _ROW * (index + 0.5)
        body.append(svg.text(left - 10, y + 4, svg.cut(label, _LABEL_LETTERS), "end"))
        places = [scale.at(dot.value) for dot in row]
        if len(places) > 1:
            body.append(svg.line(min(places), y, max(places), y, "axis"))
        for dot in row:
            body += _dot(scale, y, dot, f"{label}: {names[dot.series]}")
        if len(row) == 1:
            end = max(scale.at(row[0].high or row[0].value), places[0])
            body.append(svg.text(end + 8, y + 4, number(row[0].value)))
    return svg.drawing(_WIDTH, bottom + 44, title, body)


def _dot(scale: Scale, y: float, dot: Dot, name: str) -> list[str]:
    parts = []
    tip = f"{name} {number(dot.value)}"
    if dot.low is not None and dot.high is not None:
        low, high = scale.at(max(dot.low, scale.low)), scale.at(dot.high)
        kind = f"l s{dot.series % svg.COLOURS}"
        parts.append(svg.line(low, y, high, y, kind))
        parts += [svg.line(x, y - 5, x, y + 5, kind) for x in (low, high)]
        tip += f" ({number(dot.low)} to {number(dot.high)})"
    return [*parts, svg.marker(scale.at(dot.value), y, dot.series, tip)]


def curves(title: str, x_axis: str, y_axis: str, lines: Sequence[Line]) -> str:
    """Lines through labelled points, with error bars in both directions."""
    left, right, bottom, top = 74.0, _WIDTH - 40, 420.0, 84.0
    x_ends, y_ends = [], []
    for line in lines:
        for (x, y), (x_error, y_error) in zip(line.points, line.errors, strict=True):
            x_ends.append(x + x_error)
            y_ends.append(y + y_error)
    across, up = svg.linear(x_ends, left, right), svg.linear(y_ends, bottom, top)
    names = [line.name for line in lines]
    body = [svg.text(8, 20, title, "title"), svg.legend(8, 42, names, lines=True)]
    body += [*svg.x_axis(across, top, bottom, x_axis), *svg.y_axis(up, left, right, y_axis)]
    for index, line in enumerate(lines):
        body.append(svg.path([(across.at(x), up.at(y)) for x, y in line.points], index))
        kind = f"s{index % svg.COLOURS}"
        for (x, y), (x_error, y_error), label in zip(
            line.points, line.errors, line.labels, strict=True
        ):
            x_place, y_place = across.at(x), up.at(y)
            low, high = across.at(max(0.0, x - x_error)), across.at(x + x_error)
            body.append(svg.line(low, y_place, high, y_place, kind))
            low, high = up.at(max(0.0, y - y_error)), up.at(y + y_error)
            body.append(svg.line(x_place, low, x_place, high, kind))
            tip = f"{line.name}, {label}: {number(x)} {x_axis}, {number(y)} {y_axis}"
            body.append(svg.marker(x_place, y_place, index, tip))
            body.append(svg.text(x_place + 6, y_place - 6, label.removeprefix("depth "), "soft"))
    return svg.drawing(_WIDTH, bottom + 46, title, body)
