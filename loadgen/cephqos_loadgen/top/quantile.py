"""Quantiles from the buckets of a histogram."""

from collections.abc import Mapping


def quantile(buckets: Mapping[float, float], q: float) -> float | None:
    """The q-quantile of cumulative buckets (`le` -> count), linear within a bucket as in PromQL."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank = q * total
    lower, below = 0.0, 0.0
    for bound in bounds:
        count = buckets[bound]
        if count >= rank:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    return lower
