"""Series of the collector `mclock` that Crimson has figures for too.

Rules and dashboards then need not know which kind of OSD it is.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from cephqos_exporter.collectors.crimson.buckets import Histogram, read_histogram, unit_of
from cephqos_exporter.collectors.crimson.names import MILLI, STAGES, WAITS
from cephqos_exporter.collectors.crimson.reply import Entry, Unreadable, number
from cephqos_exporter.collectors.mclock.demand import CLIENT_WAIT, THROTTLE_WAIT
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import LabelText, extend_labels

_CLIENT: Final = ("op_class", "client")
_THROTTLED: Final = ("stage", "throttler_wait")


def as_classic(entries: Sequence[Entry], base: LabelText) -> Iterable[Family]:
    """Time that client operations waited in the scheduler, and transactions at SeaStore's throttle.

    Names and help are those of the collector `mclock`.
    """
    client = _sum(
        number(entry.value) / MILLI
        for entry in entries
        if entry.name == WAITS and _CLIENT in entry.labels
    )
    if client is not None:
        yield single(*CLIENT_WAIT, base, client)
    throttle = _sum(
        _seconds(read_histogram(entry.value))
        for entry in entries
        if entry.name == STAGES
        and _THROTTLED in entry.labels
        and dict(entry.labels).get("tail", "all") == "all"  # else only the slowest transactions
    )
    if throttle is not None:
        yield single(*THROTTLE_WAIT, extend_labels(base, {"throttle": "seastore"}), throttle)


def _seconds(histogram: Histogram) -> float:
    return histogram.sum / unit_of([histogram], MILLI)


def _sum(values: Iterable[float]) -> float | None:
    """The sum over all shards; None without any, or if one cannot be read."""
    try:
        known = list(values)
    except Unreadable:  # ReplyFamilies counts it
        return None
    return sum(known) if known else None
