"""Series of classic OSDs that Crimson has figures for: rules and dashboards read the same names."""

from collections.abc import Iterable
from typing import Any, Final

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
    entries = list(entries)
    client = _sum(
        entry.value for entry in entries if entry.name == WAITS and _CLIENT in entry.labels
    )
    throttle = _sum_of_histograms(
        entry.value
        for entry in entries
        if entry.name == STAGES and _THROTTLED in entry.labels and _is_of_all(entry)
    )
    if client is not None:
        text = (
            "Time that completed client operations waited in queues, summed over "
            "operations. Its rate is how many were waiting on average (Little's law). "
            "An operation that is requeued waits again."
        )
        name = "cephqos_qos_client_wait_seconds_total"
        yield Family(name, "counter", text, [("", base, client)])
    if throttle is not None:
        labels = extend_labels(base, {"throttle": "seastore"})
        text = "Time that operations waited at a throttle, summed over operations."
        name = "cephqos_qos_throttle_wait_seconds_total"
        yield Family(name, "counter", text, [("", labels, throttle)])


def _sum(values: Iterable[Any]) -> float | None:
    """Of all shards, in seconds; None without any, or if one cannot be read (it is unread)."""
    try:
        found = [number(value) / MILLI for value in values]
    except Odd:
        return None
    return sum(found) if found else None


def _sum_of_histograms(values: Iterable[Any]) -> float | None:
    try:
        found = [read_histogram(value) for value in values]
    except Odd:
        return None
    return sum(one.sum / unit_of([one], MILLI) for one in found) if found else None


def _is_of_all(entry: Entry) -> bool:
    return dict(entry.labels).get("tail", "all") == "all"
