"""Turns metric families into lines that are fit for a page, whatever a daemon has said.

Everything on a page passes here. A source gives the same series at nearly every scrape. So what was
found valid is kept as a layout, and a scrape whose series are the same only fills in its numbers.
No number is kept, and no line.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import itemgetter, le
from typing import Final, NamedTuple, Self

import orjson

from cephqos_exporter.families import Family, FamilyType, FilledForm, Form, Sample
from cephqos_exporter.validity import (
    COUNTED,
    NEVER_BELOW_0,
    SIGNS,
    SUFFIXES,
    Seen,
    are_fit,
    are_whole,
    is_absurd,
    labels_are_valid,
    valid_help,
    valid_name,
)

_WHOLE: Final = frozenset({int, bool})
_BETWEEN: Final = "\0"  # families of a layout; no valid name, label or number has it


class Heads(NamedTuple):
    """What families are called, what they are, and what they say of themselves."""

    names: tuple[str, ...]
    types: tuple[FamilyType, ...]
    helps: tuple[str, ...]


class Rendered(NamedTuple):
    """What a source gave, fit for a page, and how many of its samples were not."""

    heads: Heads
    lines: Sequence[str]  # of each family: all of its samples
    samples: int
    left_out: int = 0
    size: int = 0  # characters


_NOTHING: Final = Rendered(Heads((), (), ()), [], 0)


class _Numbers(NamedTuple):
    """The values of samples, and as text."""

    values: Sequence[float]
    texts: list[str]
    plain: bool  # none of them has a sign or is no number


class _Shape(NamedTuple):
    """All of some families but the numbers."""

    names: Sequence[str]
    types: Sequence[FamilyType]
    helps: Sequence[str]
    lengths: Sequence[int]
    suffixes: Sequence[str]
    labels: Sequence[str]


def _taken_apart(families: Sequence[Family]) -> tuple[_Shape, _Numbers]:
    """Families that have samples as their shape and their numbers."""
    samples = list(chain.from_iterable([family.samples for family in families]))
    shape = _Shape(
        [family.name for family in families],
        [family.type for family in families],
        [family.help for family in families],
        [len(family.samples) for family in families],
        [suffix for suffix, _, _ in samples],
        [labels for _, labels, _ in samples],
    )
    return shape, _numbers([value for _, _, value in samples])


@dataclass(frozen=True, slots=True)
class _Layout:
    """What was found fit as a whole: its text with a place for each number."""

    shape: _Shape
    heads: Heads
    series: frozenset[str]  # names with suffixes
    text: str
    # Places of buckets, and of those right above them.
    lower: Sequence[int]
    upper: Sequence[int]
    counted: Callable[[Sequence[float]], Sequence[float]]  # takes those that must be whole

    @classmethod
    def of(cls, families: Sequence[Family], shape: _Shape, heads: Heads) -> Self:
        """From what was rendered without anything left out."""
        each = list(chain.from_iterable(map(repeat, heads.names, shape.lengths)))
        lines = [
            f"{name}{suffix}{{{labels}}} ".replace("%", "%%") + "%s\n"
            if labels
            else f"{name}{suffix} %s\n"
            for name, suffix, labels in zip(each, shape.suffixes, shape.labels, strict=True)
        ]
        ends = list(accumulate(shape.lengths, initial=0))
        rising = [
            (start + one, start + above)
            for family, start in zip(families, ends, strict=False)
            if family.type == "histogram"
            for one, above in _rising(family.samples)
        ]
        return cls(
            shape,
            heads,
            frozenset(map(str.__add__, each, shape.suffixes)),
            _BETWEEN.join("".join(lines[a:b]) for a, b in pairwise(ends)),
            [one for one, _ in rising],
            [above for _, above in rising],
            _taking([i for i, suffix in enumerate(shape.suffixes) if suffix in COUNTED]),
        )

    def fill(
        self, numbers: _Numbers, samples: Sequence[Sequence[Sample]], seen: Seen
    ) -> Rendered | None:
        """The same series with other numbers; None if they are not fit as a whole."""
        values, texts, plain = numbers
        if not (plain or self._has_no_absurd_one(texts)):
            return None
        counted = self.counted(values)
        if not (_WHOLE.issuperset(map(type, counted)) or are_whole(counted)):
            return None
        if not all(map(le, [values[i] for i in self.lower], [values[i] for i in self.upper])):
            return None
        if not seen.are_new(self.series, self.heads.names, samples):
            return None
        text = self.text % tuple(texts)
        lines = text.split(_BETWEEN)
        return Rendered(self.heads, lines, len(values), 0, len(text) - len(lines) + 1)

    def _has_no_absurd_one(self, texts: Iterable[str]) -> bool:
        rest = iter(texts)
        kinds = zip(self.shape.types, self.shape.lengths, strict=True)
        return all(_none_is_absurd(kind, islice(rest, length)) for kind, length in kinds)


class Renderer:
    """Renders what one source gives at every scrape."""

    def __init__(self) -> None:
        self._layout: _Layout | None = None
        self._form: Form | None = None  # that the layout was made of, if it was
        self._samples: Sequence[Sequence[Sample]] = ()  # of the form

    def render(self, families: Iterable[Family], seen: Seen) -> Rendered:
        """As `render` does; `seen` has the series that are on the page already."""
        form = None
        if isinstance(families, FilledForm):
            rendered = self._fill(families, seen)
            if rendered is not None:
                return rendered
            form = families.form
        filled = [family for family in families if family.samples]
        if not filled:
            return _NOTHING
        rendered = self._render(filled, seen)
        if form is not None and form is not self._form:
            self._samples = [family.samples for family in form.families if family.samples]
        self._form = form
        return rendered

    def _fill(self, filled: FilledForm, seen: Seen) -> Rendered | None:
        """With the layout if it was made of the same form, and the numbers are fit as a whole."""
        if self._layout is None or filled.form is not self._form:
            return None
        return self._layout.fill(_numbers(filled.values), self._samples, seen)

    def _render(self, families: Sequence[Family], seen: Seen) -> Rendered:
        """With the layout if it fits, else with a new one."""
        shape, numbers = _taken_apart(families)
        if self._layout is not None and self._layout.shape == shape:
            samples = [family.samples for family in families]
            rendered = self._layout.fill(numbers, samples, seen)
            if rendered is not None:
                return rendered
        rendered, as_it_is = _render(families, numbers, seen)
        self._layout = _Layout.of(families, shape, rendered.heads) if as_it_is else None
        return rendered


def render(families: Iterable[Family], seen: Seen | None = None) -> Rendered:
    """The lines of the families that have samples.

    Names are made valid. A sample is left out, and counted, if its labels are not valid, if its
    value is not finite or is below 0 and counts something, or if `seen` (the series of this source
    so far) has its series already. TypeError if a value is not a number.
    """
    filled = [family for family in families if family.samples]
    if not filled:
        return _NOTHING
    numbers = _numbers([value for family in filled for _, _, value in family.samples])
    return _render(filled, numbers, Seen() if seen is None else seen)[0]


def _render(families: Sequence[Family], numbers: _Numbers, seen: Seen) -> tuple[Rendered, bool]:
    """Each family looked at by itself; whether all of it was fit and may be a layout."""
    rest = iter(numbers.texts)
    heads: list[tuple[str, FamilyType, str]] = []
    lines: list[str] = []
    count = left_out = 0
    as_it_is = True
    for family in families:
        name = valid_name(family.name)
        samples: Sequence[Sample] = family.samples
        own = list(islice(rest, len(samples)))
        finite = numbers.plain or _none_is_absurd(family.type, own)
        whole = are_whole(value for suffix, _, value in samples if suffix in COUNTED)
        if not (finite and whole and are_fit(name, samples, seen)):
            samples, own = _fit(family, name, own, seen)
            as_it_is = False
        if family.type == "histogram" and not (
            len(samples) == len(family.samples) and _rises(samples)
        ):
            samples = []  # a part of one is none
            as_it_is = False
        if samples:
            heads.append((name, family.type, valid_help(family.help)))
            lines.append(_lines(name, samples, own))
        count += len(samples)
        left_out += len(family.samples) - len(samples)
    size = sum(map(len, lines))
    return Rendered(_heads(heads), lines, count, left_out, size), as_it_is


def _taking(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    """A function that takes the values at these places; a tenth of what a loop takes for it."""
    return itemgetter(*places, places[0]) if places else lambda _: ()


def _heads(heads: Sequence[tuple[str, FamilyType, str]]) -> Heads:
    return Heads(
        tuple(name for name, _, _ in heads),
        tuple(kind for _, kind, _ in heads),
        tuple(text for _, _, text in heads),
    )


def _lines(name: str, samples: Sequence[Sample], numbers: Sequence[str]) -> str:
    return "".join(
        [
            f"{name}{suffix}{{{labels}}} {number}\n" if labels else f"{name}{suffix} {number}\n"
            for (suffix, labels, _), number in zip(samples, numbers, strict=True)
        ]
    )


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
        and (sample[0] not in COUNTED or are_whole(sample[2:]))
    ]
    new = seen.take(name, [sample for sample, _ in valid])
    kept = [pair for pair, is_new in zip(valid, new, strict=True) if is_new]
    return [sample for sample, _ in kept], [number for _, number in kept]


def _none_is_absurd(kind: FamilyType, numbers: Iterable[str]) -> bool:
    counts = kind in NEVER_BELOW_0
    return not any(number[0] in SIGNS and is_absurd(number, counts) for number in numbers)


def _rising(samples: Sequence[Sample]) -> list[tuple[int, int]]:
    """Which samples are buckets, and which the buckets right above; +Inf ends each set of them."""
    buckets = [place for place, (suffix, _, _) in enumerate(samples) if suffix == "_bucket"]
    return [(a, b) for a, b in pairwise(buckets) if 'le="+Inf"' not in samples[a][1]]


def _rises(samples: Sequence[Sample]) -> bool:
    """Whether no bucket has less than the one below it."""
    return all(samples[one][2] <= samples[above][2] for one, above in _rising(samples))


def _numbers(values: Sequence[float]) -> _Numbers:
    """Every sample's value as text.

    All at once and by a JSON library, because Python takes 300 ns for a float of 17 digits, more
    than for everything else about its line; this takes 30.
    """
    try:
        written = orjson.dumps(values, default=_refuse)[1:-1]
    except TypeError:  # integers of more than 64 bits, or no numbers
        return _Numbers(values, [number_text(value) for value in values], False)
    if written.translate(None, b"0123456789,.eE+-"):  # not numbers alone
        return _Numbers(values, [number_text(value) for value in values], False)
    signed = written.startswith(b"-") or b",-" in written
    return _Numbers(values, written.decode().split(","), not signed)


def _refuse(value: object) -> str:
    raise TypeError(f"{type(value).__name__} instead of a number")


def number_text(value: object) -> str:
    """Exactly, as both formats write it."""
    if not isinstance(value, int | float):
        return _refuse(value)
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return "+Inf" if value > 0 else "-Inf"
    if not finite:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(+value)  # the sign makes a number of True
