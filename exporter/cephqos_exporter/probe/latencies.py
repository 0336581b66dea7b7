"""What a probe measures: latencies by pool and operation, and what went wrong. Plain data."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.bounds import OP_BOUNDS
from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText, render_labels

OPS: Final = ("write", "read")


@dataclass(slots=True)
class Latencies:
    """A histogram. An operation that never came back counts, in no bucket but the last."""

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

    def took(self, pool: str, op: str, seconds: float) -> None:
        self.latencies.setdefault((pool, op), Latencies()).add(seconds)

    def failed(self, pool: str, op: str, reason: str, seconds: float) -> None:
        """A failure is an operation too: to a client it is the slowest kind."""
        histogram = self.latencies.setdefault((pool, op), Latencies())
        histogram.total += 1
        histogram.seconds += seconds
        key = (pool, op, reason)
        self.failures[key] = self.failures.get(key, 0) + 1

    def families(self, cluster: str) -> Iterable[Family]:
        latency = Family(
            "cephqos_probe_latency_seconds",
            "histogram",
            "What small operations of the probe took, as a client feels it. A failed one counts, "
            "and is in no bucket but +Inf.",
        )
        for (pool, op), histogram in self.latencies.items():
            base = {"cluster": cluster, "pool": pool, "op": op}
            for bound, count in zip(OP_BOUNDS, histogram.counts, strict=True):
                latency.add(render_labels({**base, "le": f"{bound:.10g}"}), count, "_bucket")
            infinite = render_labels({**base, "le": "+Inf"})
            latency.add(infinite, histogram.total, "_bucket")
            latency.add(render_labels(base), histogram.total, "_count")
            latency.add(render_labels(base), histogram.seconds, "_sum")
        failures = Family(
            "cephqos_probe_failures_total", "counter", "Operations of the probe that failed."
        )
        for (pool, op, reason), count in self.failures.items():
            labels = {"cluster": cluster, "pool": pool, "op": op, "reason": reason}
            failures.add(render_labels(labels), count)
        return latency, failures

    @staticmethod
    def up_family(cluster: str, up: bool) -> Family:
        family = Family("cephqos_probe_up", "gauge", "Whether the probe is connected.")
        labels = render_labels({"cluster": cluster}) if cluster else LabelText("")
        family.add(labels, up)
        return family
