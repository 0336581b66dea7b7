"""How many client ops of which size an OSD did, from histograms, counts and byte sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# One row of a histogram's size axis: smallest and largest size in it.
SizeAxis = Sequence[tuple[float, float]]

# How many ops of which size.
SizeMix = Sequence[tuple[float, float]]


def read_size_axis(axis: Mapping[str, Any]) -> SizeAxis:
    """The rows of a histogram's size axis, from its `ranges`.

    The first row is what lies below 0, the last has no upper end: it is taken to be as wide as the
    one before it would double to.
    """
    rows: list[tuple[float, float]] = []
    for bounds in axis["ranges"]:
        low = float(bounds.get("min", 0))
        high = float(bounds.get("max", 2 * low))
        rows.append((max(low, 0.0), max(high, 0.0)))
    return rows


def spread(counts: Sequence[float], axis: SizeAxis, total_bytes: float) -> SizeMix:
    """Give the ops of each row a size, such that together they make up `total_bytes`.

    All rows are filled to the same share of their width. That is exact for sizes that are powers
    of two (each is the lower end of its row), and for any mix whose rows hold one size each as
    far as the sum goes.
    """
    rows = [(n, low, high) for n, (low, high) in zip(counts, axis, strict=True) if n > 0]
    lowest = sum(n * low for n, low, _ in rows)
    width = sum(n * (high - low) for n, low, high in rows)
    share = min(max((total_bytes - lowest) / width, 0.0), 1.0) if width else 0.0
    return [(n, low + share * (high - low)) for n, low, high in rows]


@dataclass(frozen=True, slots=True)
class Counted:
    """One kind of client op since the OSD started: by size row, and in count and bytes.

    The rows come from the histograms, the other two from the counters: two replies, some ops apart.
    """

    rows: Sequence[float]
    ops: float
    bytes: float


@dataclass(slots=True)
class SizedOps:
    """Follows one kind of client op and gives what was added its sizes.

    Bytes and ops are of one reply, so their quotient is a true mean; it is applied to the ops of
    the other. Comparing bytes of one with rows of the other instead would charge an OSD under load
    for ops that the histogram has not seen yet.
    """

    _before: Counted | None = None
    _mean: float = 0.0

    def advance(self, now: Counted, axis: SizeAxis) -> SizeMix:
        """What was added since the last call; nothing at the first."""
        before, self._before = self._before, now
        if before is None:
            return []
        if now.ops < before.ops or sum(now.rows) < sum(before.rows):
            # Counters were reset (`perf reset`): what they hold is what was added since.
            before = Counted([0.0] * len(now.rows), 0.0, 0.0)
        if now.ops > before.ops:
            self._mean = max(now.bytes - before.bytes, 0.0) / (now.ops - before.ops)
        added = [max(new - old, 0) for new, old in zip(now.rows, before.rows, strict=True)]
        return spread(added, axis, self._mean * sum(added))
