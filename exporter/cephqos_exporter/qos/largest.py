"""The largest few of many, which do not change for every change of rank."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_BEATEN: Final = 2.0  # a holder loses its place to one that has this many times as much
_FORGOTTEN: Final = 1e-3
_MOST_KNOWN: Final = 512  # of those without a place


@dataclass(slots=True)
class Largest(Generic[K]):
    """The largest few, each with a place; the others are one.

    A holder keeps its place until another one has twice as much, and for `held` seconds at least,
    so that series do not come and go. `keep`: the part of earlier values that counts at the next.
    """

    places: int
    keep: float = 0.5
    held: float = 0.0
    shown: dict[K, float] = field(default_factory=dict)  # since when
    _recent: dict[K, float] = field(default_factory=dict)

    def add(self, values: Mapping[K, float], now: float = 0.0) -> Sequence[K]:
        """Take in the values since the last time; those that lose their place."""
        recent = {key: v * self.keep for key, v in self._recent.items() if v > _FORGOTTEN}
        for key, value in values.items():
            recent[key] = recent.get(key, 0.0) + value
        lost = []
        for key in sorted(values, key=recent.__getitem__, reverse=True):
            if key in self.shown:
                continue
            if len(self.shown) >= self.places:
                # A clock that was set back does not end a holder's time.
                open_ = [one for one, at in self.shown.items() if not 0 <= now - at < self.held]
                if not open_:
                    break
                least = min(open_, key=lambda one: recent.get(one, 0.0))
                if recent[key] <= _BEATEN * recent.get(least, 0.0):
                    break
                del self.shown[least]
                lost.append(least)
            self.shown[key] = now
        if len(recent) > _MOST_KNOWN:
            most = nlargest(_MOST_KNOWN // 2, recent, recent.__getitem__)
            recent = {key: recent[key] for key in most}
        self._recent = recent
        return lost
