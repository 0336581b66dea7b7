"""Series of classic OSDs that Crimson has figures for: rules and dashboards read the same names."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from cephqos_exporter.collectors.crimson.buckets import read_histogram, unit_of
from cephqos_exporter.collectors.crimson.names import MILLI, STAGES, WAITS
from cephqos_exporter.collectors.crimson.reply import Entry, Odd, number
from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText, extend_labels

_CLIENT: Final = ("op_class", "client")
_THROTTLED: Final = ("stage", "throttler_wait")


def as_classic(entries: Iterable[Entry], base: LabelText) -> Iterable[Family]:
    """Time that client operations waited in the scheduler, and transactions at SeaStore's throttle.

    The help texts are those of the collector `mclock`.
    """
    client: list[float] = []
    throttle: list[float] = []
    for entry in entries:
        with suppress(Odd):
            if entry.name == WAITS and _CLIENT in entry.labels:
                client.append(number(entry.value) / MILLI)
            elif entry.name == STAGES and _THROTTLED in entry.labels and _is_of_all(entry):
                histogram = read_histogram(entry.value)
                throttle.append(histogram.sum / unit_of([histogram], MILLI))
    if client:
        text = (
            "Time that completed client operations waited in queues, summed over "
            "operations. Its rate is how many were waiting on average (Little's law). "
            "An operation that is requeued waits again."
        )
        name = "cephqos_qos_client_wait_seconds_total"
        yield Family(name, "counter", text, [("", base, sum(client))])
    if throttle:
        labels = extend_labels(base, {"throttle": "seastore"})
        text = "Time that operations waited at a throttle, summed over operations."
        name = "cephqos_qos_throttle_wait_seconds_total"
        yield Family(name, "counter", text, [("", labels, sum(throttle))])


def _is_of_all(entry: Entry) -> bool:
    return dict(entry.labels).get("tail", "all") == "all"
