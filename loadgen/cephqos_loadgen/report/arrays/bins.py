"""fio's latency bins as arrays: merged exactly, and percentiles of any merge."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cephqos_loadgen.results.figures import ROUNDING, percentile_ns

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Completions by latency: ascending centres in nanoseconds, and counts."""

    centres: Ints
    counts: Ints

    @classmethod
    def of(cls, bins_ns: Mapping[int, int]) -> "Bins":
        centres = np.fromiter(bins_ns.keys(), np.int64, len(bins_ns))
        return merged_arrays(centres, np.fromiter(bins_ns.values(), np.int64, len(bins_ns)))

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def deviation_seconds(self) -> float | None:
        """As exact as the bins are wide, since it uses their centres. None below 2 completions."""
        if self.total < 2:
            return None
        seconds = self.centres * 1e-9
        centre = float(np.average(seconds, weights=self.counts))
        squares = float(np.sum(self.counts * (seconds - centre) ** 2))
        return float(np.sqrt(squares / (self.total - 1)))

    def knows(self, percent: float) -> bool:
        """Whether at least one completion is beyond it. Otherwise the slowest one is shown."""
        return self.total * (100 - percent) / 100 >= 1 - ROUNDING

    def percentile_seconds(self, percent: float) -> float | None:
        """The centre of the bin that the percentile falls into; None without completions."""
        if not self.total:
            return None
        bins_ns = dict(zip(self.centres.tolist(), self.counts.tolist(), strict=True))
        return percentile_ns(bins_ns, percent) * 1e-9


def bin_width(seconds: float) -> float:
    """Of the bin of fio that a latency falls into: 64 bins in each power of two, or 1 ns."""
    octave = math.floor(math.log2(seconds * 1e9)) if seconds > 0 else 0
    return 2.0 ** max(0, octave - 6) * 1e-9


def merged_arrays(centres: Ints, counts: Ints) -> Bins:
    """Bins from centres in any order. Equal centres are added up, empty bins left out."""
    unique, inverse = np.unique(centres, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, inverse, counts)
    kept = sums > 0
    return Bins(unique[kept], sums[kept])


def merged(parts: Iterable[Bins]) -> Bins:
    """All parts together. Exact: fio's bins have the same bounds everywhere."""
    bins = list(parts)
    if not bins:
        return Bins(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return merged_arrays(
        np.concatenate([part.centres for part in bins]),
        np.concatenate([part.counts for part in bins]),
    )
