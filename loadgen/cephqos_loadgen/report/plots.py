"""Kinds of plots: dots with error bars, lines over time, curves, bars in parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cephqos_loadgen.report import svg
from cephqos_loadgen.report.svg import Scale
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


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one series; errors are half the length of the bars."""

    name: str
    points: tuple[tuple[float, float], ...]
    errors: tuple[tuple[float, float], ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of time in which something ran."""

    name: str
    start: float
    end: float


def _x_axis(scale: Scale, top: float, bottom: float, title: str) -> list[str]:
    parts = []
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(svg.line(x, top, x, bottom, "grid"))
        parts.append(svg.text(x, bottom + 16, svg.tick_text(tick), "soft middle"))
    middle = (scale.start + scale.end) / 2
    return [*parts, svg.text(middle, bottom + 34, title, "middle")]


def _y_axis(scale: Scale, left: float, right: float, title: str) -> list[str]:
    parts = []
    for tick in scale.ticks():
        y = scale.at(tick)
        parts.append(svg.line(left, y, right, y, "grid"))
        parts.append(svg.text(left - 6, y + 4, svg.tick_text(tick), "soft end"))
    return [*parts, svg.text(left, scale.end - 10, title)]


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
    body = [svg.text(8, 20, title, "title"), *_x_axis(scale, _TOP - 6, bottom, axis)]
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


def over_time(
    title: str, panels: Sequence[tuple[str, Sequence[Line]]], bands: Sequence[Band], seconds: float
) -> str:
    """Panels above each other with one axis of time; phases as bands."""
    left, right, height = 74.0, _WIDTH - 20, 120.0
    across = Scale(0.0, max(seconds, 1.0), left, right)
    body = [svg.text(8, 20, title, "title")]
    names = [line.name for line in max((lines for _, lines in panels), key=len, default=[])]
    if len(names) > 1:
        body.append(svg.legend(8, 40, names, lines=True))
    top = 88.0
    for number_, (axis, lines) in enumerate(panels):
        bottom = top + height
        for band in bands:
            start, end = across.at(max(0.0, band.start)), across.at(min(seconds, band.end))
            tip = f"{band.name}: {band.start:.0f} to {band.end:.0f} s"
            body.append(svg.rect(start, top, end - start, height, "band", tip))
            if not number_:
                body.append(svg.text(start + 3, top + 12, band.name, "soft"))
        scale = svg.linear([y for line in lines for _, y in line.points], bottom, top)
        body += _y_axis(scale, left, right, axis)
        for index, line in enumerate(lines):
            points = [(across.at(x), scale.at(y)) for x, y in line.points]
            body.append(svg.path(points, index, thin=True))
        top = bottom + 34
    body += _x_axis(across, top - 34, top - 34, "seconds since the repeat began")
    return svg.drawing(_WIDTH, top + 14, title, body)


def curves(title: str, x_axis: str, y_axis: str, lines: Sequence[Line]) -> str:
    """Lines through labelled points, with error bars in both directions."""
    left, right, bottom, top = 74.0, _WIDTH - 40, 420.0, 84.0
    xs = [x + e for line in lines for (x, _), (e, _) in zip(line.points, line.errors, strict=True)]
    ys = [y + e for line in lines for (_, y), (_, e) in zip(line.points, line.errors, strict=True)]
    across, up = svg.linear(xs, left, right), svg.linear(ys, bottom, top)
    body = [svg.text(8, 20, title, "title"), svg.legend(8, 42, [x.name for x in lines], lines=True)]
    body += [*_x_axis(across, top, bottom, x_axis), *_y_axis(up, left, right, y_axis)]
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


def stacked(
    title: str,
    axis: str,
    labels: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Sequence[float]],
) -> str:
    """One bar per label, in parts; parts are told apart by shade and by what they say."""
    left = 24 + 6.9 * min(max(map(len, labels), default=0), 44)
    scale = svg.linear([sum(row) for row in rows], left, _WIDTH - 70)
    bottom = _TOP + _ROW * len(rows)
    body = [svg.text(8, 20, title, "title"), *_x_axis(scale, _TOP - 6, bottom, axis)]
    body.append(svg.legend(8, 42, [svg.cut(name, 16) for name in names], lines=False))
    for index, (label, row) in enumerate(zip(labels, rows, strict=True)):
        y, done = _TOP + _ROW * index + 4, 0.0
        body.append(svg.text(left - 10, y + 13, svg.cut(label, 44), "end"))
        for part, value in enumerate(row):
            start, end = scale.at(done), scale.at(done + value)
            tip = f"{label}: {names[part]} {number(value)} {axis}"
            body.append(
                svg.rect(start, y, end - start - 1, _ROW - 8, f"f{part % svg.COLOURS}", tip)
            )
            if end - start > 8 + 6.6 * len(names[part]):
                body.append(svg.text((start + end) / 2, y + 13, names[part], "on middle"))
            done += value
        body.append(svg.text(scale.at(done) + 8, y + 13, number(sum(row))))
    return svg.drawing(_WIDTH, bottom + 44, title, body)


def heat(
    title: str,
    x_axis: str,
    y_axis: str,
    across: Sequence[str],
    up: Sequence[str],
    values: Mapping[tuple[str, str], float],
) -> str:
    """Cells with their value; the darker, the more. The number says it in print as well."""
    wide = min(96.0, (_WIDTH - 110) / max(1, len(across)))
    high, left, top = 34.0, 96.0, 64.0
    most = max(values.values(), default=0.0) or 1.0
    body = [svg.text(8, 20, title, "title"), svg.text(8, 44, f"{y_axis} ↓   {x_axis} →", "soft")]
    for column, x in enumerate(across):
        body.append(svg.text(left + wide * (column + 0.5), top - 6, x, "soft middle"))
    for row, y in enumerate(up):
        body.append(svg.text(left - 8, top + high * (row + 0.62), y, "soft end"))
        for column, x in enumerate(across):
            value = values.get((x, y))
            place = (left + wide * column, top + high * row)
            if value is not None:
                tip = f"{x_axis} {x}, {y_axis} {y}: {number(value)}"
                cell = svg.rect(*place, wide - 2, high - 2, "f0", tip)
                share = 0.08 + 0.5 * value / most
                body.append(cell.replace('class="f0"', f'class="f0" fill-opacity="{share:.2f}"'))
            middle = (place[0] + wide / 2 - 1, place[1] + high * 0.62)
            body.append(svg.text(*middle, number(value), "middle"))
    return svg.drawing(_WIDTH, top + high * len(up) + 12, title, body)
