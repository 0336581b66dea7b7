"""One reply of a Crimson OSD on its way into families."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.crimson import buckets, names
from cephqos_exporter.collectors.crimson.classic import as_classic
from cephqos_exporter.collectors.crimson.names import PREFIX, STAGES, TABLE, Shown
from cephqos_exporter.collectors.crimson.reply import (
    Entry,
    Unreadable,
    fit_labels,
    number,
    read_entries,
)
from cephqos_exporter.families import Family, FamilyType, gauge
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.not_understood import NotUnderstood

_UNREAD: Final = f"{PREFIX}metrics_unread"
_SHARDS: Final = frozenset({"shard", "shard_store_index"})
_SEASTORES: Final = ("seastore_", "segment_")
# The scheduling group of what runs when the daemon ends; nothing has run in it before.
_AT_EXIT: Final = ("group", "atexit")
# A negative number, where it is read as one without a sign.
_NEGATIVE: Final = 2.0**63
# Rendered labels are kept from scrape to scrape, but not of a daemon that makes new ones each time.
_MOST_LABELS: Final = 100_000
_MOST_CHARACTERS: Final = 16 << 20
# What other OSDs' primaries ask of this one is work of `immediate` wherever cephqos shows it.
_CLASSES: Final[Mapping[str, str]] = {
    "client": CLIENT,
    "background_recovery": RECOVERY,
    "background_best_effort": BEST_EFFORT,
    "immediate": IMMEDIATE,
    "repop": IMMEDIATE,
}

Labels = tuple[tuple[str, str], ...]


def _claims(name: str, kind: FamilyType) -> Iterable[str]:
    """Every name that a family takes, in either text format."""
    yield name
    yield name.removesuffix("_total")
    if kind == "histogram":
        yield from (f"{name}_{suffix}" for suffix in ("bucket", "sum", "count"))


# Names that are taken, and the metric that has them.
_CLAIMED: Final = {_UNREAD: ""} | {
    claim: source for source, one in TABLE.items() for claim in _claims(one.name, one.type)
}


@dataclass(slots=True)
class Kept:
    """What is kept of an OSD between scrapes."""

    base: LabelText
    forms: dict[str, bool] = field(default_factory=dict)  # of histograms, once figures proved it
    closed: set[str] = field(default_factory=set)  # histograms whose last bucket keeps its bound
    _highest: dict[tuple[str, LabelText], float] = field(default_factory=dict)
    _labels: dict[tuple[Labels, str], LabelText] = field(default_factory=dict)
    _texts: dict[frozenset[tuple[str, str]], LabelText] = field(default_factory=dict)
    _characters: int = 0

    def labels(self, labels: Labels, le: str = "") -> LabelText:
        text = self._labels.get((labels, le))
        if text is None:
            fit = fit_labels(tuple(_in_our_words(labels)), ("le", le) if le else ())
            # In whatever order: the same labels are the same text.
            new = extend_labels(self.base, fit)
            self._characters += len(new)
            if len(self._labels) >= _MOST_LABELS or self._characters > _MOST_CHARACTERS:
                self._labels.clear()
                self._texts.clear()
                self._characters = 0
            text = self._texts.setdefault(frozenset(fit.items()), new)
            self._labels[labels, le] = text
        return text

    def not_below(self, name: str, labels: LabelText, value: float) -> float:
        """The highest value of a series so far."""
        if len(self._highest) >= _MOST_LABELS:
            self._highest.clear()
        key = (name, labels)
        highest = self._highest[key] = max(value, self._highest.get(key, value))
        return highest


def _in_our_words(labels: Labels) -> Iterable[tuple[str, str]]:
    """Crimson's class beside the one of cephqos."""
    for key, text in labels:
        yield key, text
        if key == "op_class" and text in _CLASSES:
            yield "class", _CLASSES[text]


class ReplyFamilies:
    """Made for one reply."""

    def __init__(
        self, kept: Kept, wanted: Callable[[str], bool], apart: bool, not_understood: NotUnderstood
    ) -> None:
        self._kept = kept
        self._not_understood = not_understood
        self._wanted = wanted
        self._apart = apart
        self._families: dict[str, Family] = {}
        self._seen: set[tuple[str, LabelText]] = set()
        self._claimed = dict(_CLAIMED)
        self._unread = 0

    def families(self, reply: object) -> Iterable[Family]:
        read = list(read_entries(reply, lambda name: name == STAGES or self._wanted(name)))
        entries = [entry for entry in read if entry is not None]
        self._unread += len(read) - len(entries)
        histograms: dict[str, list[Entry]] = {}
        for entry in entries:
            for key, text in entry.labels:
                if key == "op_class" and text not in _CLASSES:
                    self._not_understood.add("class", text)
            if isinstance(entry.value, dict):
                histograms.setdefault(entry.name, []).append(entry)
        # First, because each takes several names.
        for name, those in histograms.items():
            self._histogram(name, those)
        for entry in entries:
            # null: a float that was not finite
            if entry.value is not None and not isinstance(entry.value, dict):
                self._scalar(entry)
        unread = gauge(_UNREAD, "Metrics of the reply that could not be read, or came twice.")
        unread.add(self._kept.base, self._unread)
        if self._unread:
            self._not_understood.add("counter", _UNREAD, self._unread)
        families = [*self._families.values(), *as_classic(entries, self._kept.base), unread]
        return [family for family in families if family.samples]

    def _scalar(self, entry: Entry) -> None:
        if _AT_EXIT in entry.labels:
            return
        shown = names.shown(entry.name)
        try:
            value = number(entry.value)
            if shown.type == "histogram" or (
                shown.type == "counter" and not 0 <= value < _NEGATIVE
            ):
                raise Unreadable(value)
            family = self._family(entry.name, shown, shown.type)
        except Unreadable:
            self._unread += 1
            return
        value /= shown.divisor
        labels = self._kept.labels(entry.labels)
        if shown.held:
            value = self._kept.not_below(family.name, labels, value)
        self._add(family, labels, value)

    def _histogram(self, name: str, entries: Iterable[Entry]) -> None:
        read = self._read(entries)
        form = buckets.told_form(one for _, one in read)
        if form is not None:
            self._kept.forms[name] = form
        if not self._wanted(name):
            return
        # Until figures prove a form: SeaStore counts each bucket for itself, Seastar does not.
        form = self._kept.forms.get(name, not name.startswith(_SEASTORES))
        shown = names.shown(name)
        try:
            if shown.type not in ("histogram", "unknown"):
                raise Unreadable(name)
            family = self._family(name, shown, "histogram")
        except Unreadable:
            self._unread += len(read)
            return
        divisor = shown.divisor
        if name.startswith(_SEASTORES):
            divisor = buckets.unit_of((one for _, one in read), divisor)
        # Stages are known to count what is beyond the last bound beside the buckets only.
        if not form and name != STAGES and self._is_open(name, [one for _, one in read]):
            read = [(labels, buckets.without_last(one)) for labels, one in read]
        for labels, one in self._together(read, form).items():
            self._write(family, labels, one, divisor)

    def _is_open(self, name: str, read: Iterable[buckets.Histogram]) -> bool:
        """Whether the last bucket of the metric may hold what is beyond its bound."""
        told = {buckets.may_be_open(one) for one in read if buckets.is_cumulative(one) is not True}
        if False in told:
            self._kept.closed.add(name)
        return True in told and name not in self._kept.closed

    def _read(self, entries: Iterable[Entry]) -> list[tuple[Labels, buckets.Histogram]]:
        read = []
        for entry in entries:
            try:
                read.append((entry.labels, buckets.read_histogram(entry.value)))
            except Unreadable:
                self._unread += 1
        return read

    def _together(
        self, read: Iterable[tuple[Labels, buckets.Histogram]], form: bool
    ) -> Mapping[Labels, buckets.Histogram]:
        """By labels; those that differ in the shard only are added up."""
        sums: dict[Labels, buckets.Histogram] = {}
        for labels, histogram in read:
            if not self._apart:
                labels = tuple(pair for pair in labels if pair[0] not in _SHARDS)
            one = buckets.cumulated(histogram, form)
            try:
                # Of one shard, what comes twice is a mistake, not a part.
                if self._apart and labels in sums:
                    raise Unreadable(labels)
                sums[labels] = sums[labels].plus(one) if labels in sums else one
            except Unreadable:
                self._unread += 1
        return sums

    def _write(
        self, family: Family, labels: Labels, one: buckets.Histogram, divisor: float
    ) -> None:
        own = self._kept.labels(labels)
        if (f"{family.name}_count", own) in self._seen:
            self._unread += 1
            return
        for index in buckets.thinned(one.bounds):
            le = self._kept.labels(labels, repr(one.bounds[index] / divisor))
            self._add(family, le, one.counts[index], "_bucket")
        self._add(family, self._kept.labels(labels, "+Inf"), one.count, "_bucket")
        self._add(family, own, one.sum / divisor, "_sum")
        self._add(family, own, one.count, "_count")

    def _family(self, source: str, shown: Shown, kind: FamilyType) -> Family:
        """The family to show in; Unreadable where another metric has its name already."""
        family = self._families.get(shown.name)
        if family is None:
            claims = list(_claims(shown.name, kind))
            if any(self._claimed.get(name, source) != source for name in claims):
                raise Unreadable(source)
            self._claimed |= dict.fromkeys(claims, source)
            family = self._families[shown.name] = Family(shown.name, kind, shown.help)
        if family.type != kind or self._claimed[shown.name] != source:
            raise Unreadable(source)
        return family

    def _add(self, family: Family, labels: LabelText, value: float, suffix: str = "") -> None:
        key = (family.name + suffix, labels)
        if key in self._seen:
            self._unread += 1
            return
        self._seen.add(key)
        family.add(labels, value, suffix)
