"""One reply of a Crimson OSD on its way into families."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cephqos_exporter.collectors.crimson import journal, osd, reactor, seastore
from cephqos_exporter.collectors.crimson.buckets import (
    Histogram,
    cumulated,
    read_histogram,
    thinned,
    told_form,
    unit_of,
)
from cephqos_exporter.collectors.crimson.classic import as_classic
from cephqos_exporter.collectors.crimson.reply import (
    Entry,
    Odd,
    fit_labels,
    fit_name,
    number,
    read_entries,
)
from cephqos_exporter.collectors.crimson.shown import PREFIX, Shown, Table
from cephqos_exporter.families import Family, FamilyType
from cephqos_exporter.labels import LabelText, extend_labels

TABLE: Final[Table] = {
    **reactor.REACTOR,
    **reactor.SCHEDULER,
    **reactor.MEMORY,
    **reactor.IO_QUEUE,
    **osd.OSD,
    **seastore.OPERATIONS,
    **seastore.CACHE,
    **journal.JOURNAL,
    **journal.CLEANER,
    **journal.TREES,
}

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


def _claims(name: str, kind: FamilyType) -> Iterable[str]:
    """Every name that a family takes, in either text format."""
    yield name
    yield name.removesuffix("_total")
    if kind in ("histogram", "summary"):
        yield from (f"{name}_{suffix}" for suffix in ("bucket", "sum", "count"))


_TAKEN: Final = frozenset(
    claim for shown in TABLE.values() for one in shown for claim in _claims(one.name, one.type)
) | {_UNREAD}


@dataclass(slots=True)
class Kept:
    """What is kept of an OSD between scrapes."""

    base: LabelText
    forms: dict[str, bool] = field(default_factory=dict)  # of histograms, once figures proved it
    _highest: dict[tuple[str, LabelText], float] = field(default_factory=dict)
    _labels: dict[tuple[object, ...], LabelText] = field(default_factory=dict)
    _texts: dict[frozenset[tuple[str, str]], LabelText] = field(default_factory=dict)
    _characters: int = 0

    def labels(self, labels: tuple[tuple[str, str], ...], extra: tuple[str, ...]) -> LabelText:
        key = (labels, extra)
        text = self._labels.get(key)
        if text is None:
            found = fit_labels(tuple(_in_our_words(labels)), extra)
            # In whatever order: the same labels are the same text.
            new = extend_labels(self.base, found)
            self._characters += len(new)
            if len(self._labels) >= _MOST_LABELS or self._characters > _MOST_CHARACTERS:
                self._labels.clear()
                self._texts.clear()
                self._characters = 0
            text = self._labels[key] = self._texts.setdefault(frozenset(found.items()), new)
        return text

    def not_below(self, name: str, labels: LabelText, value: float) -> float:
        """The highest value of a series so far."""
        if len(self._highest) >= _MOST_LABELS:
            self._highest.clear()
        key = (name, labels)
        highest = self._highest[key] = max(value, self._highest.get(key, value))
        return highest


def _in_our_words(labels: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """SeaStore calls the operation of a latency `latency`; classes are cephqos's own."""
    for key, text in labels:
        if key == "latency":
            yield "op", text.lower()
        else:
            yield key, text
            if key == "op_class":
                yield "class", osd.CLASSES.get(text, text)


@lru_cache(maxsize=4096)
def _as_it_is(name: str, kind: FamilyType) -> Sequence[Shown]:
    return (Shown(f"{PREFIX}{fit_name(name)}", kind, "As Seastar has it."),)


def _is_wanted(entry: Entry, shown: Shown) -> bool:
    """Builds without the label of `only` have only what others have under it."""
    if shown.only is None:
        return True
    labels = dict(entry.labels)
    label, value = shown.only
    other, beginning = shown.without
    return labels.get(label, value) == value and not (
        other and labels.get(other, "").startswith(beginning)
    )


class ReplyFamilies:
    """Made for one reply."""

    def __init__(self, kept: Kept, table: Table, everything: bool, apart: bool) -> None:
        self._kept = kept
        self._table = table
        self._everything = everything
        self._apart = apart
        self._families: dict[str, Family] = {}
        self._seen: set[tuple[str, LabelText]] = set()
        self._claimed: dict[str, str] = {}  # names that are taken, and the metric that took them
        self._unread = 0

    def families(self, reply: object) -> Iterable[Family]:
        found = list(read_entries(reply, lambda name: bool(self._shown(name, "unknown"))))
        entries = [entry for entry in found if entry is not None]
        self._unread += len(found) - len(entries)
        names = {entry.name for entry in entries}
        histograms: dict[str, list[Entry]] = {}
        for entry in entries:
            if isinstance(entry.value, dict):
                histograms.setdefault(entry.name, []).append(entry)
            elif entry.value is not None:  # null: a float that was not finite
                self._scalar(entry, names)
        for name, those in histograms.items():
            self._histogram(name, those)
        unread = Family(
            _UNREAD, "gauge", "Metrics of the reply that could not be read, or came twice."
        )
        unread.add(self._kept.base, self._unread)
        families = [*self._families.values(), *as_classic(entries, self._kept.base), unread]
        return [family for family in families if family.samples]

    def _shown(self, name: str, kind: FamilyType) -> Sequence[Shown]:
        shown = self._table.get(name)
        if shown is not None or not self._everything:
            return shown or ()
        return _as_it_is(name, kind)

    def _scalar(self, entry: Entry, names: Collection[str]) -> None:
        if _AT_EXIT in entry.labels and not self._everything:
            return
        for shown in self._shown(entry.name, "unknown"):
            if shown.unless and shown.unless in names:
                continue
            try:
                if shown.type in ("histogram", "summary"):
                    raise Odd(entry.value)
                value = number(entry.value)
                if shown.type == "counter" and not 0 <= value < _NEGATIVE:
                    raise Odd(value)
                value /= shown.divisor
                family = self._family(entry.name, shown)
            except Odd:
                self._unread += 1
                return
            labels = self._kept.labels(entry.labels, shown.extra)
            if shown.held:
                value = self._kept.not_below(family.name, labels, value)
            self._add(family, labels, value)

    def _histogram(self, name: str, entries: Iterable[Entry]) -> None:
        read = self._read(entries)
        form = told_form(one for _, one in read)
        if form is not None:
            self._kept.forms[name] = form
        # Until figures prove a form: SeaStore counts each bucket for itself, Seastar does not.
        form = self._kept.forms.get(name, not name.startswith(_SEASTORES))
        for shown in self._shown(name, "histogram"):
            wanted = [(entry, one) for entry, one in read if _is_wanted(entry, shown)]
            try:
                family = self._family(name, shown)
            except Odd:
                self._unread += len(wanted)
                return
            if shown.type == "counter":
                for entry, one in wanted:
                    self._add(family, self._kept.labels(entry.labels, shown.extra), one.count)
            elif shown.type == "gauge":
                for entry, one in wanted:
                    self._distribution(family, entry, one)
            else:
                divisor = shown.divisor
                if name.startswith(_SEASTORES):
                    divisor = unit_of((one for _, one in read), divisor)
                for labels, one in self._together(shown, wanted, form).items():
                    self._write(family, labels, one, shown.extra, divisor)

    def _read(self, entries: Iterable[Entry]) -> list[tuple[Entry, Histogram]]:
        read = []
        for entry in entries:
            try:
                read.append((entry, read_histogram(entry.value)))
            except Odd:
                self._unread += 1
        return read

    def _distribution(self, family: Family, entry: Entry, histogram: Histogram) -> None:
        for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
            extra = ("utilization", f"{bound:g}")
            self._add(family, self._kept.labels(entry.labels, extra), count)

    def _together(
        self, shown: Shown, read: Iterable[tuple[Entry, Histogram]], form: bool
    ) -> Mapping[tuple[tuple[str, str], ...], Histogram]:
        """By labels; those that differ in the shard only are added up."""
        apart = self._apart or shown.apart
        found: dict[tuple[tuple[str, str], ...], Histogram] = {}
        for entry, one in read:
            labels = entry.labels
            if not apart:
                labels = tuple(pair for pair in labels if pair[0] not in _SHARDS)
            one = cumulated(one, form)
            try:
                # Of one shard, what comes twice is a mistake, not a part.
                if apart and labels in found:
                    raise Odd(labels)
                found[labels] = found[labels].plus(one) if labels in found else one
            except Odd:
                self._unread += 1
        return found

    def _write(
        self,
        family: Family,
        labels: tuple[tuple[str, str], ...],
        histogram: Histogram,
        extra: tuple[str, ...],
        divisor: float,
    ) -> None:
        own = self._kept.labels(labels, extra)
        if (f"{family.name}_count", own) in self._seen:
            self._unread += 1
            return
        if family.type == "histogram":
            bounds = histogram.bounds
            # What no table knows is shown whole.
            kept = thinned(bounds) if family.name in _TAKEN else range(len(bounds))
            for index in kept:
                le = self._kept.labels(labels, ("le", repr(bounds[index] / divisor)))
                self._add(family, le, histogram.counts[index], "_bucket")
            infinite = self._kept.labels(labels, ("le", "+Inf"))
            self._add(family, infinite, histogram.count, "_bucket")
        self._add(family, own, histogram.sum / divisor, "_sum")
        self._add(family, own, histogram.count, "_count")

    def _family(self, source: str, shown: Shown) -> Family:
        """The family to show in; Odd where another metric has its name already."""
        family = self._families.get(shown.name)
        if family is not None and family.type == shown.type and self._claimed[shown.name] == source:
            return family
        if source not in TABLE:
            claims = list(_claims(shown.name, shown.type))
            if any(name in _TAKEN or self._claimed.get(name, source) != source for name in claims):
                raise Odd(source)
            self._claimed |= dict.fromkeys(claims, source)
        if family is None:
            family = self._families[shown.name] = Family(shown.name, shown.type, shown.help)
            self._claimed.setdefault(shown.name, source)
        if family.type != shown.type:
            raise Odd(source)
        return family

    def _add(self, family: Family, labels: LabelText, value: float, suffix: str = "") -> None:
        key = (family.name + suffix, labels)
        if key in self._seen:
            self._unread += 1
            return
        self._seen.add(key)
        family.add(labels, value, suffix)
