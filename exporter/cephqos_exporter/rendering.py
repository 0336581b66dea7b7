"""Turns metric families into lines that are fit for a page, whatever a daemon has said.

Everything on a page passes here. A source gives the same series at nearly every scrape. So what was
found valid is kept as a layout, and a scrape whose series are the same only fills in its numbers.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice, pairwise, repeat
from typing import Final, NamedTuple, Self

import orjson

from cephqos_exporter.model import Family, FamilyType, Sample
from cephqos_exporter.validity import (
    NEVER_BELOW_0,
    SIGNS,
    SUFFIXES,
    Seen,
    are_fit,
    is_absurd,
    labels_are_valid,
    valid_help,
    valid_name,
)

_BETWEEN: Final = "\0"  # families of a layout; no name, label or number has it


class Chunk(NamedTuple):
    """The rendered samples of one family from one source."""

    name: str
    type: FamilyType
    help: str
    lines: str


_chunk: Final[Callable[[Iterable[str]], Chunk]] = partial(tuple.__new__, Chunk)  # `_make`, quicker


class Rendered(NamedTuple):
    """What a source gave, fit for a page, and how many of its samples were not."""

    chunks: list[Chunk]
    samples: int
    left_out: int = 0
    size: int = 0  # characters


class _Shape(NamedTuple):
    """All of some families but the numbers."""

    names: Sequence[str]
    types: Sequence[FamilyType]
    helps: Sequence[str]
    lengths: Sequence[int]
    suffixes: Sequence[str]
    labels: Sequence[str]


class _Given:
    """What a source gave in one scrape: its families that have samples."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = families
        self.samples = [family.samples for family in self.families]
        self.values = [value for samples in self.samples for _, _, value in samples]
        self.numbers, self.plain = _numbers(self.values)

    def shape(self) -> _Shape:
        """All but the numbers."""
        suffixes, labels, _ = zip(*chain.from_iterable(self.samples), strict=True)
        return _Shape(
            [family.name for family in self.families],
            [family.type for family in self.families],
            [family.help for family in self.families],
            [len(samples) for samples in self.samples],
            suffixes,
            labels,
        )

    def has_no_absurd_number(self) -> bool:
        rest = iter(self.numbers)
        return all(
            _none_is_absurd(family.type, islice(rest, len(family.samples)))
            for family in self.families
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """What was found fit as a whole: its text with a place for each number."""

    shape: _Shape
    heads: tuple[Sequence[str], Sequence[FamilyType], Sequence[str]]
    series: frozenset[str]  # names with suffixes
    text: str
    histograms: Sequence[int]  # which of the families

    @classmethod
    def of(cls, shape: _Shape, chunks: Sequence[Chunk]) -> Self:
        """From what was rendered without anything left out."""
        names = [chunk.name for chunk in chunks]
        each = list(chain.from_iterable(map(repeat, names, shape.lengths)))
        lines = [
            f"{name}{suffix}{{{labels}}} ".replace("%", "%%") + "%s\n"
            if labels
            else f"{name}{suffix} %s\n"
            for name, suffix, labels in zip(each, shape.suffixes, shape.labels, strict=True)
        ]
        ends = list(accumulate(shape.lengths, initial=0))
        parts = ["".join(lines[a:b]) for a, b in pairwise(ends)]
        return cls(
            shape,
            (names, shape.types, [chunk.help for chunk in chunks]),
            frozenset(map(str.__add__, each, shape.suffixes)),
            _BETWEEN.join(parts),
            [i for i, kind in enumerate(shape.types) if kind == "histogram"],
        )

    def fill(self, given: _Given, seen: Seen) -> Rendered | None:
        """The same series with other numbers; None if they are not fit as a whole."""
        if not (given.plain or given.has_no_absurd_number()):
            return None
        if not all(_rises(given.samples[i]) for i in self.histograms):
            return None
        if not seen.are_new(self.series, self.heads[0], given.samples):
            return None
        text = self.text % tuple(given.numbers)
        lines = text.split(_BETWEEN)
        chunks = list(map(_chunk, zip(*self.heads, lines, strict=True)))
        return Rendered(chunks, len(given.values), 0, len(text) - len(lines) + 1)


class Renderer:
    """Renders what one source gives at every scrape."""

    def __init__(self) -> None:
        self._layout: _Layout | None = None

    def render(self, families: Iterable[Family], seen: Seen) -> Rendered:
        """As `render` does; `seen` has the series that are on the page already."""
        filled = [family for family in families if family.samples]
        if not filled:
            return Rendered([], 0)
        given = _Given(filled)
        shape = given.shape()
        if self._layout is not None and self._layout.shape == shape:
            rendered = self._layout.fill(given, seen)
            if rendered is not None:
                return rendered
        rendered, as_it_is = _render(given, seen)
        self._layout = _Layout.of(shape, rendered.chunks) if as_it_is else None
        return rendered


def render(families: Iterable[Family], seen: Seen | None = None) -> Rendered:
    """Chunks of the families that have samples.

    Names are made valid. A sample is left out, and counted, if its labels are not valid, if its
    value is not finite or is below 0 and counts something, or if `seen` (the series of this source
    so far) has its series already. TypeError if a value is not a number.
    """
    filled = [family for family in families if family.samples]
    if not filled:
        return Rendered([], 0)
    return _render(_Given(filled), Seen() if seen is None else seen)[0]


def _render(given: _Given, seen: Seen) -> tuple[Rendered, bool]:
    """Each family looked at by itself; whether all of it was fit and may be a layout."""
    rest = iter(given.numbers)
    chunks: list[Chunk] = []
    count = left_out = size = 0
    as_it_is = True
    for family in given.families:
        name = valid_name(family.name)
        samples: Sequence[Sample] = family.samples
        own = list(islice(rest, len(samples)))
        finite = given.plain or _none_is_absurd(family.type, own)
        if not (finite and are_fit(name, samples, seen)):
            samples, own = _fit(family, name, own, seen)
            as_it_is = False
        if family.type == "histogram" and not (
            len(samples) == len(family.samples) and _rises(samples)
        ):
            samples = []  # a part of one is none
            as_it_is = False
        if samples:
            lines = "".join(
                [
                    f"{name}{suffix}{{{labels}}} {number}\n"
                    if labels
                    else f"{name}{suffix} {number}\n"
                    for (suffix, labels, _), number in zip(samples, own, strict=True)
                ]
            )
            chunks.append(Chunk(name, family.type, valid_help(family.help), lines))
            size += len(lines)
        count += len(samples)
        left_out += len(family.samples) - len(samples)
    return Rendered(chunks, count, left_out, size), as_it_is


def _fit(
    family: Family, name: str, numbers: Sequence[str], seen: Seen
) -> tuple[list[Sample], list[str]]:
    """Those of a family's samples that are, with their numbers."""
    counts = family.type in NEVER_BELOW_0
    valid = [
        (sample, number)
        for sample, number in zip(family.samples, numbers, strict=True)
        if labels_are_valid(sample[1])
        and sample[0] in SUFFIXES
        and not (number[0] in SIGNS and is_absurd(number, counts))
    ]
    new = seen.take(name, [sample for sample, _ in valid])
    kept = [pair for pair, is_new in zip(valid, new, strict=True) if is_new]
    return [sample for sample, _ in kept], [number for _, number in kept]


def _none_is_absurd(kind: FamilyType, numbers: Iterable[str]) -> bool:
    counts = kind in NEVER_BELOW_0
    return not any(number[0] in SIGNS and is_absurd(number, counts) for number in numbers)


def _rises(samples: Sequence[Sample]) -> bool:
    """Whether no bucket has less than the one below it; +Inf ends each set of buckets."""
    before, last = 0.0, 'le="+Inf"'
    for suffix, labels, value in samples:
        if suffix == "_bucket":
            if value < before and 'le="+Inf"' not in last:
                return False
            before, last = value, labels
    return True


def _numbers(values: Sequence[float]) -> tuple[list[str], bool]:
    """Every sample's value as text, in order, and whether none of them has a sign or is no number.

    All at once and by a JSON library, because Python takes 300 ns for a float of 17 digits, more
    than for everything else about its line; this takes 30.
    """
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
