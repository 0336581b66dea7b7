"""How one of Seastar's metrics is shown. docs/internals/crimson.md says what each group is for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cephqos_exporter.families import FamilyType

PREFIX: Final = "cephqos_crimson_"

# What an option adds; the group "" is always shown.
GROUPS: Final = (
    "reactor",
    "scheduler",
    "memory",
    "io-queue",
    "cache",
    "transactions",
    "journal",
    "cleaner",
    "trees",
)

# Divisors to base units.
MILLI: Final = 1000.0
MICRO: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A family that one of Seastar's metrics goes into."""

    name: str
    type: FamilyType
    help: str
    divisor: float = 1.0
    extra: tuple[str, ...] = ()  # labels that Seastar put into the name: name, value, …
    group: str = ""
    only: tuple[str, str] | None = None  # the label and value of the series to show
    without: tuple[str, str] = ("", "")  # of those, a label and how values not shown begin
    apart: bool = True  # a histogram: False is all shards added up
    unless: str = ""  # shown where the reply lacks this metric
    held: bool = False  # a counter that falls at its source: shown at the highest it was


Table = Mapping[str, tuple[Shown, ...]]


def counter(
    name: str, text: str, *extra: str, divisor: float = 1.0, group: str = "", held: bool = False
) -> tuple[Shown, ...]:
    return (Shown(f"{PREFIX}{name}_total", "counter", text, divisor, extra, group, held=held),)


def gauge(
    name: str, text: str, *extra: str, divisor: float = 1.0, group: str = ""
) -> tuple[Shown, ...]:
    return (Shown(f"{PREFIX}{name}", "gauge", text, divisor, extra, group),)


def histogram(name: str, text: str, *, divisor: float = 1.0, group: str = "") -> tuple[Shown, ...]:
    """A histogram of the OSD: the shards' buckets have the same bounds, so they are added."""
    return (Shown(f"{PREFIX}{name}", "histogram", text, divisor, group=group, apart=False),)
