"""Numbers and names as people read them, and text that is safe to show."""

import html
from collections.abc import Sequence

from cephqos_base.terminal import printable
from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures.metrics import FigureKind

NONE_FOUND = "no difference found"
UNKNOWN = "one repeat: not known"


def number(value: float | None) -> str:
    """Three significant digits at least, thousands grouped; a dash for what is absent."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 100 or value == 0:
        digits = 0
    elif size >= 10:
        digits = 1
    else:
        digits = 2 if size >= 1 else 3
    text = f"{value:,.{digits}f}"
    is_zero = not text.strip("-0.,")
    return text.removeprefix("-") if is_zero else text


def shown(metric: FigureKind, value: float | None) -> str:
    """A figure as it is shown, without its unit."""
    return number(None if value is None else value * metric.scale)


def with_unit(metric: FigureKind, value: float) -> str:
    return f"{shown(metric, value)} {metric.unit}"


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio * 100:+.1f} %"


def interval(change: ChangeInterval) -> str:
    if change.low is None or change.high is None:
        return "–"
    return f"{change.low * 100:+.1f} … {change.high * 100:+.1f} %"


def verdict(change: ChangeInterval) -> str:
    """Whether a change is beyond noise, in words."""
    if not change.known:
        return UNKNOWN if change.ratio is not None else "–"
    if not change.beyond_noise:
        return NONE_FOUND
    return "higher" if (change.ratio or 0) > 0 else "lower"


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; the rest is counted."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def escaped(text: str) -> str:
    """For HTML and SVG, in text and in attributes."""
    return html.escape(printable(text), quote=True)


def in_markdown(text: str) -> str:
    """For a cell or a line of Markdown."""
    safe = printable(text)
    for char in "\\`*_[]<>|#~":
        safe = safe.replace(char, "\\" + char)
    return safe
