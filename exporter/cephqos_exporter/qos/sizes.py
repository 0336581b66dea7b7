"""How many client ops of which size an OSD did, from histograms, counts and byte sums.

The histograms have rows of sizes (4096 to 8191 bytes), so the sizes in a row are estimated, such
that all ops together have the bytes that the OSD has counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The rows of a histogram's size axis: the smallest and the largest size in each.
SizeAxis = Sequence[tuple[float, float]]

# Pairs of a number of ops and their size in bytes.
SizeMix = Sequence[tuple[float, float]]


def read_size_axis(axis: Mapping[str, Any]) -> SizeAxis:
    """The rows of a histogram's size axis, from its `ranges`.

    The first row is below 0, and the last has no upper end: twice its lower end is taken, as rows
    double in width.
    """
    rows: list[tuple[float, float]] = []
    for bounds in axis["ranges"]:
        low = float(bounds.get("min", 0))
        high = float(bounds.get("max", 2 * low))
        rows.append((max(low, 0.0), max(high, 0.0)))
    return rows


def spread(counts: Sequence[float], axis: SizeAxis, total_bytes: float) -> SizeMix:
    """Give the ops of each row a size, such that together they make up `total_bytes`.

    In every row the size is at the same share of the row's width. That is exact for sizes that are
    powers of two: each is the lower end of its row. For all other mixes the sum is right.
    """
    rows = [(ops, low, high) for ops, (low, high) in zip(counts, axis, strict=True) if ops > 0]
    least_bytes = sum(ops * low for ops, low, _ in rows)
    width = sum(ops * (high - low) for ops, low, high in rows)
    share = min(max((total_bytes - least_bytes) / width, 0.0), 1.0) if width else 0.0
    return [(ops, low + share * (high - low)) for ops, low, high in rows]


@dataclass(frozen=True, slots=True)
class Counted:
    """One kind of client op (writes, say) since the OSD started.

    The histograms and the counters are two replies: one of them is some ops ahead.
    """

    rows: Sequence[float]  # ops in each row of sizes, from the histograms
    ops: float  # from the counters, as is the next
    bytes: float


@dataclass(slots=True)
class SizedOps:
    """Follows one kind of client op, and estimates the sizes of those that were added.

    The mean size is exact, as bytes and ops are of one reply. It is applied to the ops that the
    histograms have. The bytes of the counters would be too many for them, or too few: the two
    replies are some ops apart.
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
