"""Kinds of plots: dots with error bars, and curves."""

from collections.abc import Sequence
from dataclasses import dataclass

from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.charts.plot_time import Line
from cephqos_loadgen.report.charts.svg import Scale
from cephqos_loadgen.report.words import number

_WIDTH = 860.0
_TOP = 58.0
_ROW = 26.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its error bar, of one of the chart's series."""

    series: int
    value: float
    low: float | None = None
    high: float | None = None


def dots(
    title: str,
    axis: str,
    labels: Sequence[str],
    rows: Sequence[Sequence[Dot]],
    names: Sequence[str],
    *,
    log: bool = False,
) -> str:
    """One line per label; values from left to right."""
    left = 24 + 6.9 * min(max(map(len, labels), default=0), 44)
    values = [v for row in rows for d in row for v in (d.value, d.low, d.high) if v is not None]
    make = svg.logarithmic if log else svg.linear
    scale = make(values, left, _WIDTH - 70)
    bottom = _TOP + _ROW * len(rows)
    body = [svg.text(8, 20, title, "title"), *svg.x_axis(scale, _TOP - 6, bottom, axis)]
    if len(names) > 1:
        body.append(svg.legend(8, 42, names, lines=False))
    for index, (label, row) in enumerate(zip(labels, rows, strict=True)):
        y = _TOP + _ROW * (index + 0.5)
        body.append(svg.text(left - 10, y + 4, svg.cut(label, 44), "end"))
        ends = [scale.at(dot.value) for dot in row]
        if len(ends) > 1:
            body.append(svg.line(min(ends), y, max(ends), y, "axis"))
        for dot in row:
            body += _dot(scale, y, dot, f"{label}: {names[dot.series]}")
        if len(row) == 1:
            end = max(scale.at(row[0].high or row[0].value), ends[0])
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
    xs = [x + e for line in lines for (x, _), (e, _) in zip(line.points, line.errors, strict=True)]
    ys = [y + e for line in lines for (_, y), (_, e) in zip(line.points, line.errors, strict=True)]
    across, up = svg.linear(xs, left, right), svg.linear(ys, bottom, top)
    body = [svg.text(8, 20, title, "title"), svg.legend(8, 42, [x.name for x in lines], lines=True)]
    body += [*svg.x_axis(across, top, bottom, x_axis), *svg.y_axis(up, left, right, y_axis)]
    for index, line in enumerate(lines):
        places = [(across.at(x), up.at(y)) for x, y in line.points]
        body.append(svg.path(places, index))
        for (x, y), error, label, (px, py) in zip(
            line.points, line.errors, line.labels, places, strict=True
        ):
            kind = f"s{index % svg.COLOURS}"
            body.append(
                svg.line(across.at(max(0.0, x - error[0])), py, across.at(x + error[0]), py, kind)
            )
            body.append(svg.line(px, up.at(max(0.0, y - error[1])), px, up.at(y + error[1]), kind))
            tip = f"{line.name}, {label}: {number(x)} {x_axis}, {number(y)} {y_axis}"
            body.append(svg.marker(px, py, index, tip))
            body.append(svg.text(px + 6, py - 6, label.removeprefix("depth "), "soft"))
    return svg.drawing(_WIDTH, bottom + 46, title, body)
