"""Spread over repeats, and changes with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
_FARTHEST = 100.0  # of a logarithm: more than any figure can change
# Two figures that differ by less than rounding are the same figure.
_SAME = 1e-12

Floats = NDArray[np.float64]


def deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation; None below two values."""
    return stdev(values) if len(values) > 1 else None


def variation(values: Sequence[float]) -> float | None:
    """Coefficient of variation: deviation over mean."""
    spread = deviation(values)
    centre = fmean(values) if values else 0.0
    return spread / abs(centre) if spread is not None and centre else None


def reach_of_mean(values: Sequence[float]) -> float | None:
    """Half the interval of the mean, by Student's t; None below two values."""
    spread, count = deviation(values), len(values)
    if spread is None:
        return None
    return t_quantile(1 - (1 - CONFIDENCE) / 2, count - 1) * spread / math.sqrt(count)


@dataclass(frozen=True, slots=True)
class ChangeInterval:
    """The change of a figure. `low` and `high` bound `ratio`; None if repeats are too few.

    They are computed on the logarithm of new / old. So the same two sides turned round have the
    same verdict, and the interval of the inverse ratio.
    """

    absolute: float
    ratio: float | None  # 0.05: 5 % more; None if the reference is 0
    low: float | None
    high: float | None
    error: float | None = None  # standard error of the logarithm
    degrees: float = math.inf

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def beyond_noise(self) -> bool:
        """The interval does not contain "no change"."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def chance(self) -> float | None:
        """How often a change of this size, up or down, appears where there is none."""
        return self.chance_of_beyond(1.0)

    def chance_of_beyond(self, factor: float, *, sides: int = 2) -> float | None:
        """The same for a change whose truth is `factor` times the reference; with one side, for
        changes in the direction of the one that was found."""
        if self.error is None or self.ratio is None:
            # Without an error but with bounds, there is no noise at all.
            return None if not self.known else float(not self.beyond_noise)
        distance = abs(math.log((1 + self.ratio) / factor))
        if self.error == 0:
            return float(distance < _SAME)
        return sides * (1 - _t_below(distance / self.error, self.degrees))


def change(
    values: Sequence[float],
    reference: Sequence[float],
    *,
    exact_reference: bool = False,
    shown: tuple[float, float] | None = None,
    widths: tuple[float, float] = (0.0, 0.0),
    comparisons: int = 1,
) -> ChangeInterval:
    """The change of a figure, with an interval over repeats: Student's t on the logarithm of the
    ratio of the means, with the degrees of freedom of Welch.

    The figure of several repeats is their mean. If repeats are merged in another way, `shown` has
    the figure and that of the reference. The spread of the repeats gives the interval's width.

    `widths`: how wide the bins are that the figures are read from. Repeats that all fall into one
    bin are not equal: the bin's own variance, width squared / 12, is added once to that of a mean.

    `comparisons`: the number of comparisons from which this one was chosen for its size. More
    comparisons make the interval wider.
    """
    new, old = shown or (fmean(values), fmean(reference))
    if old == 0:
        same = not any((new, *values, *reference))
        return ChangeInterval(0.0, 0.0, 0.0, 0.0) if same else ChangeInterval(new, None, None, None)
    ratio = new / old - 1
    if len(values) < 2 or (len(reference) < 2 and not exact_reference):
        return ChangeInterval(new - old, ratio, None, None)
    if ratio <= -1 or min(fmean(values), fmean(reference)) <= 0:
        return _without_logarithm(new - old, ratio, values, reference)
    sides = [_relative_error(values, widths[0])]
    sides += [] if exact_reference else [_relative_error(reference, widths[1])]
    error = math.sqrt(sum(spread + bins for spread, bins, _ in sides))
    degrees = _welch(sides)
    reach = t_quantile(1 - (1 - CONFIDENCE) / 2 / comparisons, degrees) * error
    if reach < _SAME and abs(ratio) < _SAME:
        return ChangeInterval(0.0, 0.0, 0.0, 0.0, 0.0)
    low, high = ((1 + ratio) * math.exp(sign * min(reach, _FARTHEST)) - 1 for sign in (-1, 1))
    return ChangeInterval(new - old, ratio, low, high, error, degrees)


def _without_logarithm(
    absolute: float, ratio: float, values: Sequence[float], reference: Sequence[float]
) -> ChangeInterval:
    """All is lost if there is nothing where there always was something; else it is not known."""
    if not any(values) and min(reference) > 0:
        return ChangeInterval(absolute, ratio, ratio, ratio)
    return ChangeInterval(absolute, ratio, None, None)


def _relative_error(values: Sequence[float], width: float) -> tuple[float, float, int]:
    """The variance of the mean's logarithm: by the spread of repeats, and by the bins. Then the
    degrees of freedom of the spread."""
    square = fmean(values) ** 2
    spread = (deviation(values) or 0.0) ** 2 / len(values) / square
    return spread, width**2 / 12 / square, len(values) - 1


def _welch(sides: Sequence[tuple[float, float, int]]) -> float:
    """Welch's degrees of freedom. What the bins add is known without repeats."""
    total = sum(spread + bins for spread, bins, _ in sides)
    weighed = sum(spread**2 / degrees for spread, _, degrees in sides)
    if total == 0:
        return float(sum(degrees for _, _, degrees in sides))
    return total**2 / weighed if weighed else math.inf


def holm(chances: Sequence[float], level: float = 1 - CONFIDENCE) -> list[bool]:
    """Which of several findings are more than chance, so that one false finding among all of them
    is seldom: once in 1 / `level` (Holm's step-down procedure)."""
    found = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - rank):
            break
        found[index] = True
    return found


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t, by integration of its density, for probabilities above one half."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        if _t_below(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_below(value: float, degrees: float) -> float:
    """P(T < value) for value >= 0. With t = sqrt(n) tan(a), the integrand is cos(a)^(n-1)."""
    degrees = min(degrees, _AS_NORMAL)
    angle = math.atan(value / math.sqrt(degrees))
    nodes, weights = _LEGENDRE
    inner = np.cos((nodes + 1) * angle / 2) ** (degrees - 1)
    area = float(np.sum(weights * inner)) * angle / 2
    factor = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    return 0.5 + factor / math.sqrt(math.pi) * area


_AS_NORMAL = 1e6  # degrees of freedom; more make no difference
_LEGENDRE = np.polynomial.legendre.leggauss(96)
