"""Spread over repeats, and changes with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
_RESAMPLES = 4000
_SEED = 20
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
    """The change of a figure. `low` and `high` bound `ratio`; None if repeats are too few."""

    absolute: float
    ratio: float | None  # 0.05: 5 % more; None if the reference is 0
    low: float | None
    high: float | None

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def beyond_noise(self) -> bool:
        """The interval does not contain "no change"."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def change(
    values: Sequence[float],
    reference: Sequence[float],
    *,
    exact_reference: bool = False,
    shown: tuple[float, float] | None = None,
    comparisons: int = 1,
) -> ChangeInterval:
    """The change of a figure, with a bootstrap interval over repeats.

    The figure of several repeats is their mean. If repeats are merged in another way, `shown` has
    the figure and that of the reference. The spread of the repeats gives the interval's width.

    Both sides are drawn again with replacement, from a fixed seed. The bootstrap's standard error
    is too small by sqrt((n-1)/n), so it is widened. Student's t is applied with the degrees of
    freedom of Welch: a percentile interval of three repeats would be far too narrow.

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
    error = _error_of_ratio(values, reference, exact_reference)
    probability = 1 - (1 - CONFIDENCE) / 2 / comparisons
    degrees = freedom(values, () if exact_reference else reference)
    reach = t_quantile(probability, degrees) * error
    if reach < _SAME and abs(ratio) < _SAME:
        return ChangeInterval(0.0, 0.0, 0.0, 0.0)
    # A figure that is never negative cannot fall by more than 100 %.
    least = -1.0 if min(*values, *reference) >= 0 else -math.inf
    return ChangeInterval(new - old, ratio, max(least, ratio - reach), ratio + reach)


def _error_of_ratio(
    values: Sequence[float], reference: Sequence[float], exact_reference: bool
) -> float:
    """The standard error of the ratio of the means, by drawing both again and again."""
    random = np.random.default_rng(_SEED)
    drawn_new = _drawn_means(random, values)
    if exact_reference:
        drawn_old = np.full(_RESAMPLES, fmean(reference))
    else:
        drawn_old = _drawn_means(random, reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn_new / drawn_old - 1
    return float(np.std(ratios[np.isfinite(ratios)]))


def _drawn_means(random: np.random.Generator, values: Sequence[float]) -> Floats:
    """Means of samples drawn with replacement. Their spread is widened to be unbiased."""
    array = np.asarray(values, np.float64)
    picked = array[random.integers(0, len(array), (_RESAMPLES, len(array)))].mean(axis=1)
    widened: Floats = array.mean() + (picked - array.mean()) * math.sqrt(
        len(array) / (len(array) - 1)
    )
    return widened


def freedom(values: Sequence[float], reference: Sequence[float]) -> float:
    """Welch's degrees of freedom; `reference` may be empty (an exact figure)."""
    parts = [
        ((deviation(side) or 0.0) ** 2 / len(side), len(side) - 1)
        for side in (values, reference)
        if len(side) > 1
    ]
    total = sum(part for part, _ in parts)
    if total == 0:
        return float(sum(degrees for _, degrees in parts))
    return total**2 / sum(part**2 / degrees for part, degrees in parts)


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
    angle = math.atan(value / math.sqrt(degrees))
    nodes, weights = _LEGENDRE
    inner = np.cos((nodes + 1) * angle / 2) ** (degrees - 1)
    area = float(np.sum(weights * inner)) * angle / 2
    factor = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    return 0.5 + factor / math.sqrt(math.pi) * area


_LEGENDRE = np.polynomial.legendre.leggauss(96)
