"""Small pieces of SVG. `kind` is always a CSS class, which has the colour.

A line or marker has a number: its dash or form tells it from others without colours too.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cephqos_loadgen.report.words import escaped, number

STYLE: Final = Path(__file__).with_name("chart.css").read_text(encoding="utf-8")
DASHES: Final = ("", "6 3", "2 3", "9 3 2 3", "4 2", "12 4")
COLOURS: Final = 6  # s0 to s5 of lines and f0 to f5 of markers, in chart.css
_KEY_LETTERS: Final = 40  # of a name in a legend
_KEY_WIDTH: Final = 44  # of a mark in a legend, with the space around it
_LETTER_WIDTH: Final = 6.8  # about, in the font of chart.css
_MARGIN: Final = 1.15  # the part of a logarithmic axis beyond the values, at either end
_ROUNDING: Final = 1e-9


def text(x: float, y: float, content: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{name}>{escaped(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    tip: str = "",
    opacity: float | None = None,
) -> str:
    inner = f"<title>{escaped(tip)}</title>" if tip else ""
    shade = "" if opacity is None else f' fill-opacity="{opacity:.2f}"'
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}"'
        f' height="{max(0.0, height):.1f}" class="{kind}"{shade}>{inner}</rect>'
    )


def polygon(places: Sequence[tuple[float, float]], kind: str, opacity: float | None = None) -> str:
    shade = "" if opacity is None else f' fill-opacity="{opacity:.2f}"'
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polygon points="{points}" class="{kind}"{shade}/>'


def moving(content: str) -> str:
    """What the page's script moves and stretches along the axis of time."""
    return f'<g class="moves">{content}</g>' if content else ""


def path(
    points: Sequence[tuple[float, float]],
    number_: int,
    *,
    thin: bool = False,
    name: str = "",
    gap: float = math.inf,
) -> str:
    """A line through points, in the colour and dash of this number; broken where one is further
    than `gap` from the next."""
    if not points:
        return ""
    line_to, before = "", points[0][0]
    for x, y in points:
        joint = "M" if not line_to or x - before > gap else "L"
        line_to += f"{joint}{x:.1f} {y:.1f}"
        before = x
    dash = DASHES[number_ % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    kind = f"l s{number_ % COLOURS}" + (" thin" if thin else "")
    data_name = f' data-name="{escaped(name)}"' if name else ""
    return f'<path d="{line_to}" class="{kind}"{dashed}{data_name}/>'


def marker(x: float, y: float, number_: int, tip: str = "", size: float = 4.0) -> str:
    """A mark whose form belongs to the number; `tip` is shown under the mouse."""
    r = size
    # Circle, square, triangle, diamond, horizontal bar, vertical bar.
    forms = (
        f"M{x - r} {y}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0",
        f"M{x - r} {y - r}h{2 * r}v{2 * r}h{-2 * r}z",
        f"M{x} {y - r - 1}l{r + 1} {2 * r}h{-2 * r - 2}z",
        f"M{x} {y - r - 1}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
        f"M{x - r} {y - 1.2}h{2 * r}v2.4h{-2 * r}z",
        f"M{x - 1.2} {y - r}h2.4v{2 * r}h-2.4z",
    )
    inner = f"<title>{escaped(tip)}</title>" if tip else ""
    kind = f"f{number_ % COLOURS}"
    return f'<path d="{forms[number_ % len(forms)]}" class="{kind}">{inner}</path>'


def drawing(width: float, height: float, title: str, body: Iterable[str], head: str = "") -> str:
    """An SVG without style, for a page that has the style already. A file needs `standalone`."""
    more = f" {head}" if head else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width:.0f}'
        f' {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img"'
        f' aria-label="{escaped(title)}"{more}>' + "".join(body) + "</svg>"
    )


def standalone(svg: str) -> str:
    """The text of a file with one drawing, with its style."""
    head, _, body = svg.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}><style>{STYLE}</style>{body}\n'


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to places on an axis, linearly or by their logarithms."""

    low: float  # value
    high: float
    start: float  # place of `low`, in pixels
    end: float  # place of `high`
    log: bool = False

    def at(self, value: float) -> float:
        low, high, value = map(self._measure, (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * share

    def _measure(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.log else value  # 0 has no logarithm

    def ticks(self) -> list[float]:
        return _log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)


def linear(values: Sequence[float], start: float, end: float) -> Scale:
    """From zero to a round number at least 2% above all values."""
    high = max([*values, 0.0]) or 1.0
    step = _step(high)
    return Scale(low=0.0, high=math.ceil(high * 1.02 / step) * step, start=start, end=end)


def logarithmic(values: Sequence[float], start: float, end: float) -> Scale:
    above = [value for value in values if value > 0] or [1.0]
    low, high = min(above) / _MARGIN, max(above) * _MARGIN
    return Scale(low=low, high=high, start=start, end=end, log=True)


def linear_ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    first = math.ceil(low / step - _ROUNDING)
    last = math.floor(high / step + _ROUNDING)
    return [step * n for n in range(first, last + 1)]


def _step(span: float) -> float:
    """A round step that makes three to six parts."""
    rough = span / 5 if span > 0 else 1.0
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * n for n in (1, 2, 2.5, 5, 10) if unit * n >= rough * 0.999)


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 4 else (1,)
    ticks = [n * 10.0**power for power in range(first, last + 1) for n in steps]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 1 else [low * _MARGIN, high / _MARGIN]


def tick_text(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else number(value)


def cut(content: str, most: int) -> str:
    return content if len(content) <= most else content[: most - 1] + "…"


def _key_width(name: str) -> float:
    return _KEY_WIDTH + _LETTER_WIDTH * min(len(name), _KEY_LETTERS)


def legend_rows(names: Sequence[str], width: float) -> list[list[str]]:
    """The names in rows that are no wider."""
    rows: list[list[str]] = [[]]
    for name in names:
        if rows[-1] and sum(map(_key_width, (*rows[-1], name))) > width:
            rows.append([])
        rows[-1].append(name)
    return rows


def legend(x: float, y: float, names: Sequence[str], lines: bool, first: int = 0) -> str:
    """Marks and their names in one row; `first` is the number of the first of them."""
    parts = []
    for index, name in enumerate(names, start=first):
        key = [path([(x, y - 4), (x + 22, y - 4)], index)] if lines else []
        key += [marker(x + 11, y - 4, index), text(x + 28, y, cut(name, _KEY_LETTERS))]
        parts.append(f'<g class="key" data-n="{index % COLOURS}">{"".join(key)}</g>')
        x += _key_width(name)
    return "".join(parts)


def x_axis(scale: Scale, top: float, bottom: float, title: str) -> list[str]:
    """Vertical grid lines from top to bottom, with their values and a title below."""
    parts = []
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(line(x, top, x, bottom, "grid"))
        parts.append(text(x, bottom + 16, tick_text(tick), "soft middle"))
    middle = (scale.start + scale.end) / 2
    return [*parts, text(middle, bottom + 34, title, "middle")]


def y_axis(scale: Scale, left: float, right: float, title: str) -> list[str]:
    """Horizontal grid lines from left to right, with their values left of them."""
    parts = []
    for tick in scale.ticks():
        y = scale.at(tick)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(text(left - 6, y + 4, tick_text(tick), "soft end"))
    return [*parts, text(left, scale.end - 10, title)] if title else parts
