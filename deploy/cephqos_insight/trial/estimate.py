"""What is known of a difference after some rounds, and whether the trial may end: pure.

Each round gives one difference of logarithms, of a candidate and the reference. Their order in a
round is drawn, so noise and drift that last longer than a block cannot favour one of them, and
differences of rounds are not correlated by them. What correlation is seen all the same (an effect
that changes with the load) widens the interval.

The rate of error of all looks together is kept: each look spends a part of it (Lan and DeMets),
and the parts add up. That is a little wider than the best that is known, and simple.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Final, Literal

from cephqos_loadgen.report.arrays.statistics import t_quantile

ERROR_RATE: Final = 0.05  # of one whole trial
_MOST_CORRELATION: Final = 0.8
# Where the chance is smaller that the rounds that are left make the answer clear, they are not run.
_LEAST_CHANCE: Final = 0.1

Verdict = Literal["go on", "clear", "no difference", "cannot become clear"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A change and its interval, as ratios of candidate to reference."""

    rounds: int
    ratio: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        return self.low > 1 or self.high < 1


def spent(look: int, looks: Sequence[int], comparisons: int) -> float:
    """The part of the error rate that is spent at this look (a number of rounds)."""
    before = max((other for other in looks if other < look), default=0)
    most = looks[-1]
    return ERROR_RATE / comparisons * ((look / most) ** 2 - (before / most) ** 2)


def estimate(differences: Sequence[float], error_rate: float, blur: float = 0.0) -> Effect | None:
    """From differences of logarithms; None where there are fewer than three. `blur`: how far off
    all of them may be in the same direction, which more rounds do not show."""
    found = interval(differences, error_rate, blur)
    return None if found is None else Effect(len(differences), *map(math.exp, found))


def interval(
    differences: Sequence[float], error_rate: float, blur: float = 0.0
) -> tuple[float, float, float] | None:
    """The mean difference, and from where to where it may be."""
    if len(differences) < 3:
        return None
    middle = fmean(differences)
    reach = t_quantile(1 - error_rate / 2, len(differences) - 1) * _error(differences) + blur
    return middle, middle - reach, middle + reach


def _error(differences: Sequence[float]) -> float:
    """The standard error of their mean."""
    n = len(differences)
    correlation = _correlation(differences)
    return stdev(differences) / math.sqrt(n) * math.sqrt((1 + correlation) / (1 - correlation))


def _correlation(differences: Sequence[float]) -> float:
    """Of neighbours, as far as it is positive; of few rounds it is seen too small by 1/n."""
    middle = fmean(differences)
    parts = [one - middle for one in differences]
    total = sum(part * part for part in parts)
    if total == 0:
        return 0.0
    seen = sum(a * b for a, b in itertools.pairwise(parts)) / total
    return min(_MOST_CORRELATION, max(0.0, seen + 1 / len(parts)))


def judge(
    differences: Sequence[float],
    look: int,
    looks: Sequence[int],
    comparisons: int,
    blur: float = 0.0,
) -> Verdict:
    """Whether the trial may end after this many rounds, for one candidate."""
    found = estimate(differences, spent(look, looks, comparisons), blur)
    last = look == looks[-1]
    if found is None:
        return "no difference" if last else "go on"
    if found.clear:
        return "clear"
    if last:
        return "no difference"
    chance = chance_to_become_clear(differences, look, looks, comparisons, blur)
    return "cannot become clear" if chance < _LEAST_CHANCE else "go on"


def chance_to_become_clear(
    differences: Sequence[float],
    look: int,
    looks: Sequence[int],
    comparisons: int,
    blur: float,
) -> float:
    """That the interval after the last round is on one side, if the rounds that are left are like
    those so far."""
    n, spread = len(differences), stdev(differences)
    total = n + looks[-1] - look
    if spread == 0:
        return 0.0
    error_rate = spent(looks[-1], looks, comparisons)
    bound = t_quantile(1 - error_rate / 2, total - 1) * spread / math.sqrt(total) + blur
    final = NormalDist(fmean(differences), spread * math.sqrt(total - n) / total)
    return final.cdf(-bound) + 1 - final.cdf(bound)
