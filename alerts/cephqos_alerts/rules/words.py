"""Thresholds and windows in words, for comments and texts: `a quarter`, `40 ms`, `five minutes`."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.units import DAY, HOUR, KIB, MINUTE, duration

_SHARES: Final[Mapping[float, str]] = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half"}
_NUMBERS: Final[Mapping[float, str]] = {1: "one", 2: "two", 3: "three", 4: "four", 6: "six"}
_TIMES: Final[Mapping[float, str]] = {
    MINUTE: "a minute",
    5 * MINUTE: "five minutes",
    15 * MINUTE: "15 minutes",
    HOUR: "an hour",
    4 * HOUR: "four hours",
    DAY: "a day",
}
_TIMES_OF: Final = ("forgotten",)
_SECONDS: Final = (
    *("device_floor", "device_latency_ssd", "device_latency_hdd"),
    *("store_latency_ssd", "store_latency_hdd", "reservation_lag"),
)
_BYTES: Final = ("large_requests", "swap")


def threshold(name: str, value: float) -> str:
    """A threshold: seconds, bytes, a share, or how many (times)."""
    if name in _SECONDS:
        return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
    if name in _TIMES_OF:
        return time(value)
    if name in _BYTES:
        return f"{value / KIB:g} KiB"
    if value < 1:
        return _SHARES.get(value) or f"{value * 100:g} %"
    return _NUMBERS.get(value) or f"{value:g}"


def time(seconds: float) -> str:
    return _TIMES.get(seconds) or duration(seconds)
