"""What a probe measures: latencies by pool and operation, and what went wrong. Plain data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.bounds import OP_BOUNDS
from cephqos_exporter.families import Family, counter, single
from cephqos_exporter.labels import extend_labels, render_labels

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

    def families(self, cluster: str, up: bool) -> Iterator[Family]:
        known = render_labels({"cluster": cluster} if cluster else {})
        text = "Whether the probe is connected."
        yield single("cephqos_probe_up", "gauge", text, known, up)
        latency = Family(
            "cephqos_probe_latency_seconds",
            "histogram",
            "What small operations of the probe took, as a client feels it. A failed one counts, "
            "and is in no bucket but +Inf.",
        )
        for (pool, op), measured in self.latencies.items():
            labels = render_labels({"cluster": cluster, "pool": pool, "op": op})
            bounds = (*(f"{bound:.10g}" for bound in OP_BOUNDS), "+Inf")
            for bound, count in zip(bounds, (*measured.counts, measured.total), strict=True):
                latency.add(extend_labels(labels, {"le": bound}), count, "_bucket")
            latency.add(labels, measured.total, "_count")
            latency.add(labels, measured.seconds, "_sum")
        yield latency
        failures = counter("cephqos_probe_failures_total", "Operations of the probe that failed.")
        for (pool, op, reason), count in self.failures.items():
            names = {"cluster": cluster, "pool": pool, "op": op, "reason": reason}
            failures.add(render_labels(names), count)
        yield failures
