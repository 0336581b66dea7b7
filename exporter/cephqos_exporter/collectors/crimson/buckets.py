"""Histograms as Crimson writes them, in either of two forms.

    samples 1, 1, 3 with bounds 2, 4, +Inf      cumulative: 2, 3, 3      separate: 2, 1, 3

Seastar's own are cumulative, as Prometheus wants them. Those of SeaStore are separate: each bucket
has its own samples only. The last entry, +Inf, is the number of samples in both. No reply says
which form it has; the figures tell (`is_cumulative`).

Some builds of SeaStore put samples beyond the last bound into the last bucket. Such a bucket is
called open here: what is in it may be of any size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final

from cephqos_exporter.collectors.crimson.names import MICRO, MILLI
from cephqos_exporter.collectors.crimson.reply import Unreadable, fields, number

_MANY: Final = 13  # bounds: more are thinned out
# SeaStore's bounds go up to 100 ms; above this they can only be microseconds.
_MOST_MILLISECONDS: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class Histogram:
    sum: float
    count: float  # of samples
    bounds: tuple[float, ...] = ()  # without +Inf
    counts: tuple[float, ...] = ()  # one per bound, in either form

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
    ascending = all(low < high for low, high in pairwise(bounds))
    if not ascending or (bounds and bounds[0] < 0):
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
    """The form that the figures prove; None if they are possible in both."""
    counts = histogram.counts
    if any(count > following for count, following in pairwise(counts)):
        return False
    if counts and counts[-1] > histogram.count:
        return False  # SeaStore's distributions have no number of samples
    if sum(counts) > histogram.count:
        return True
    return None


def are_cumulative(histograms: Iterable[Histogram]) -> bool | None:
    """The form of a metric, by all its series; None where none proves one, or they differ."""
    proofs = {is_cumulative(one) for one in histograms} - {None}
    return proofs.pop() if len(proofs) == 1 else None


def cumulated(histogram: Histogram, *, cumulative: bool) -> Histogram:
    """The histogram with cumulative buckets. Its own figures, if they prove a form, decide instead
    of `cumulative`, the form of its metric."""
    proof = is_cumulative(histogram)
    cumulative = cumulative if proof is None else proof
    counts = histogram.counts if cumulative else tuple(accumulate(histogram.counts))
    most = max(histogram.count, counts[-1] if counts else 0.0)
    return replace(histogram, counts=counts, count=most)


def may_be_open(histogram: Histogram) -> bool | None:
    """Whether the last bucket of separate ones may hold samples beyond its bound.

    False: there are samples beyond the last bound, and they are in no bucket. None: there are no
    samples that tell.
    """
    if not histogram.counts:
        return None
    if sum(histogram.counts) < histogram.count:
        return False
    return True if histogram.counts[-1] else None


def without_last(histogram: Histogram) -> Histogram:
    """Without the last bucket: its samples are then below +Inf only."""
    return replace(histogram, bounds=histogram.bounds[:-1], counts=histogram.counts[:-1])


def thinned(bounds: Sequence[float]) -> list[int]:
    """Which bounds to show, by position: all where they are few. Of many, the first, the last, and
    those that are at least twice the one before."""
    if len(bounds) <= _MANY:
        return list(range(len(bounds)))
    kept = [0]
    for index, bound in enumerate(bounds[1:], start=1):
        last = bounds[kept[-1]]
        if bound >= 2 * last > 0 or last <= 0 < bound:
            kept.append(index)
    return kept if kept[-1] == len(bounds) - 1 else [*kept, len(bounds) - 1]


def unit_of(histograms: Iterable[Histogram], divisor: float) -> float:
    """The divisor to seconds of a metric of SeaStore, which is `divisor` in most builds.

    Builds differ in the unit of latencies, and the bounds of any series show it. One build has
    bounds for transactions only, and sums in microseconds for all operations.
    """
    in_microseconds = any(one.bounds and one.bounds[-1] > _MOST_MILLISECONDS for one in histograms)
    return MICRO if divisor == MILLI and in_microseconds else divisor
