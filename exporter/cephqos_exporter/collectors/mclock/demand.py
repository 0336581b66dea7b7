"""Client demand of an OSD, in the places where it shows other than the scheduler's queues."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.collectors.counters import Loggers, figure
from cephqos_exporter.families import Family, FamilyType, gauge, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood

# Throttles in which client ops wait before or behind the scheduler's queues.
_THROTTLES: Final[Mapping[str, str]] = {
    "throttle-bluestore_throttle_bytes": "bluestore",
    "throttle-bluestore_throttle_deferred_bytes": "bluestore_deferred",
    "throttle-osd_client_bytes": "osd_client_bytes",
    "throttle-osd_client_messages": "osd_client_messages",
}
# Crimson has them too: name, type and help.
CLIENT_WAIT: Final[tuple[str, FamilyType, str]] = (
    "cephqos_qos_client_wait_seconds_total",
    "counter",
    "Time that completed client operations waited in queues, summed over "
    "operations. Its rate is how many were waiting on average (Little's law). An "
    "operation that is requeued waits again.",
)
THROTTLE_WAIT: Final[tuple[str, FamilyType, str]] = (
    "cephqos_qos_throttle_wait_seconds_total",
    "counter",
    "Time that operations waited at a throttle, summed over operations.",
)


@dataclass(slots=True)
class WaitedSum:
    """A sum of waiting times that never goes back.

    Its parts are read one after the other while ops complete: their difference can shrink by some
    microseconds, which Prometheus would take for a restart and count all of it once more.
    """

    seconds: float = 0.0

    def at(self, seconds: float) -> float:
        seconds = max(seconds, 0.0)
        # After `perf reset` the sums start again from 0, and so does this.
        if seconds > self.seconds or seconds < self.seconds / 2:
            self.seconds = seconds
        return self.seconds


def client_demand(
    loggers: Loggers, waited: WaitedSum, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """Client operations that wait or are in progress, and how full their throttles are."""
    counters = loggers.required("osd")
    latency = figure(counters, "op_latency", not_understood, "sum")
    processing = figure(counters, "op_process_latency", not_understood, "sum")
    base = labels.base
    if latency is not None and processing is not None:
        yield single(*CLIENT_WAIT, base, waited.at(latency - processing))
    text = (
        "Client writes that the OSD as primary has begun and not completed. What waits in its "
        "queue is not among them."
    )
    in_progress = figure(counters, "op_wip", not_understood)
    if in_progress is not None:
        yield single("cephqos_qos_client_ops_in_progress", "gauge", text, base, in_progress)
    by_throttle = {short: loggers.get(logger) for logger, short in _THROTTLES.items()}
    throttles = {short: values for short, values in by_throttle.items() if values is not None}
    yield _throttle_use(throttles, labels, not_understood)
    yield _throttle_waits(throttles, labels, not_understood)


def _throttle_use(
    throttles: Mapping[str, Mapping[str, Any]], labels: Labels, not_understood: NotUnderstood
) -> Family:
    """How full each throttle is; one without a bound is left out."""
    family = gauge(
        "cephqos_qos_throttle_used_ratio",
        "Share of a throttle that is in use. Client operations wait when it is 1. "
        "Absent for a throttle without a bound.",
    )
    for throttle, counters in throttles.items():
        most, used = (
            figure(counters, "max", not_understood),
            figure(counters, "val", not_understood),
        )
        if most and used is not None:
            family.add(labels.of("throttle", throttle), used / most)
    return family


def _throttle_waits(
    throttles: Mapping[str, Mapping[str, Any]], labels: Labels, not_understood: NotUnderstood
) -> Family:
    family = Family(*THROTTLE_WAIT)
    for throttle, counters in throttles.items():
        waits = figure(counters, "wait", not_understood, "sum")
        if waits is not None:
            family.add(labels.of("throttle", throttle), waits)
    return family
