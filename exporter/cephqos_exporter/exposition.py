"""Writes metric families in the text format 0.0.4 and in OpenMetrics 1.0.

The sample lines of the two formats are the same bytes; only the headers differ. So a page keeps
rendered lines, each written once however many formats are asked for, and drops the samples early.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import orjson

from cephqos_exporter.model import Family, FamilyType, Sample

TEXT_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TEXT_TYPES: Final[dict[FamilyType, str]] = {"unknown": "untyped", "info": "gauge"}


class Chunk(NamedTuple):
    """The rendered samples of one family from one source."""

    name: str
    type: FamilyType
    help: str
    lines: str


class Rendered(NamedTuple):
    """What a source gave, fit for a page, and how many of its samples were not."""

    chunks: list[Chunk]
    samples: int
    left_out: int = 0
    size: int = 0  # characters


# What was found valid. Most comes again at every scrape, as the same objects: looking one up costs
# 40 ns.
_valid_names: set[str] = set()
_valid_labels: set[str] = {""}
_VALID_AT_MOST: Final = 1_000_000  # then they begin anew: daemons came and went for years

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_:]")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\\n]|\\["\\n])*"(?:,|\Z)')
_LONGEST_NAME: Final = 300
_LONGEST_LABELS: Final = 4096
_LONGEST_HELP: Final = 2000
_SUFFIXES: Final = frozenset({"", "_bucket", "_sum", "_count"})


class Seen:
    """The series of one source so far. Only where a name comes again are they looked at."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._later: list[tuple[str, Sequence[Sample]]] = []
        self._keys: set[str] = set()

    def is_new(self, name: str, suffixes: Iterable[str], samples: Sequence[Sample]) -> bool:
        """Whether no series of these names was there; they are from now on."""
        names = {name + suffix for suffix in suffixes}
        if not self._names.isdisjoint(names):
            return False
        self._names |= names
        self._later.append((name, samples))
        return True

    def take(self, name: str, samples: Sequence[Sample]) -> list[bool]:
        """For each sample, whether its series was not there before."""
        for known, earlier in self._later:
            self._keys.update(_key(known, *sample) for sample in earlier)
        self._later.clear()
        self._names.update(name + suffix for suffix, _, _ in samples)
        found = []
        for sample in samples:
            key = _key(name, *sample)
            found.append(key not in self._keys)
            self._keys.add(key)
        return found


def _key(name: str, suffix: str, labels: str, _: float) -> str:
    return f"{name}{suffix}{{{labels}}}"


def render(families: Iterable[Family], seen: Seen | None = None) -> Rendered:
    """Chunks of the families that have samples, fit for a page whatever a daemon has said.

    Everything on a page passes here. Names are made valid. A sample is left out, and counted, if
    its labels are not valid, if its value is not finite or is below 0 and counts something, or if
    `seen` (the series of this source so far) has its series already. TypeError if a value is not a
    number.
    """
    filled = [family for family in families if family.samples]
    numbers, plain = _numbers(filled)
    rest = iter(numbers)
    seen = Seen() if seen is None else seen
    chunks: list[Chunk] = []
    count = left_out = size = 0
    for family in filled:
        name = family.name if family.name in _valid_names else _valid_name(family.name)
        own = list(islice(rest, len(family.samples)))
        samples: Sequence[Sample] = family.samples
        without_sign = plain or _SIGNS.isdisjoint(number[0] for number in own)
        if not (without_sign and _are_fit(name, samples, seen)):
            samples, own = _fit(family, name, own, seen)
        if family.type == "histogram" and not (
            len(samples) == len(family.samples) and _rises(samples)
        ):
            samples = []  # a part of one is none
        if samples:
            lines = "".join(
                [
                    f"{name}{suffix}{{{labels}}} {number}\n"
                    if labels
                    else f"{name}{suffix} {number}\n"
                    for (suffix, labels, _), number in zip(samples, own, strict=True)
                ]
            )
            chunks.append(Chunk(name, family.type, _valid_help(family.help), lines))
            size += len(lines)
        count += len(samples)
        left_out += len(family.samples) - len(samples)
    return Rendered(chunks, count, left_out, size)


def _are_fit(name: str, samples: Sequence[Sample], seen: Seen) -> bool:
    """Whether all of them are valid and new: nearly always, and told without a look at each."""
    labels = [sample[1] for sample in samples]
    suffixes = {sample[0] for sample in samples}
    if not (_valid_labels.issuperset(labels) and suffixes <= _SUFFIXES):
        return False
    for suffix in suffixes:
        of_it = labels if len(suffixes) == 1 else [it[1] for it in samples if it[0] == suffix]
        if len(set(of_it)) != len(of_it):
            return False
    return seen.is_new(name, suffixes, samples)


def _fit(
    family: Family, name: str, numbers: Sequence[str], seen: Seen
) -> tuple[list[Sample], list[str]]:
    """Those of a family's samples that are, with their numbers."""
    counts = family.type in _NEVER_BELOW_0
    valid = [
        (sample, number)
        for sample, number in zip(family.samples, numbers, strict=True)
        if (sample[1] in _valid_labels or _are_valid(sample[1]))
        and sample[0] in _SUFFIXES
        and not (number[0] in _SIGNS and _is_absurd(number, counts))
    ]
    new = seen.take(name, [sample for sample, _ in valid])
    kept = [pair for pair, is_new in zip(valid, new, strict=True) if is_new]
    return [sample for sample, _ in kept], [number for _, number in kept]


def _rises(samples: Sequence[Sample]) -> bool:
    """Whether no bucket has less than the one below it; +Inf ends each set of buckets."""
    before, last = 0.0, 'le="+Inf"'
    for suffix, labels, value in samples:
        if suffix == "_bucket":
            if value < before and 'le="+Inf"' not in last:
                return False
            before, last = value, labels
    return True


def _valid_name(name: object) -> str:
    """A metric's name with what no name may have replaced."""
    if not isinstance(name, str):
        raise TypeError(f"{type(name).__name__} instead of a metric's name")
    fit = name if _NAME.fullmatch(name) else _UNSAFE.sub("_", name)
    if not fit or fit[0].isdecimal():
        fit = f"_{fit}"
    return _remember(fit[:_LONGEST_NAME], _valid_names)


def _are_valid(labels: str) -> bool:
    """Whether rendered labels are what both formats allow, each name once."""
    if len(labels) > _LONGEST_LABELS or labels[-1] == ",":
        return False
    names: list[str] = []
    at = 0
    while at < len(labels):
        label = _LABEL.match(labels, at)
        if label is None:
            return False
        names.append(label[1])
        at = label.end()
        if label[1].startswith("__"):  # Prometheus' own: __name__ would be another metric
            return False
    if len(set(names)) != len(names) or not _is_text(labels):
        return False
    _remember(labels, _valid_labels)
    return True


def _remember(text: str, known: set[str]) -> str:
    if len(known) >= _VALID_AT_MOST:
        known.clear()
    known.add(text)
    return text


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: file names and JSON may bring half characters."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _valid_help(text: object) -> str:
    if not isinstance(text, str):
        return "No description."
    if len(text) > _LONGEST_HELP:
        text = text[:_LONGEST_HELP]
    return text if text.isascii() else text.encode(errors="replace").decode()


_NEVER_BELOW_0: Final[frozenset[FamilyType]] = frozenset({"counter", "histogram", "summary"})
_SIGNS: Final = frozenset("-+N")


def _is_absurd(number: str, counts: bool) -> bool:
    """Whether a number that begins with a sign or an N says nothing: NaN, Inf, a count below 0."""
    if number[0] != "-":
        return True
    return number == "-Inf" or (counts and number not in ("-0", "-0.0"))


def _numbers(families: Sequence[Family]) -> tuple[list[str], bool]:
    """Every sample's value as text, in order, and whether none of them has a sign or is no number.

    All at once and by a JSON library, because Python takes 300 ns for a float of 17 digits, more
    than for everything else about its line; this takes 30.
    """
    values = [value for family in families for _, _, value in family.samples]
    if not values:
        return [], True
    try:
        written = orjson.dumps(values, default=_refuse)[1:-1]
    except TypeError:  # integers of more than 64 bits, or no numbers
        return [_number(value) for value in values], False
    if written.translate(None, b"0123456789,.eE+-"):  # not numbers alone
        return [_number(value) for value in values], False
    signed = written.startswith(b"-") or b",-" in written
    return written.decode().split(","), not signed


def _refuse(value: object) -> str:
    raise TypeError(f"{type(value).__name__} instead of a number")


def _number(value: object) -> str:
    if not isinstance(value, int | float):
        return _refuse(value)
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return "+Inf" if value > 0 else "-Inf"
    if not finite:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(+value)  # the sign makes a number of True


@dataclass(slots=True)
class _Block:
    type: FamilyType
    help: str
    chunks: list[str] = field(default_factory=list)


class Page:
    """What one scrape has to say; the order of families is that of their names."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}
        self._bodies: dict[bool, bytes] = {}

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add rendered families. The first source of a family says its type and help."""
        blocks = self._blocks
        for name, kind, text, lines in chunks:
            block = blocks.get(name)
            if block is None:
                block = blocks[name] = _Block(kind, text)
            block.chunks.append(lines)

    def add_families(self, families: Iterable[Family]) -> None:
        self.add(render(families).chunks)

    def body(self, *, openmetrics: bool) -> bytes:
        """The page in one format; written once, however many ask."""
        if openmetrics not in self._bodies:
            self._bodies[openmetrics] = self._write(openmetrics).encode()
        return self._bodies[openmetrics]

    def _write(self, openmetrics: bool) -> str:
        head = _openmetrics_head if openmetrics else _text_head
        parts: list[str] = []
        for name in sorted(self._blocks):
            block = self._blocks[name]
            parts.append(head(name, block.type, block.help))
            parts += block.chunks
        if openmetrics:
            parts.append("# EOF\n")
        return "".join(parts)


def _text_head(name: str, kind: FamilyType, text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {_TEXT_TYPES.get(kind, kind)}\n"


def _openmetrics_head(name: str, kind: FamilyType, text: str) -> str:
    """A counter's samples must end in `_total` there; one that does not is of unknown type."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    if kind == "counter":
        if name.endswith("_total"):
            name = name.removesuffix("_total")
        else:
            kind = "unknown"
    elif kind == "info":
        name = name.removesuffix("_info")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
