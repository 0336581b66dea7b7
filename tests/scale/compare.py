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


def compared(name: str, steady: Sequence[Any], lately: Sequence[Any]) -> Compared:
    """Answers of both engines (instant vectors): what was steadily there, and what was lately.

    A series is missing where one engine had it steadily and the other did not even have it lately.
    """
    ours, theirs = map(by_labels, steady)
    ours_lately, theirs_lately = map(by_labels, lately)
    largest = max((abs(value) for value in ours_lately.values()), default=0.0) or 1.0
    both = ours_lately.keys() & theirs_lately.keys()
    apart = [abs(theirs_lately[key] - ours_lately[key]) / largest for key in both]
    return Compared(
        name=name,
        here=len(ours),
        missing=tuple(sorted(_told(key) for key in ours.keys() - theirs_lately.keys())),
        extra=tuple(sorted(_told(key) for key in theirs.keys() - ours_lately.keys())),
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
