"""Figures of a stretch of time, from counters that OSDs keep: pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

from cephqos_exporter.collectors.histograms import OPS

RATES: Final = ("ops/s", "recovery/s", "scrubbed/s")
VIOLATED: Final = "violated s/min"  # summed over OSDs and classes
LATENCIES: Final = ("p99", "p95", "p50", "mean")
DECIDING: Final = (*LATENCIES, "ops/s", "recovery/s")  # of these one decides
# The load of a cluster that is left alone, and its mean latency, vary by less from block to block.
_OTHER_LOAD: Final = 1.5
_SLOWER: Final = 2.0
# How far off the change of a percentile can be (of its logarithm), as buckets double. Of 400
# made-up mixtures of two lognormal distributions, up to 5 of 100 were further off, 0.28 at most.
BLUR: Final = {"p99": 0.08, "p95": 0.08, "p50": 0.08}


@dataclass(frozen=True, slots=True)
class OsdCounters:
    """Of one OSD since its start."""

    latency_seconds: float  # of all client operations together
    buckets: tuple[int, ...]  # client operations by latency
    recovery_ops: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of OSDs at about one moment."""

    at: float  # seconds of a clock that is not set
    bounds: tuple[float, ...]  # the upper end of each bucket, in seconds
    osds: Mapping[int, OsdCounters]
    silent: tuple[int, ...] = ()  # OSDs that did not answer
    scrubbed: float | None = None  # objects since the trial began; None: not known
    violated: float | None = None  # seconds since then, summed over OSDs and classes


def counters_of(
    histograms: Mapping[str, Any], perf: Mapping[str, Any]
) -> tuple[OsdCounters, tuple[float, ...]]:
    """From the replies to `perf histogram dump` and `perf dump`, with the buckets' bounds."""
    rows: list[int] = []
    bounds: tuple[float, ...] = ()
    for name, _ in OPS.values():
        histogram = histograms["osd"][name]
        counts = [sum(row) for row in histogram["values"]]
        rows = counts if not rows else [a + b for a, b in zip(rows, counts, strict=True)]
        ranges = histogram["axes"][0]["ranges"]
        bounds = tuple((one["max"] + 1) / 1e9 if "max" in one else float("inf") for one in ranges)
    osd = perf["osd"]
    latency = sum(float(osd[name]["sum"]) for _, name in OPS.values())
    return OsdCounters(latency, tuple(rows), int(osd["recovery_ops"])), bounds


@dataclass(frozen=True, slots=True)
class BlockFigures:
    """What OSDs did between two readings."""

    seconds: float
    operations: int
    figures: Mapping[str, float]  # by name; what is not known is not there


def between(first: Reading, last: Reading) -> BlockFigures | None:
    """None where an OSD is missing in one of both, or has started again."""
    if first.silent or last.silent or first.bounds != last.bounds:
        return None
    pairs = [(first.osds[osd], last.osds[osd]) for osd in first.osds]
    if last.at <= first.at or any(_restarted(a, b) for a, b in pairs):
        return None
    counts = [0] * len(first.bounds)
    for a, b in pairs:
        counts = [n + y - x for n, x, y in zip(counts, a.buckets, b.buckets, strict=True)]
    seconds, operations = last.at - first.at, sum(counts)
    figures = {
        "ops/s": operations / seconds,
        "recovery/s": sum(b.recovery_ops - a.recovery_ops for a, b in pairs) / seconds,
    }
    if operations:
        figures["mean"] = sum(b.latency_seconds - a.latency_seconds for a, b in pairs) / operations
        for percent in (50, 95, 99):
            figures[f"p{percent}"] = quantile(first.bounds, counts, percent / 100)
    if first.scrubbed is not None and last.scrubbed is not None:
        figures["scrubbed/s"] = (last.scrubbed - first.scrubbed) / seconds
    if first.violated is not None and last.violated is not None:
        figures[VIOLATED] = 60 * (last.violated - first.violated) / seconds
    return BlockFigures(seconds, operations, figures)


def _restarted(before: OsdCounters, after: OsdCounters) -> bool:
    return sum(after.buckets) < sum(before.buckets) or after.recovery_ops < before.recovery_ops


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The latency below which this share of the operations is. Buckets double: within one, it is
    taken from the lognormal distribution that goes through the bucket's ends."""
    total, below = sum(counts), 0
    for number, count in enumerate(counts):
        if count and below + count >= share * total:
            low, high = bounds[number - 1] if number else 0.0, bounds[number]
            if high == float("inf"):
                return low
            first, last = (_score(rank / total, total) for rank in (below, below + count))
            whole = last - first
            part = (NormalDist().inv_cdf(share) - first) / whole if whole > 0 else 0.5
            part = min(1.0, max(0.0, part))
            return float(low * (high / low) ** part) if low > 0 else high * part
        below += count
    return 0.0


def _score(share: float, total: int) -> float:
    """Of the normal distribution. What none or all of the operations are below has none: half an
    operation is taken."""
    least = 0.5 / total
    return NormalDist().inv_cdf(min(1 - least, max(least, share)))


def cluster_changed(first: BlockFigures, second: BlockFigures) -> bool:
    """Whether two times with the same setting are so different that they, and what was measured
    between them, say nothing of a setting: the load changed, or a device became slow."""
    return _far(first, second, "ops/s", _OTHER_LOAD) or _far(first, second, "mean", _SLOWER)


def _far(first: BlockFigures, second: BlockFigures, figure: str, most: float) -> bool:
    one, other = first.figures.get(figure, 0.0), second.figures.get(figure, 0.0)
    return max(one, other) > most * min(one, other)
