"""Sizes, durations and CPU lists, from text and to text."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from cephqos_base.errors import UsageError

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
TIB: Final = 1 << 40

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0

SIZE_HELP: Final = "a number of bytes such as 4096, 4K, 1M or 10G"
SECONDS_HELP: Final = "a time such as 200ms, 30s, 5m or 1h"
TIME_HELP: Final = "seconds since 1970, or a date with time such as 2026-01-31T03:00:00Z"
CPU_LIST_HELP: Final = "CPU numbers and ranges such as 0,2-3"

_SIZE: Final = re.compile(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SIZE_UNITS: Final = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_SECONDS_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": MINUTE,
    "h": HOUR,
    "d": DAY,
}
_SECONDS_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?(ns|us|µs|ms|s|m|h|d)")
# More CPUs than any kernel is built for: a range such as 0-4294967295 must not fill the memory.
_MAX_CPU: Final = 1 << 16


def parse_size(text: str) -> int:
    """Bytes: `4096`, `4K`, `1M`, `10GiB`; UsageError if it is none.

    >>> parse_size("4K")
    4096
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"size {text!r}: expected {SIZE_HELP}")
    return int(match[1]) * _SIZE_UNITS[match[2].upper()]


def parse_seconds(text: str) -> float:
    """Seconds: `90`, `1m30s`, `200ms`, `1.5h`; UsageError if it is none.

    >>> parse_seconds("1m30s")
    90.0
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text):
        return float(text)
    parts = _SECONDS_PART.findall(text)
    if not parts or _SECONDS_PART.sub("", text):
        raise UsageError(f"time {text!r}: expected {SECONDS_HELP}")
    return sum(float(number) * _SECONDS_UNITS[unit] for number, unit in parts)


def parse_time(text: str, option: str) -> float:
    """Seconds since 1970. A date that names no zone is UTC; UsageError if it is no time.

    >>> parse_time("2026-01-31T03:00:00Z", "--at")
    1769828400.0
    """
    if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,15})?", text):
        return float(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text[:80]!r}: expected {TIME_HELP}") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def duration(seconds: float) -> str:
    """As PromQL writes it, in the largest unit that gives a whole number.

    >>> duration(300), duration(90), duration(86400), duration(1.5)
    ('5m', '90s', '1d', '1500ms')
    """
    milliseconds = round(seconds * 1000)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def time_span(seconds: float) -> str:
    """As people read it, in its two largest units.

    >>> time_span(45), time_span(200), time_span(7500), time_span(90000)
    ('45 s', '3 min 20 s', '2 h 5 min', '1 d 1 h')
    """
    left = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or parts:
            parts.append((number, unit))
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number) or "0 s"


def osd_order(name: str) -> tuple[int, str]:
    """A sort key for names of daemons: by number; names without a number come last.

    >>> sorted(["osd.10", "osd.x", "osd.2"], key=osd_order)
    ['osd.2', 'osd.10', 'osd.x']
    """
    number = name.removeprefix("osd.")
    # int() refuses a text of thousands of digits, which a label may be.
    usable = number.isdecimal() and len(number) < 10
    return (int(number) if usable else 1 << 62, name)


def parse_cpu_list(text: str, *, least: int = 0) -> tuple[int, ...]:
    """`0-2,8` as the kernel writes CPU lists, in order; UsageError for fewer than `least`.

    >>> parse_cpu_list("8,0-2")
    (0, 1, 2, 8)
    """
    cpus: set[int] = set()
    named = 0
    for part in text.strip().split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        digits = (first, last) if dash else (first,)
        if not all(number.isdecimal() and len(number) <= 9 for number in digits):
            raise UsageError(f"CPU list {text!r}: expected {CPU_LIST_HELP}")
        start, end = int(first), int(last or first)
        if max(start, end) >= _MAX_CPU:
            raise UsageError(f"CPU list {text!r}: expected CPUs up to {_MAX_CPU - 1}")
        named += max(0, end - start) + 1
        if named > _MAX_CPU:  # a range that is repeated costs as much as a long one
            raise UsageError(f"CPU list of {named} CPUs: expected at most {_MAX_CPU}")
        cpus.update(range(start, end + 1))
    if len(cpus) < least:
        raise UsageError(f"CPU list {text!r}: expected {CPU_LIST_HELP}, at least {least}")
    return tuple(sorted(cpus))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Numbers as the kernel writes them.

    >>> format_cpu_list({8, 2, 1, 0})
    '0-2,8'
    """
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
