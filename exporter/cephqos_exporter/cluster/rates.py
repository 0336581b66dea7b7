"""Rates over the last minute, from counters read at irregular times."""

from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

WINDOW_SECONDS: Final = 60.0

Key = TypeVar("Key", bound=Hashable)


class Rates(Generic[Key]):
    """Keeps a minute of readings per key."""

    def __init__(self, window: float = WINDOW_SECONDS) -> None:
        self._window = window
        self._readings: dict[Key, deque[tuple[float, float]]] = {}

    def add(self, key: Key, now: float, value: float) -> None:
        """Take in a reading; the newest one that is a whole window old stays as the base."""
        readings = self._readings.setdefault(key, deque())
        if readings and now < readings[-1][0]:  # the clock was set back
            readings.clear()
        readings.append((now, value))
        while len(readings) > 2 and readings[1][0] <= now - self._window:
            readings.popleft()

    def of(self, key: Key) -> float | None:
        """Per second; None before there are two readings."""
        readings = self._readings.get(key)
        if readings is None or len(readings) < 2:
            return None
        (began, first), (ended, last) = readings[0], readings[-1]
        return (last - first) / (ended - began) if ended > began else None

    def since_begun(self, key: Key) -> float | None:
        """The same from where the value first moved: what to expect of work that began since."""
        readings = self._readings.get(key)
        if readings is None or len(readings) < 2:
            return None
        first = readings[0][1]
        began = next((i for i, (_, value) in enumerate(readings) if value != first), 1) - 1
        start, (ended, last) = readings[began][0], readings[-1]
        return (last - first) / (ended - start) if ended > start else None

    def keep(self, keys: set[Key]) -> None:
        """Forget all others."""
        for key in self._readings.keys() - keys:
            del self._readings[key]


def time_left(remaining: float, rate: float | None) -> float | None:
    """Seconds until done at that rate; None where nothing moves."""
    if not remaining:
        return 0.0
    return remaining / rate if rate else None
