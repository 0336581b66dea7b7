"""Reads the reply of `dump_metrics`: `{"metrics": [{NAME: {LABEL: text, …, "value": …}}, …]}`.

An entry that cannot be read is left out alone.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cephqos_exporter.daemon_errors import Malformed

METRICS: Final = "dump_metrics"

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
# Names of labels that we set ourselves, or that have a meaning for Prometheus.
_TAKEN: Final = frozenset({"ceph_daemon", "cluster", "le", "quantile"})


class Unreadable(Exception):
    """An entry, or a part of it, has another form than Seastar's metrics have."""


class Entry(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]
    value: Any  # a number; a histogram's mapping


def read_entries(reply: Any, wanted: Callable[[str], bool]) -> Iterator[Entry | None]:
    """The metrics with wanted names; None for each unreadable one. Malformed: no list of them."""
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


def usable_labels(labels: tuple[tuple[str, str], ...], extra: tuple[str, ...]) -> dict[str, str]:
    """Labels that Prometheus takes, then `extra` (names and values in turn), which win.

    Left out: a label without a name or whose name begins with a digit or is taken, one without a
    value (the same as no label), and the second of two whose names became alike.
    """
    usable: dict[str, str] = {}
    extra_labels = dict(zip(extra[::2], extra[1::2], strict=True))
    for key, text in labels:
        name = _UNSAFE.sub("_", key)
        allowed = _LABEL.fullmatch(name) and not name.startswith("__") and name not in _TAKEN
        if allowed and text and name not in extra_labels:
            usable.setdefault(name, text)
    return usable | extra_labels


def number(value: Any) -> float:
    """The value as a float; Unreadable if it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(value)
    try:
        return float(value)
    except OverflowError as exc:
        raise Unreadable(value) from exc


def fields(value: Mapping[str, Any], *names: str) -> list[Any]:
    """The values of these keys; Unreadable if one is missing."""
    try:
        return [value[name] for name in names]
    except KeyError as exc:
        raise Unreadable(value) from exc
