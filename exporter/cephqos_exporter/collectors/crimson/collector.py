"""The collector: which of Seastar's metrics are wanted, and what becomes of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.crimson import names
from cephqos_exporter.collectors.crimson.names import MILLI, PREFIX, STAGES, WAITS
from cephqos_exporter.collectors.crimson.reply import (
    METRICS,
    Entry,
    Labels,
    Odd,
    fit_labels,
    number,
    read_entries,
    sum_and_count,
    unit_of_latencies,
)
from cephqos_exporter.collectors.mclock.demand import CLIENT_WAIT, THROTTLE_WAIT
from cephqos_exporter.config import Settings, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, gauge, single
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.not_understood import NotUnderstood

_UNREAD: Final = f"{PREFIX}metrics_unread"
# The scheduling group of what runs when the daemon ends; nothing has run in it before.
_AT_EXIT: Final = ("group", "atexit")
# A negative number, where it is read as one without a sign.
_NEGATIVE: Final = 2.0**63
# Rendered labels are kept from scrape to scrape, but not of a daemon that makes new ones each time.
_MOST_CHARACTERS: Final = 16 << 20
# What other OSDs' primaries ask of this one is work of `immediate` wherever cephqos shows it.
_CLASSES: Final = {
    **{name: name for name in (CLIENT, RECOVERY, BEST_EFFORT, IMMEDIATE)},
    "repop": IMMEDIATE,
}


@dataclass(slots=True)
class _CrimsonOsd:
    """What is kept of an OSD between scrapes."""

    base: LabelText
    highest: dict[tuple[str, LabelText], float] = field(default_factory=dict)
    _labels: dict[Labels, LabelText] = field(default_factory=dict)
    _characters: int = 0

    def labels(self, labels: Labels) -> LabelText:
        """As Prometheus takes them, with the class of cephqos beside Crimson's."""
        text = self._labels.get(labels)
        if text is None:
            fit = fit_labels(labels)
            if fit.get("op_class") in _CLASSES:
                fit.setdefault("class", _CLASSES[fit["op_class"]])
            text = extend_labels(self.base, fit)
            self._characters += len(text)
            if self._characters > _MOST_CHARACTERS:
                self._labels.clear()
                self.highest.clear()
                self._characters = 0
            self._labels[labels] = text
        return text


class CrimsonCollector(
    DaemonCollector[_CrimsonOsd], name="crimson", help="Metrics of Crimson OSDs."
):
    """Metrics of Crimson OSDs; nothing for classic ones, which do not know the command."""

    include = texts(
        "collector.crimson.include",
        (),
        "Metrics of Crimson to report as well, by Seastar's names, such as cache_*. * is all: "
        "thousands of series per shard and store.",
        allowed="patterns of names",
    )

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:
        super().__init__(settings, **given)
        patterns = (*names.USUAL, *self.include)

        @lru_cache(maxsize=4096)
        def shown(name: str) -> bool:
            return name not in names.LEFT_OUT and any(fnmatchcase(name, one) for one in patterns)

        self._is_shown = shown

    def needed(self, daemon: Daemon, state: _CrimsonOsd | None) -> Sequence[Command]:
        return (Command(METRICS),)

    def first_seen(self, view: DaemonView) -> _CrimsonOsd:
        return _CrimsonOsd(view.labels)

    def families(self, view: DaemonView, state: _CrimsonOsd) -> Iterable[Family]:
        odd = view.not_understood
        reply = view.reply(METRICS)
        read = list(read_entries(reply, lambda name: name == STAGES or self._is_shown(name)))
        entries = [entry for entry in read if entry is not None]
        unread = len(read) - len(entries)
        latency = unit_of_latencies(entries)
        families: dict[str, Family] = {}
        for entry in entries:
            _say_unknown_class(entry, odd)
            if entry.value is None or _AT_EXIT in entry.labels or not self._is_shown(entry.name):
                continue
            try:
                _add(families, entry, state, latency)
            except Odd:
                unread += 1
        if unread:
            odd.add("counter", _UNREAD, unread)
        count = gauge(_UNREAD, "Metrics of the reply that could not be read.")
        count.add(state.base, unread)
        return [*families.values(), *_as_classic(entries, state.base, latency), count]


def _say_unknown_class(entry: Entry, odd: NotUnderstood) -> None:
    for key, text in entry.labels:
        if key == "op_class" and text not in _CLASSES:
            odd.add("class", text)


def _add(families: dict[str, Family], entry: Entry, osd: _CrimsonOsd, latency: float) -> None:
    """Add an entry to the family of its name; Odd where it has another form than its name says.

    A histogram becomes its sum and count. Its buckets mean different things in different builds,
    and no reply says which.
    """
    shown = names.shown(entry.name)
    family = families.get(shown.name) or Family(shown.name, shown.type, shown.help)
    labels = osd.labels(entry.labels)
    if isinstance(entry.value, dict):
        if shown.type not in ("summary", "unknown"):
            raise Odd(entry)
        total, count = sum_and_count(entry.value)
        in_seastore = entry.name.startswith("seastore_") and shown.divisor == MILLI
        divisor = latency if in_seastore else shown.divisor
        family.type = "summary"
        family.add(labels, total / divisor, "_sum")
        family.add(labels, count, "_count")
    else:
        value = number(entry.value)
        if shown.type == "summary" or (shown.type == "counter" and not 0 <= value < _NEGATIVE):
            raise Odd(entry)
        value /= shown.divisor
        if shown.held:
            key = (shown.name, labels)
            value = osd.highest[key] = max(value, osd.highest.get(key, value))
        family.add(labels, value)
    families[shown.name] = family


def _as_classic(entries: Sequence[Entry], base: LabelText, latency: float) -> Iterable[Family]:
    """What rules and dashboards read of classic OSDs, under the names of the collector `mclock`."""
    waited = _sum(
        number(entry.value) / MILLI
        for entry in entries
        if entry.name == WAITS and ("op_class", "client") in entry.labels
    )
    if waited is not None:
        yield single(*CLIENT_WAIT, base, waited)
    throttled = _sum(
        sum_and_count(entry.value)[0] / latency
        for entry in entries
        if entry.name == STAGES
        and ("stage", "throttler_wait") in entry.labels
        and dict(entry.labels).get("tail", "all") == "all"
    )
    if throttled is not None:
        yield single(*THROTTLE_WAIT, extend_labels(base, {"throttle": "seastore"}), throttled)


def _sum(values: Iterable[float]) -> float | None:
    """Of all shards; None without any, or if one of them cannot be read."""
    try:
        known = list(values)
    except Odd:
        return None
    return sum(known) if known else None
