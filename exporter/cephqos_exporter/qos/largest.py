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
    so series do not come and go. With `held`, the other key needs to be there two times in a row,
    and a holder that was there only once gives way to it at once.
    """

    places: int
    keep: float = 0.5  # the part of a key's earlier values that still counts at each `add`
    held: float = 0.0  # seconds
    shown: dict[K, float] = field(default_factory=dict)  # the holders, and since when
    _recent: dict[K, float] = field(default_factory=dict)  # values, the earlier ones faded
    _before: frozenset[K] = frozenset()  # the keys of the last `add`
    _once: set[K] = field(default_factory=set)  # holders that were not there again

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
        self._once.difference_update(values)
        for key in sorted(values, key=recent.__getitem__, reverse=True):
            if key in self.shown:
                continue
            if len(self.shown) >= self.places:
                if self.held and key not in self._before:
                    continue
                replaceable = self._replaceable(now)
                least = min(replaceable, key=lambda it: recent.get(it, 0.0), default=None)
                if least is None or recent[key] <= _TIMES_TO_REPLACE * recent.get(least, 0.0):
                    continue
                del self.shown[least]
                self._once.discard(least)
                lost.append(least)
            self.shown[key] = now
            if key not in self._before:
                self._once.add(key)
        self._before = frozenset(values)
        if len(recent) > _MOST_REMEMBERED:
            largest = nlargest(_MOST_REMEMBERED // 2, recent, recent.__getitem__)
            recent = {key: recent[key] for key in largest}
        self._recent = recent
        return lost

    def _replaceable(self, now: float) -> Sequence[K]:
        """The holders whose place another key may get: all, if the clock was set back."""
        return [
            holder
            for holder, since in self.shown.items()
            if not 0 <= now - since < self.held or holder in self._once
        ]
