"""What a probe measures: latencies by pool and operation, and what went wrong. Plain data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from cephqos_base.bounds import OP_BOUNDS

OPS: Final = ("write", "read")


@dataclass(slots=True)
class Latencies:
    """A histogram. An operation that never ended counts, but only in the last bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * len(OP_BOUNDS))  # up to each bound
    total: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.total += 1
        self.seconds += seconds
        for i, bound in enumerate(OP_BOUNDS):
            if seconds <= bound:
                self.counts[i] += 1


@dataclass(slots=True)
class Measured:
    """All that a probe has seen of a cluster since it started."""

    latencies: dict[tuple[str, str], Latencies] = field(default_factory=dict)  # pool, op
    failures: dict[tuple[str, str, str], int] = field(default_factory=dict)  # pool, op, reason

    def add(self, pool: str, op: str, seconds: float) -> None:
        self.latencies.setdefault((pool, op), Latencies()).add(seconds)

    def failed(self, pool: str, op: str, reason: str, seconds: float) -> None:
        """A failure is an operation too: to a client it is the slowest kind."""
        histogram = self.latencies.setdefault((pool, op), Latencies())
        histogram.total += 1
        histogram.seconds += seconds
        key = (pool, op, reason)
        self.failures[key] = self.failures.get(key, 0) + 1

    def collect(self, cluster: str, up: bool) -> Iterator[Metric]:
        """As prometheus_client has them. Its Histogram object could not leave out a bucket."""
        known = {"cluster": cluster} if cluster else {}
        connected = Metric("cephqos_probe_up", "Whether the probe is connected.", "gauge")
        connected.add_sample("cephqos_probe_up", known, up)
        yield connected
        latency = HistogramMetricFamily(
            "cephqos_probe_latency_seconds",
            "What small operations of the probe took, as a client feels it. A failed one counts, "
            "and is in no bucket but +Inf.",
            labels=("cluster", "pool", "op"),
        )
        for (pool, op), measured in self.latencies.items():
            counts = (*measured.counts, measured.total)
            buckets = zip((*(f"{bound:.10g}" for bound in OP_BOUNDS), "+Inf"), counts, strict=True)
            latency.add_metric((cluster, pool, op), list(buckets), measured.seconds)
        yield latency
        failures = CounterMetricFamily(
            "cephqos_probe_failures_total",
            "Operations of the probe that failed.",
            labels=("cluster", "pool", "op", "reason"),
        )
        for (pool, op, reason), count in self.failures.items():
            failures.add_metric((cluster, pool, op, reason), count)
        yield failures
