"""Metric families, and forms: families that come at every scrape, all but their numbers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from cephqos_exporter.labels import LabelText

FamilyType = Literal["counter", "gauge", "histogram", "summary", "info", "unknown"]

# (suffix, labels, value): `_bucket`, `_sum`, `_count` or an empty suffix.
Sample = tuple[str, LabelText, float]


@dataclass(slots=True)
class Family:
    """One metric family. A counter of ours carries its `_total` in the name; Ceph's names stay."""

    name: str
    type: FamilyType
    help: str
    samples: list[Sample] = field(default_factory=list)

    def add(self, labels: LabelText, value: float, suffix: str = "") -> None:
        self.samples.append((suffix, labels, value))


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Families that come at every scrape, all of them but their numbers.

    A collector makes it once for a daemon, and again when a series comes or goes. What is written
    of it once needs no second look: so one form is never changed, and is only like itself.
    """

    families: tuple[Family, ...]  # the values of their samples mean nothing
    places: int

    @classmethod
    def of(cls, families: Iterable[Family]) -> Self:
        """The form of families that the caller gives away."""
        own = tuple(families)
        return cls(own, sum(len(family.samples) for family in own))

    def fill(self, values: Sequence[float]) -> "FilledForm":
        """The families with the numbers of a scrape, in the order of their samples."""
        if len(values) != self.places:
            raise ValueError(f"{len(values)} numbers for {self.places} places")
        return FilledForm(self, values)


@dataclass(frozen=True, slots=True, eq=False)
class FilledForm:
    """The families of a form with the numbers of one scrape: `Form.fill` makes it."""

    form: Form
    values: Sequence[float]

    def __iter__(self) -> Iterator[Family]:
        rest = iter(self.values)
        for one in self.form.families:
            samples = [(s, labels, next(rest)) for s, labels, _ in one.samples]
            yield Family(one.name, one.type, one.help, samples)


def gauge(name: str, text: str) -> Family:
    return Family(name, "gauge", text)


def counter(name: str, text: str) -> Family:
    return Family(name, "counter", text)


def single(name: str, kind: FamilyType, text: str, labels: LabelText, value: float) -> Family:
    """A family with one sample."""
    return Family(name, kind, text, [("", labels, value)])
