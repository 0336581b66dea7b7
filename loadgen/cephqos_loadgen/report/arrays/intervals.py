"""What clients did in each second of one repeat, as arrays."""

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cephqos_loadgen.report.arrays.bins import Bins, Ints, merged_arrays
from cephqos_loadgen.report.arrays.statistics import Floats

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """One entry per job and second, both directions together.

    `middles` are seconds since the epoch. `centres` (in nanoseconds) and `counts` are the latency
    bins of all entries; `owner` has the entry that each bin is of.
    """

    phases: Sequence[str]
    jobs: Sequence[str]
    phase: Ints  # index into `phases`
    job: Ints  # index into `jobs`
    depth: Ints
    middles: Floats
    seconds: Floats
    ios: Ints
    bytes: Floats
    latency_sum: Floats
    owner: Ints
    centres: Ints
    counts: Ints

    def of(self, phase: str, depth: int | None = None) -> Mask:
        """The entries of a phase, or of one depth of it."""
        number = self.phases.index(phase) if phase in self.phases else -1
        entries: Mask = self.phase == number
        if depth is not None:
            entries &= self.depth == depth
        return entries

    def within(self, stretches: Iterable[tuple[float, float]]) -> Mask:
        """The entries whose middle lies in one of these stretches of time."""
        entries = np.zeros(len(self.middles), np.bool_)
        for start, end in stretches:
            entries |= (self.middles >= start) & (self.middles < end)
        return entries

    def bins(self, chosen: Mask) -> Bins:
        """The latency bins of these entries, merged."""
        of_chosen = chosen[self.owner] if len(self.owner) else np.zeros(0, np.bool_)
        return merged_arrays(self.centres[of_chosen], self.counts[of_chosen])

    def rate(self, chosen: Mask) -> float:
        """I/Os per second, the jobs' rates added up."""
        return self._rates(chosen, self.ios.astype(np.float64))

    def bytes_per_second(self, chosen: Mask) -> float:
        return self._rates(chosen, self.bytes)

    def _rates(self, chosen: Mask, amounts: Floats) -> float:
        jobs = len(self.jobs)
        sums = np.bincount(self.job[chosen], amounts[chosen], jobs)
        seconds = np.bincount(self.job[chosen], self.seconds[chosen], jobs)
        return float(np.sum(sums[seconds > 0] / seconds[seconds > 0]))


_WHOLE_NUMBERS: Final = ("phase", "job", "depth", "ios", "owner", "centres", "counts")
_REAL_NUMBERS: Final = ("middles", "seconds", "bytes", "latency_sum")


def read_intervals(lines: Iterable[Mapping[str, Any]]) -> Intervals:
    """The lines of intervals.jsonl.gz; LookupError, TypeError or ValueError for other lines. They
    do not become typed objects, because an hour of many jobs has millions of bins."""
    phases: dict[str, int] = {}
    jobs: dict[str, int] = {}
    # Arrays, because as objects the numbers take four times the memory.
    columns: dict[str, array[Any]] = {name: array("q") for name in _WHOLE_NUMBERS}
    columns |= {name: array("d") for name in _REAL_NUMBERS}
    for number, line in enumerate(lines):
        parts = [figures for figures in (line["read"], line["write"]) if figures is not None]
        # I/Os in bins are those that completed, where the tool has bins.
        completed = [sum(part["latency_bins_ns"].values()) or int(part["ios"]) for part in parts]
        means = [part["latency_mean_seconds"] for part in parts]
        job = f"{line['phase']}/{line['client']}/{line['job']}"
        entry = {
            "phase": phases.setdefault(line["phase"], len(phases)),
            "job": jobs.setdefault(job, len(jobs)),
            "depth": line["depth"],
            "middles": line["end_unix_seconds"] - line["seconds"] / 2,
            "seconds": line["seconds"],
            "ios": sum(completed),
            "bytes": sum(part["bytes_per_second"] for part in parts) * line["seconds"],
            "latency_sum": sum(map(mul, means, completed)),
        }
        for name, value in entry.items():
            columns[name].append(value)
        for part in parts:
            bins = part["latency_bins_ns"]
            columns["centres"].extend(map(int, bins))
            columns["counts"].extend(bins.values())
            columns["owner"].extend(itertools.repeat(number, len(bins)))
    arrays: dict[str, Any] = {name: np.asarray(values) for name, values in columns.items()}
    return Intervals(phases=list(phases), jobs=list(jobs), **arrays)
