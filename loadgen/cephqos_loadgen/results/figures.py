"""Figures of client load: I/Os, bandwidth and completion latency over a stretch of time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Percentiles that are written down beside the bins. Any other can be computed from the bins.
PERCENTILES = ("50", "95", "99", "99.5", "99.9")
# The centre of fio's last bin, in which it counts whatever took longer than 17.0 s.
LAST_BIN_NS = 17_112_760_320


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """What one job, or several together, did in one stretch of time.

    `latency_bins_ns` are fio's own bins: nanoseconds at the centre of the bin, and the number of
    completions in it. A bin is 1.6 % wide at most. Equal bins of different jobs add up exactly.
    rados bench has no bins: there they are empty, and so are the percentiles.
    """

    ios: int
    iops: float
    bytes_per_second: float
    latency_mean_seconds: float
    latency_deviation_seconds: float | None
    latency_max_seconds: float | None
    latency_percentiles_seconds: Mapping[str, float]
    latency_bins_ns: Mapping[int, int]

    def latency_percentile_seconds(self, percent: float) -> float | None:
        """From the bins; None where there are none."""
        if not self.latency_bins_ns:
            return None
        return percentile_ns(self.latency_bins_ns, percent) * 1e-9


def changes(before: LoadFigures, after: LoadFigures) -> dict[str, float]:
    """How much `after` differs from `before`, in percent."""
    pairs = {"iops": (before.iops, after.iops)}
    if before.ios and after.ios:  # a latency of nothing is none
        pairs["latency_mean"] = (before.latency_mean_seconds, after.latency_mean_seconds)
    p99 = (before.latency_percentile_seconds(99), after.latency_percentile_seconds(99))
    if p99[0] is not None and p99[1] is not None:
        pairs["latency_p99"] = (p99[0], p99[1])
    return {key: 100 * (now / was - 1) for key, (was, now) in pairs.items() if was}


# Products of fractions miss whole numbers by less than this share.
ROUNDING: Final = 1e-9


def percentile_ns(bins_ns: Mapping[int, int], percent: float) -> int:
    """The centre of the bin that the percentile falls into; 0 without any."""
    # 99.9 % of 41000 is computed as a little more than 40959.
    remaining = sum(bins_ns.values()) * percent / 100 * (1 - ROUNDING)
    centre = 0
    for centre in sorted(bins_ns):
        remaining -= bins_ns[centre]
        if remaining <= 0:
            break
    return centre


@dataclass(frozen=True, slots=True)
class Interval:
    """About one second of one job, as it goes into `intervals.jsonl.gz`.

    `client` is a process, `job` a volume or device in it (for rados bench both are the pool).
    """

    end_unix_seconds: float
    seconds: float
    phase: str
    client: str
    job: str
    depth: int
    read: LoadFigures | None
    write: LoadFigures | None
