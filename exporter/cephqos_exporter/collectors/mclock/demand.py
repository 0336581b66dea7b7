"""Client demand of an OSD, in the places where it shows other than the scheduler's queues."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.collectors.counters import Loggers
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import Labels

# Throttles in which client ops wait before or behind the scheduler's queues.
_THROTTLES: Final[Mapping[str, str]] = {
    "throttle-bluestore_throttle_bytes": "bluestore",
    "throttle-bluestore_throttle_deferred_bytes": "bluestore_deferred",
    "throttle-osd_client_bytes": "osd_client_bytes",
    "throttle-osd_client_messages": "osd_client_messages",
}


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


def client_demand(loggers: Loggers, waited: WaitedSum, labels: Labels) -> Iterable[Family]:
    """Client operations that wait or are in progress, and how full their throttles are."""
    counters = loggers.required("osd")
    seconds = counters["op_latency"]["sum"] - counters["op_process_latency"]["sum"]
    base = labels.base
    text = (
        "Time that completed client operations waited in queues, summed over "
        "operations. Its rate is how many were waiting on average (Little's law). An "
        "operation that is requeued waits again."
    )
    value = waited.at(seconds)
    yield single("cephqos_qos_client_wait_seconds_total", "counter", text, base, value)
    text = "Client operations that the OSD has accepted as primary and not completed."
    value = counters["op_wip"]
    yield single("cephqos_qos_client_ops_in_progress", "gauge", text, base, value)
    found = {short: loggers.get(logger) for logger, short in _THROTTLES.items()}
    throttles = {short: values for short, values in found.items() if values is not None}
    yield _throttle_use(throttles, labels)
    yield _throttle_waits(throttles, labels)


def _throttle_use(throttles: Mapping[str, Mapping[str, Any]], labels: Labels) -> Family:
    """How full each throttle is; one without a bound is left out."""
    family = Family(
        "cephqos_qos_throttle_used_ratio",
        "gauge",
        (
            "Share of a throttle that is in use. Client operations wait when it is 1. "
            "Absent for a throttle without a bound."
        ),
    )
    for throttle, counters in throttles.items():
        if counters["max"]:
            family.add(labels.of("throttle", throttle), counters["val"] / counters["max"])
    return family


def _throttle_waits(throttles: Mapping[str, Mapping[str, Any]], labels: Labels) -> Family:
    family = Family(
        "cephqos_qos_throttle_wait_seconds_total",
        "counter",
        "Time that operations waited at a throttle, summed over operations.",
    )
    for throttle, counters in throttles.items():
        family.add(labels.of("throttle", throttle), counters["wait"]["sum"])
    return family
