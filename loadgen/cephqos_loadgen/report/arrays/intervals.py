"""What clients did in each second of one repeat, as arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cephqos_loadgen.report.arrays.bins import Bins, Ints, merged_arrays
from cephqos_loadgen.report.arrays.statistics import Floats

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """One entry per job and second, both directions together.

    `middles` are seconds since the epoch. All bins are in one array; `owner` says of which entry.
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
        kept = chosen[self.owner] if len(self.owner) else np.zeros(0, np.bool_)
        return merged_arrays(self.centres[kept], self.counts[kept])

    def rate(self, chosen: Mask) -> float:
        """I/Os per second, the jobs' rates added up."""
        return self._rates(chosen, self.ios.astype(np.float64))

    def bytes_per_second(self, chosen: Mask) -> float:
        return self._rates(chosen, self.bytes)

    def _rates(self, chosen: Mask, amounts: Floats) -> float:
        size = len(self.jobs)
        done = np.bincount(self.job[chosen], amounts[chosen], size)
        took = np.bincount(self.job[chosen], self.seconds[chosen], size)
        return float(np.sum(done[took > 0] / took[took > 0]))


def _completed(part: Mapping[str, Any]) -> int:
    """The I/Os that completed: those in bins, where the tool has bins."""
    return sum(part["latency_bins_ns"].values()) or int(part["ios"])


def read_intervals(lines: Iterable[Mapping[str, Any]]) -> Intervals:
    """The lines of intervals.jsonl.gz; LookupError, TypeError or ValueError for other lines. They
    do not become typed objects, because an hour of many jobs has millions of bins."""
    names: dict[str, dict[str, int]] = {"phase": {}, "job": {}}
    rows: list[tuple[int, int, int, float, float, int, float, float]] = []
    owner: list[int] = []
    centres: list[int] = []
    counts: list[int] = []
    for number, line in enumerate(lines):
        parts = [figures for figures in (line["read"], line["write"]) if figures is not None]
        counts_of = [_completed(part) for part in parts]
        ios = sum(counts_of)
        moved = sum(part["bytes_per_second"] for part in parts) * line["seconds"]
        summed = sum(
            part["latency_mean_seconds"] * count
            for part, count in zip(parts, counts_of, strict=True)
        )
        for bins in (part["latency_bins_ns"] for part in parts):
            centres.extend(map(int, bins))
            counts.extend(bins.values())
            owner.extend([number] * len(bins))
        phase = names["phase"].setdefault(line["phase"], len(names["phase"]))
        name = f"{line['phase']}/{line['client']}/{line['job']}"
        job = names["job"].setdefault(name, len(names["job"]))
        middle = line["end_unix_seconds"] - line["seconds"] / 2
        rows.append((phase, job, line["depth"], middle, line["seconds"], ios, moved, summed))
    columns = list(zip(*rows, strict=True)) or [()] * 8
    whole = [np.asarray(columns[n], np.int64) for n in (0, 1, 2, 5)]
    real = [np.asarray(columns[n], np.float64) for n in (3, 4, 6, 7)]
    return Intervals(
        phases=list(names["phase"]),
        jobs=list(names["job"]),
        phase=whole[0],
        job=whole[1],
        depth=whole[2],
        middles=real[0],
        seconds=real[1],
        ios=whole[3],
        bytes=real[2],
        latency_sum=real[3],
        owner=np.asarray(owner, np.int64),
        centres=np.asarray(centres, np.int64),
        counts=np.asarray(counts, np.int64),
    )
