"""Text for a terminal: widths, numbers with units."""

import unicodedata
from typing import Final

from cephqos_base.units import time_span

UNKNOWN: Final = "-"


def width(text: str) -> int:
    """Columns that the text takes: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """Exactly that wide: padded with spaces, or cut with an ellipsis."""
    missing = columns - width(text)
    if missing >= 0:
        return text + " " * missing
    if columns <= 0:
        return ""
    kept = ""
    for character in text:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return fit(f"{kept}…", columns)


def number(value: float | None) -> str:
    """Operations per second and counts."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio:.0%}"


def latency(seconds: float | None) -> str:
    """A latency with three digits at most: `0.45 ms`, `12.3 ms`, `1.20 s`."""
    if seconds is None:
        return UNKNOWN
    if seconds == 0:
        return "0"
    if seconds >= 1:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    milliseconds = seconds * 1000
    if milliseconds < 1:
        return f"{milliseconds:.2f} ms"
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


def duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else time_span(seconds)


def data_rate(value: float | None) -> str:
    """Bytes per second in binary units."""
    if value is None:
        return UNKNOWN
    for unit in ("B/s", "KiB/s", "MiB/s"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB/s"
