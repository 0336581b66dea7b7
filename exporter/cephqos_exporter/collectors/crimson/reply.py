"""Reads the reply of `dump_metrics`: `{"metrics": [{NAME: {LABEL: text, …, "value": …}}, …]}`.

One entry that cannot be read costs itself and nothing else.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from cephqos_exporter.collectors.crimson.names import MICRO, MILLI
from cephqos_exporter.daemon_errors import Malformed

METRICS: Final = "dump_metrics"

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
# Ours, or with a meaning for Prometheus.
_TAKEN: Final = frozenset({"ceph_daemon", "cluster", "le", "quantile"})
# SeaStore's bounds go up to 100 ms; above this they can only be microseconds.
_MOST_MILLISECONDS: Final = 10_000.0

Labels = tuple[tuple[str, str], ...]


class Odd(Exception):
    """An entry that is not as it should be."""


class Entry(NamedTuple):
    name: str
    labels: Labels
    value: Any  # a number; a histogram's mapping; null for a float that was not finite


def read_entries(reply: Any, wanted: Callable[[str], bool]) -> Iterator[Entry | None]:
    """The metrics with wanted names; None for each that is odd. Malformed: no list of them."""
    metrics = reply.get("metrics") if isinstance(reply, dict) else None
    if not isinstance(metrics, list):
        raise Malformed(f"{METRICS}: not a list of named metrics")
    for group in metrics:
        if not isinstance(group, dict):
            yield None
            continue
        for name, body in group.items():
            if wanted(name):  # most are not
                yield _entry(name, body)


def _entry(name: str, body: Any) -> Entry | None:
    if not isinstance(body, dict) or "value" not in body:
        return None
    labels = []
    for key, text in body.items():
        if key == "value":
            continue
        if not isinstance(text, str):
            if isinstance(text, bool) or not isinstance(text, int | float):
                return None
            text = str(text)
        labels.append((key, text))
    return Entry(name, tuple(labels), body["value"])


def fit_labels(labels: Labels) -> dict[str, str]:
    """Labels that Prometheus takes.

    Left out: a label without a name or that begins with a digit, one whose name has another
    meaning, one without a value (which is the same as none), the second of two that look alike.
    """
    fit: dict[str, str] = {}
    for key, text in labels:
        name = _UNSAFE.sub("_", key)
        usable = _LABEL.fullmatch(name) and not name.startswith("__") and name not in _TAKEN
        if usable and text:
            fit.setdefault(name, text)
    return fit


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Odd(value)
    try:
        return float(value)
    except OverflowError as exc:
        raise Odd(value) from exc


def sum_and_count(histogram: Any) -> tuple[float, float]:
    """Of the samples of a histogram; Odd if it is none."""
    if not isinstance(histogram, dict) or not {"sum", "count"} <= histogram.keys():
        raise Odd(histogram)
    # A sum that is not finite is written as null; there are no samples then.
    total = 0.0 if histogram["sum"] is None else number(histogram["sum"])
    count = number(histogram["count"])
    if total < 0 or count < 0 or not count.is_integer():
        raise Odd(histogram)
    return total, count


def unit_of_latencies(entries: list[Entry]) -> float:
    """What SeaStore's sums are divided by: builds differ, and the bounds of any series tell it.

    One build has bounds for transactions only, and sums in microseconds for all operations.
    """
    bounds = [
        bucket.get("le")
        for entry in entries
        if entry.name.startswith("seastore_") and isinstance(entry.value, dict)
        for bucket in entry.value.get("buckets") or ()
        if isinstance(bucket, dict)
    ]
    most = max((bound for bound in bounds if isinstance(bound, int | float)), default=0)
    return MICRO if most > _MOST_MILLISECONDS else MILLI
