"""Metric families, and forms: the families of a daemon without their numbers.

form = Form.of([gauge_with_two_series])     once
form.fill([3, 4])                           at every scrape
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from cephqos_exporter.labels import LabelText

# No `info`: an OpenTelemetry Collector takes `_info` off the names of such families.
FamilyType = Literal["counter", "gauge", "histogram", "summary", "unknown"]

# (suffix, labels, value): `_bucket`, `_sum`, `_count` or an empty suffix.
Sample = tuple[str, LabelText, float]


@dataclass(slots=True)
class Family:
    """One metric family. Names of our counters end in `_total`; Ceph's names stay as they are."""

    name: str
    type: FamilyType
    help: str
    samples: list[Sample] = field(default_factory=list)

    def add(self, labels: LabelText, value: float, suffix: str = "") -> None:
        self.samples.append((suffix, labels, value))


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Families that come at every scrape, without their numbers.

    A collector makes it once for a daemon, and again when a series comes or goes. The writer keeps
    the text that it has rendered for a form. So a form is never changed, and equal only to itself.
    """

    families: tuple[Family, ...]  # the values of their samples mean nothing
    places: int  # samples of all families: the numbers that `fill` takes

    @classmethod
    def of(cls, families: Iterable[Family]) -> Self:
        """The form of these families. The caller must not change them any more."""
        kept = tuple(families)
        return cls(kept, sum(len(family.samples) for family in kept))

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
        values = iter(self.values)
        for family in self.form.families:
            samples = [(suffix, labels, next(values)) for suffix, labels, _ in family.samples]
            yield Family(family.name, family.type, family.help, samples)


def gauge(name: str, text: str) -> Family:
    return Family(name, "gauge", text)


def counter(name: str, text: str) -> Family:
    return Family(name, "counter", text)


def single(name: str, kind: FamilyType, text: str, labels: LabelText, value: float) -> Family:
    """A family with one sample."""
    return Family(name, kind, text, [("", labels, value)])
