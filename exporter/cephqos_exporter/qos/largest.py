"""The largest few of many, such as the tenants with most work, without a change at every look."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_TIMES_TO_REPLACE: Final = 2.0  # as much as the least holder: then another one gets its place
_LEAST_REMEMBERED: Final = 1e-3  # of the values' unit
_MOST_REMEMBERED: Final = 512  # keys


@dataclass(slots=True)
class Largest(Generic[K]):
    """The largest few of the keys hold a place (`shown`).

    A holder keeps its place until another key has twice as much, and for `held` seconds at least:
    so series do not come and go.
    """

    places: int
    keep: float = 0.5  # the part of a key's earlier values that still counts at each `add`
    held: float = 0.0  # seconds
    shown: dict[K, float] = field(default_factory=dict)  # the holders, and since when
    _recent: dict[K, float] = field(default_factory=dict)  # values, the earlier ones faded

    def add(self, values: Mapping[K, float], now: float = 0.0) -> Sequence[K]:
        """Take in the values since the last call. Returns the keys that lost their place."""
        recent = {
            key: value * self.keep
            for key, value in self._recent.items()
            if value > _LEAST_REMEMBERED
        }
        for key, value in values.items():
            recent[key] = recent.get(key, 0.0) + value
        lost = []
        for key in sorted(values, key=recent.__getitem__, reverse=True):
            if key in self.shown:
                continue
            if len(self.shown) >= self.places:
                # If the clock was set back, all of them can be replaced.
                times = self.shown.items()
                replaceable = [one for one, at in times if not 0 <= now - at < self.held]
                if not replaceable:
                    break
                least = min(replaceable, key=lambda holder: recent.get(holder, 0.0))
                if recent[key] <= _TIMES_TO_REPLACE * recent.get(least, 0.0):
                    break
                del self.shown[least]
                lost.append(least)
            self.shown[key] = now
        if len(recent) > _MOST_REMEMBERED:
            largest = nlargest(_MOST_REMEMBERED // 2, recent, recent.__getitem__)
            recent = {key: recent[key] for key in largest}
        self._recent = recent
        return lost
