"""Histograms as Crimson writes them, in either of two forms.

Seastar's own add each bucket to the one before, as Prometheus wants them; those of SeaStore do not.
The last entry, +Inf, is the number of samples in both. No reply says which form it has, so the
figures have to. Some builds of SeaStore put what is beyond the last bound into the bucket below it:
what is in that one may be of any size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final

from cephqos_exporter.collectors.crimson.names import MICRO, MILLI
from cephqos_exporter.collectors.crimson.reply import Unreadable, fields, number

_MANY: Final = 13
# SeaStore's bounds go up to 100 ms; above this they can only be microseconds.
_MOST_MILLISECONDS: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class Histogram:
    sum: float
    count: float
    bounds: tuple[float, ...] = ()  # without +Inf
    counts: tuple[float, ...] = ()  # one per bound

    def plus(self, other: "Histogram") -> "Histogram":
        if self.bounds != other.bounds:
            raise Unreadable(other.bounds)
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.sum + other.sum, self.count + other.count, self.bounds, counts)


def read_histogram(value: Any) -> Histogram:
    """The figures as they are; Unreadable if they are no histogram."""
    if not isinstance(value, dict):
        raise Unreadable(value)
    total, count = fields(value, "sum", "count")
    buckets = value.get("buckets", [])
    if not isinstance(buckets, list):
        raise Unreadable(buckets)
    bounds, counts = [], []
    for bucket in buckets:
        if not isinstance(bucket, dict):
            raise Unreadable(bucket)
        bound, inside = fields(bucket, "le", "count")
        if not isinstance(bound, str):  # "+Inf", and what is not finite
            bounds.append(number(bound))
            counts.append(_count(inside))
    if any(a >= b for a, b in pairwise(bounds)) or (bounds and bounds[0] < 0):
        raise Unreadable(buckets)
    # A sum that is not finite is written as null; there are no samples then.
    summed = 0.0 if total is None else number(total)
    if summed < 0:
        raise Unreadable(total)
    return Histogram(summed, _count(count), tuple(bounds), tuple(counts))


def _count(value: Any) -> float:
    count = number(value)
    if count < 0 or not count.is_integer():
        raise Unreadable(value)
    return count


def is_cumulative(histogram: Histogram) -> bool | None:
    """Which form the figures prove; None: they would do in both."""
    counts = histogram.counts
    if any(a > b for a, b in pairwise(counts)):
        return False
    if counts and counts[-1] > histogram.count:
        return False  # not even counted: a distribution of what there is
    if sum(counts) > histogram.count:
        return True
    return None


def told_form(histograms: Iterable[Histogram]) -> bool | None:
    """The form that a metric has by all its series; None where none proves one, or they differ."""
    proofs = {is_cumulative(one) for one in histograms} - {None}
    return proofs.pop() if len(proofs) == 1 else None


def cumulated(histogram: Histogram, form: bool) -> Histogram:
    """With buckets as Prometheus wants them. What the figures prove beats the form given."""
    proof = is_cumulative(histogram)
    cumulative = form if proof is None else proof
    counts = histogram.counts if cumulative else tuple(accumulate(histogram.counts))
    most = max(histogram.count, counts[-1] if counts else 0.0)
    return replace(histogram, counts=counts, count=most)


def may_be_open(histogram: Histogram) -> bool | None:
    """Whether the last bucket, each counted for itself, may hold more than its bound says.

    False: what is beyond the last bound is nowhere but in the number of samples. None: no sample
    tells. A sum above what the bounds allow proves what has to be assumed without it.
    """
    if not histogram.counts:
        return None
    if sum(histogram.counts) < histogram.count:
        return False
    return True if histogram.counts[-1] else None


def without_last(histogram: Histogram) -> Histogram:
    """With +Inf for the last bound."""
    return replace(histogram, bounds=histogram.bounds[:-1], counts=histogram.counts[:-1])


def thinned(bounds: Sequence[float]) -> list[int]:
    """Which of many bounds to show: each at least twice the one before. All where they are few."""
    if len(bounds) <= _MANY:
        return list(range(len(bounds)))
    kept: list[int] = []
    for index, bound in enumerate(bounds):
        if not kept or bound >= 2 * bounds[kept[-1]] > 0 or bounds[kept[-1]] <= 0 < bound:
            kept.append(index)
    return kept if kept[-1] == len(bounds) - 1 else [*kept, len(bounds) - 1]


def unit_of(histograms: Iterable[Histogram], divisor: float) -> float:
    """Builds of SeaStore differ in the unit of latencies, and the bounds of any series tell it.

    One build has bounds for transactions only, and sums in microseconds for all operations.
    """
    in_microseconds = any(one.bounds and one.bounds[-1] > _MOST_MILLISECONDS for one in histograms)
    return MICRO if divisor == MILLI and in_microseconds else divisor
