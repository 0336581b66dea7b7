"""Whether what was recorded far away is what the single Prometheus recorded."""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Compared:
    """One recorded name: its series here and there, and how far their values are apart."""

    name: str
    here: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    apart: float  # the median over series of |there - here| / largest value here

    @property
    def same_series(self) -> bool:
        return not self.missing and not self.extra


def compared(name: str, here: Sequence[Any], there: Sequence[Any]) -> Compared:
    """Two answers of one query: instant vectors of Prometheus' API."""
    ours, theirs = by_labels(here), by_labels(there)
    largest = max((abs(value) for value in ours.values()), default=0.0) or 1.0
    apart = [abs(theirs[key] - ours[key]) / largest for key in ours.keys() & theirs.keys()]
    return Compared(
        name=name,
        here=len(ours),
        missing=tuple(sorted(_told(key) for key in ours.keys() - theirs.keys())),
        extra=tuple(sorted(_told(key) for key in theirs.keys() - ours.keys())),
        apart=statistics.median(apart) if apart else 0.0,
    )


def by_labels(vector: Iterable[Any]) -> dict[Labels, float]:
    """A series that comes twice is an error of whoever answered."""
    found: dict[Labels, float] = {}
    for each in vector:
        key = frozenset((k, v) for k, v in each["metric"].items() if k != "__name__")
        assert key not in found, f"twice: {_told(key)}"
        value = float(each["value"][1])
        if value == value and abs(value) != float("inf"):
            found[key] = value
    return found


@dataclass(frozen=True)
class Samples:
    """The raw samples of one series over a while."""

    count: int
    longest_gap: float
    shortest_gap: float


def samples(matrix: Sequence[Any]) -> Mapping[Labels, Samples]:
    """Of an answer to `series[5m]`."""
    found = {}
    for each in matrix:
        times = [float(time) for time, _ in each["values"]]
        gaps = [after - before for before, after in itertools.pairwise(times)]
        key = frozenset(each["metric"].items())
        found[key] = Samples(len(times), max(gaps, default=0.0), min(gaps, default=0.0))
    return found


def _told(key: Labels) -> str:
    return "{" + ", ".join(f"{name}={value}" for name, value in sorted(key)) + "}"
