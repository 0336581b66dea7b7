"""Draws panels over one axis of time: phases as bars on top, bands behind, strips below.

`charts.over_time` gives what to draw: times in seconds since the repeat began. Lengths are pixels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.charts.svg import Scale

WIDTH: Final = 860.0
_LEFT: Final = 130.0
_RIGHT: Final = WIDTH - 20
_BARS_TOP: Final = 40.0  # below the title
_BAR: Final = 18.0  # height of a row of phases
_PANEL: Final = 110.0  # height of a panel
_BETWEEN_PANELS: Final = 34.0  # for a panel's title and legend
_STRIP: Final = 20.0  # height of a strip
_LEGEND_LEFT: Final = 290.0
_LEGEND_ROW: Final = 16.0
_LETTER: Final = 6.8  # about, width of a letter in a bar


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one series, each `(x, y)`. `errors` are half the length of a point's error bars in
    the two directions; `labels` are the points' names."""

    name: str
    points: tuple[tuple[float, float], ...]
    errors: tuple[tuple[float, float], ...] = ()
    labels: tuple[str, ...] = ()


def line_of(name: str, times: Floats, values: Floats) -> Line:
    """Through the values that are known."""
    known = np.isfinite(values)
    return Line(name, tuple(zip(times[known].tolist(), values[known].tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of time in which something ran."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over time with one axis."""

    axis: str
    lines: Sequence[Line]
    step: float = 0.0  # seconds between points; a line is broken where some are missing


@dataclass(frozen=True, slots=True)
class Strip:
    """When a cause was the main one."""

    name: str
    stretches: Sequence["CauseSpan"]
    all_osds: int  # how many there are


class CauseSpan(NamedTuple):
    """A time in which a cause was the main one on the same number of OSDs."""

    start: float
    end: float
    osds: int


def over_time(
    title: str,
    panels: Sequence[Panel],
    phases: Sequence[Band],
    bands: Sequence[Band],
    strips: Sequence[Strip],
    seconds: float,
    *,
    since: str = "seconds since the repeat began",
) -> str:
    """One repeat of `seconds`: `bands` are when scrub and recovery were active."""
    across = Scale(0.0, max(seconds, 1.0), _LEFT, _RIGHT)
    lanes = _lanes(phases)
    rows = max((len(_legend_rows(panel)) for panel in panels), default=1)
    between = _BETWEEN_PANELS + _LEGEND_ROW * (rows - 1)
    panels_top = _BARS_TOP + _BAR * len(lanes) + 26 + _LEGEND_ROW * (rows - 1)
    strips_top = panels_top + (_PANEL + between) * len(panels)
    bottom = strips_top + _STRIP * len(strips) if strips else strips_top - between
    body = [svg.text(8, 20, title, "title"), *_phase_bars(lanes, across)]
    body.append(_time_axis(across, panels_top, bottom, since))
    for index, panel in enumerate(panels):
        body += _panel(panel, bands, across, panels_top + (_PANEL + between) * index)
    if strips:
        body.append(svg.text(8, strips_top - 6, "main causes (darker: on more OSDs)"))
        body += _strips(strips, across, strips_top)
    head = f'data-time="{_LEFT:.0f} {_RIGHT:.0f} {across.high:.1f}"'
    return svg.drawing(WIDTH, bottom + 46, title, body, head)


def _lanes(phases: Sequence[Band]) -> list[list[Band]]:
    """The phases in rows: those that overlap are in different ones."""
    lanes: list[list[Band]] = []
    for phase in sorted(phases, key=lambda phase: phase.start):
        free = next((lane for lane in lanes if lane[-1].end <= phase.start), None)
        if free is None:
            lanes.append([phase])
        else:
            free.append(phase)
    return lanes


def _phase_bars(lanes: Sequence[Sequence[Band]], across: Scale) -> Iterator[str]:
    if lanes:
        yield svg.text(8, _BARS_TOP + 13, "phases", "soft")
    for row, lane in enumerate(lanes):
        y = _BARS_TOP + _BAR * row
        for phase in lane:
            yield _bar(phase, across, y, _BAR - 3)


def _bar(phase: Band, across: Scale, y: float, height: float) -> str:
    start, end = _within(phase, across)
    tip = f"{phase.name}: {phase.start:.0f} to {phase.end:.0f} s"
    bar = svg.rect(start, y, end - start, height, "phase", tip)
    letters = int((end - start - 6) / _LETTER)  # that the bar has room for
    if letters < min(4, len(phase.name)):
        return svg.moving(bar)
    return svg.moving(bar) + svg.text(start + 4, y + 11, svg.cut(phase.name, letters), "moves")


def _within(band: Band, across: Scale) -> tuple[float, float]:
    """Left and right end of a band on paper, cut off at the ends of the axis."""
    return across.at(max(0.0, band.start)), across.at(min(across.high, max(band.end, band.start)))


def _panel(panel: Panel, bands: Sequence[Band], across: Scale, top: float) -> Iterator[str]:
    bottom = top + _PANEL
    scale = svg.linear([y for line in panel.lines for _, y in line.points], bottom, top)
    yield f'<g class="panel" data-y="{bottom:.1f} {top:.1f} {scale.high:.6g}">'
    shades = "".join(_shade(band, across, top) for band in bands)
    yield svg.moving(shades)
    yield from svg.y_axis(scale, _LEFT, _RIGHT, "")
    yield svg.text(8, top - 10, panel.axis, "axisname")
    first, rows = 0, _legend_rows(panel) if len(panel.lines) > 1 else []
    for above, names in zip(reversed(range(len(rows))), rows, strict=True):
        y = top - 10 - _LEGEND_ROW * above
        yield svg.legend(_LEGEND_LEFT, y, names, lines=True, first=first)
        first += len(names)
    for index, line in enumerate(panel.lines):
        points = [(across.at(x), scale.at(y)) for x, y in line.points]
        gap = 1.5 * (across.at(panel.step) - across.at(0)) if panel.step else math.inf
        yield svg.moving(svg.path(points, index, thin=True, name=line.name, gap=gap))
    yield "</g>"


def _legend_rows(panel: Panel) -> list[list[str]]:
    return svg.legend_rows([line.name for line in panel.lines], _RIGHT - _LEGEND_LEFT)


def _shade(band: Band, across: Scale, top: float) -> str:
    start, end = _within(band, across)
    tip = f"{band.name} active: {band.start:.0f} to {band.end:.0f} s"
    return svg.rect(start, top, end - start, _PANEL, "band", tip)


def _strips(strips: Sequence[Strip], across: Scale, top: float) -> Iterator[str]:
    for row, strip in enumerate(strips):
        y = top + _STRIP * row
        yield svg.text(_LEFT - 6, y + 13, svg.cut(strip.name, 19), "end")
        yield svg.line(_LEFT, y + _STRIP - 2, _RIGHT, y + _STRIP - 2, "grid")
        cells = []
        for start, end, osds in strip.stretches:
            left, right = _within(Band("", start, end), across)
            tip = f"{strip.name}: {osds} of {strip.all_osds} OSDs, {start:.0f} to {end:.0f} s"
            shade = 0.25 + 0.65 * osds / max(1, strip.all_osds)
            cells.append(svg.rect(left, y, right - left, _STRIP - 4, "f0", tip, shade))
        yield svg.moving("".join(cells))


def _time_axis(across: Scale, top: float, bottom: float, since: str) -> str:
    parts = [
        svg.line(across.at(tick), top, across.at(tick), bottom, "grid") for tick in across.ticks()
    ]
    parts += [
        svg.text(across.at(tick), bottom + 16, svg.tick_text(tick), "soft middle")
        for tick in across.ticks()
    ]
    title = svg.text((_LEFT + _RIGHT) / 2, bottom + 34, since, "middle")
    return f'<g class="times" data-y="{top:.0f} {bottom:.0f}">{"".join(parts)}</g>{title}'


def stretches(times: Sequence[float], counts: Sequence[int]) -> tuple[CauseSpan, ...]:
    """Seconds that follow each other with the same number of OSDs, put together; none of no OSD.
    Each time stands for the second before it."""
    joined: list[CauseSpan] = []
    for time, osds in zip(times, counts, strict=True):
        if not osds:
            continue
        last = joined[-1] if joined else None
        if last and last.osds == osds and abs(last.end - (time - 1.0)) < 0.5:
            joined[-1] = last._replace(end=time)
        else:
            joined.append(CauseSpan(time - 1.0, time, osds))
    return tuple(joined)
