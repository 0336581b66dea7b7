"""Makes families of one reply of a Crimson OSD: `ReplyFamilies(...).families(reply)`.

What cannot be read or comes twice is left out, and counted in cephqos_crimson_metrics_unread.
"""

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
    number,
    read_entries,
    usable_labels,
)
from cephqos_exporter.families import Family, FamilyType, gauge
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.not_understood import NotUnderstood

_UNREAD: Final = f"{PREFIX}metrics_unread"
_SHARDS: Final = frozenset({"shard", "shard_store_index"})
_SEASTORES: Final = ("seastore_", "segment_")
# The scheduling group of what runs when the daemon ends: always 0 before.
_AT_EXIT: Final = ("group", "atexit")
# Counters from here on are negative numbers, printed without a sign.
_NEGATIVE: Final = 2.0**63
# Bounds of what is kept from scrape to scrape: a daemon may make new labels each time.
_MOST_LABELS: Final = 100_000
_MOST_CHARACTERS: Final = 16 << 20
# Crimson's classes, and ours. Replica writes (repop) are immediate wherever cephqos shows them.
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


# Names that are taken, and Seastar's name of the metric that has them.
_CLAIMED: Final = {_UNREAD: ""} | {
    claim: source for source, shown in TABLE.items() for claim in _claims(shown.name, shown.type)
}


@dataclass(slots=True)
class CrimsonOsd:
    """What is kept of an OSD between scrapes. Histograms: see buckets.py for their forms."""

    base: LabelText
    # By metric, once its figures have proved the form.
    cumulative: dict[str, bool] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)  # metrics whose last bucket is not open
    _highest: dict[tuple[str, LabelText], float] = field(default_factory=dict)  # by series
    _labels: dict[tuple[Labels, str], LabelText] = field(default_factory=dict)
    _texts: dict[frozenset[tuple[str, str]], LabelText] = field(default_factory=dict)
    _characters: int = 0  # in the texts

    def labels(self, labels: Labels, le: str = "") -> LabelText:
        """The rendered labels, rendered once."""
        text = self._labels.get((labels, le))
        if text is None:
            usable = usable_labels(tuple(_with_our_class(labels)), ("le", le) if le else ())
            new = extend_labels(self.base, usable)
            self._characters += len(new)
            if len(self._labels) >= _MOST_LABELS or self._characters > _MOST_CHARACTERS:
                self._labels.clear()
                self._texts.clear()
                self._characters = 0
            # The same labels in another order get the same text.
            text = self._texts.setdefault(frozenset(usable.items()), new)
            self._labels[labels, le] = text
        return text

    def not_below(self, name: str, labels: LabelText, value: float) -> float:
        """The highest value of a series so far: for counters that fall at their source."""
        if len(self._highest) >= _MOST_LABELS:
            self._highest.clear()
        key = (name, labels)
        highest = self._highest[key] = max(value, self._highest.get(key, value))
        return highest


def _with_our_class(labels: Labels) -> Iterable[tuple[str, str]]:
    """Crimson's label `op_class`, and our label `class` behind it."""
    for key, text in labels:
        yield key, text
        if key == "op_class" and text in _CLASSES:
            yield "class", _CLASSES[text]


class ReplyFamilies:
    """The families of one reply. `by_shard`: histograms of each shard, not of the whole OSD."""

    def __init__(
        self,
        osd: CrimsonOsd,
        wanted: Callable[[str], bool],
        not_understood: NotUnderstood,
        *,
        by_shard: bool,
    ) -> None:
        self._osd = osd
        self._not_understood = not_understood
        self._wanted = wanted
        self._by_shard = by_shard
        self._families: dict[str, Family] = {}
        self._series: set[tuple[str, LabelText]] = set()  # that are added already
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
        for name, entries_of_metric in histograms.items():
            self._histogram(name, entries_of_metric)
        for entry in entries:
            # None: a float that was not finite
            if entry.value is not None and not isinstance(entry.value, dict):
                self._scalar(entry)
        unread = gauge(_UNREAD, "Metrics of the reply that could not be read, or came twice.")
        unread.add(self._osd.base, self._unread)
        if self._unread:
            self._not_understood.add("counter", _UNREAD, self._unread)
        families = [*self._families.values(), *as_classic(entries, self._osd.base), unread]
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
        labels = self._osd.labels(entry.labels)
        if shown.held:
            value = self._osd.not_below(family.name, labels, value)
        self._add(family, labels, value)

    def _histogram(self, name: str, entries: Iterable[Entry]) -> None:
        read = self._read(entries)
        proof = buckets.are_cumulative(histogram for _, histogram in read)
        if proof is not None:
            self._osd.cumulative[name] = proof
        if not self._wanted(name):
            return
        # Until figures prove it: those of SeaStore are separate, Seastar's own are cumulative.
        cumulative = self._osd.cumulative.get(name, not name.startswith(_SEASTORES))
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
            divisor = buckets.unit_of((histogram for _, histogram in read), divisor)
        # The last bucket of STAGES is known to be closed.
        may_be_open = not cumulative and name != STAGES
        if may_be_open and self._is_open(name, [histogram for _, histogram in read]):
            read = [(labels, buckets.without_last(histogram)) for labels, histogram in read]
        for labels, histogram in self._sums(read, cumulative=cumulative).items():
            self._write(family, labels, histogram, divisor)

    def _is_open(self, name: str, histograms: Iterable[buckets.Histogram]) -> bool:
        """Whether the last bucket of the metric may hold samples beyond its bound."""
        separate = [one for one in histograms if buckets.is_cumulative(one) is not True]
        proofs = set(map(buckets.may_be_open, separate))
        if False in proofs:
            self._osd.closed.add(name)
        return True in proofs and name not in self._osd.closed

    def _read(self, entries: Iterable[Entry]) -> list[tuple[Labels, buckets.Histogram]]:
        read = []
        for entry in entries:
            try:
                read.append((entry.labels, buckets.read_histogram(entry.value)))
            except Unreadable:
                self._unread += 1
        return read

    def _sums(
        self, read: Iterable[tuple[Labels, buckets.Histogram]], *, cumulative: bool
    ) -> Mapping[Labels, buckets.Histogram]:
        """Histograms by labels, with cumulative buckets; added up over the shards of an OSD."""
        sums: dict[Labels, buckets.Histogram] = {}
        for labels, histogram in read:
            if not self._by_shard:
                labels = tuple(pair for pair in labels if pair[0] not in _SHARDS)
            histogram = buckets.cumulated(histogram, cumulative=cumulative)
            try:
                # Where shards are not added up, the same labels twice are a mistake.
                if self._by_shard and labels in sums:
                    raise Unreadable(labels)
                sums[labels] = sums[labels].plus(histogram) if labels in sums else histogram
            except Unreadable:
                self._unread += 1
        return sums

    def _write(
        self, family: Family, labels: Labels, histogram: buckets.Histogram, divisor: float
    ) -> None:
        text = self._osd.labels(labels)
        if (f"{family.name}_count", text) in self._series:
            self._unread += 1
            return
        for index in buckets.thinned(histogram.bounds):
            with_le = self._osd.labels(labels, repr(histogram.bounds[index] / divisor))
            self._add(family, with_le, histogram.counts[index], "_bucket")
        self._add(family, self._osd.labels(labels, "+Inf"), histogram.count, "_bucket")
        self._add(family, text, histogram.sum / divisor, "_sum")
        self._add(family, text, histogram.count, "_count")

    def _family(self, source: str, shown: Shown, kind: FamilyType) -> Family:
        """The family that shows the metric; Unreadable if another metric has its name already."""
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
        if key in self._series:
            self._unread += 1
            return
        self._series.add(key)
        family.add(labels, value, suffix)
