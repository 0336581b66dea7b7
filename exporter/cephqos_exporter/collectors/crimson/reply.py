"""Reads the reply of `dump_metrics`: `{"metrics": [{NAME: {LABEL: text, …, "value": …}}, …]}`.

One entry that cannot be read costs itself and nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cephqos_exporter.daemon_errors import Malformed

METRICS: Final = "dump_metrics"

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
# Ours, or with a meaning for Prometheus.
_TAKEN: Final = frozenset({"ceph_daemon", "cluster", "le", "quantile"})


class Unreadable(Exception):
    """An entry that is not as it should be."""


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


def fit_labels(labels: tuple[tuple[str, str], ...], extra: tuple[str, ...]) -> dict[str, str]:
    """Labels that Prometheus takes; ours come last and win.

    Left out: a label without a name or that begins with a digit, one whose name has another
    meaning, one without a value (which is the same as none), the second of two that look alike.
    """
    fit: dict[str, str] = {}
    ours = dict(zip(extra[::2], extra[1::2], strict=True))
    for key, text in labels:
        name = _UNSAFE.sub("_", key)
        usable = _LABEL.fullmatch(name) and not name.startswith("__") and name not in _TAKEN
        if usable and text and name not in ours:
            fit.setdefault(name, text)
    return fit | ours


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(value)
    try:
        return float(value)
    except OverflowError as exc:
        raise Unreadable(value) from exc


def fields(value: Mapping[str, Any], *names: str) -> list[Any]:
    try:
        return [value[name] for name in names]
    except KeyError as exc:
        raise Unreadable(value) from exc
