"""Counts what a reader of replies did not understand.

The reader leaves the figure out and adds it here; a 0 in its place would look like health.

    view.not_understood.add("class", name)

The scrape shows the count as cephqos_collector_not_understood_total{collector,what}, and logs each
kind once. Text from a daemon goes only to the log, never into a label.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

log = logging.getLogger(__name__)

# The values of the label `what`: all there are, whatever a daemon says.
What = Literal[
    "class",  # of work, in the queues
    "counter",  # missing, renamed or of another shape
    "event",  # of an operation
    "operation",  # its kind
    "option",  # missing, or with a value that has another form
    "profile",  # of mClock
    "reply",  # as a whole: another shape than any release is known to give
    "state",  # of a placement group, a scrub or a reservation
    "unit",
]

_LONGEST: Final = 200  # characters in the log
# What readers raise if a reply has another shape than expected.
MISREAD: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)

T = TypeVar("T")


class NotUnderstood:
    """What was not understood in one scrape, by kind: how often, and the first of it as text."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[What, tuple[int, str]] = {}

    def add(self, what: What, found: object, times: int = 1) -> None:
        """`found`: the part of the reply, for the log."""
        before = self.found.get(what)
        if before is None:
            text = found if isinstance(found, str) else repr(found)
            self.found[what] = times, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        else:
            self.found[what] = before[0] + times, before[1]

    def all_of(self, what: str, make: Callable[[], Iterable[T]]) -> list[T]:
        """All that `make` gives; nothing if it raises because a reply has another shape.

        That is counted. So a bad reply costs only the figures that need it. `what`: for the log.
        """
        try:
            return list(make())
        except MISREAD as exc:
            self.add("reply", f"{what}: {exc!r}")
            return []

    def each(self, what: str, rows: Iterable[Any], read: Callable[[Any], T]) -> list[T]:
        """What `read` makes of each row; a row of another shape is left out alone, and counted."""
        parts = []
        for row in rows:
            try:
                parts.append(read(row))
            except MISREAD as exc:
                self.add("reply", f"{what}: {exc!r}")
        return parts

    def include(self, other: "NotUnderstood") -> None:
        """Add what another one has. For results that are kept between scrapes: what was not
        understood when they were made counts in each scrape."""
        for what, (times, text) in other.found.items():
            before, first = self.found.get(what, (0, text))
            self.found[what] = before + times, first

    def take(self) -> Iterable[tuple[What, tuple[int, str]]]:
        """What was added since the last call."""
        taken, self.found = self.found, {}
        return taken.items()


def listed(value: Any) -> list[Any]:
    """The value if it is a list; TypeError for anything else, which might look like none."""
    if type(value) is not list:
        raise TypeError(f"{type(value).__name__} instead of a list")
    return value


@dataclass(slots=True)
class NotUnderstoodTotals:
    """The totals of a daemon or a source since the start, by collector and kind."""

    told: set[tuple[str, What]] = field(default_factory=set)  # logged already; shared by all
    totals: dict[tuple[str, What], int] = field(default_factory=dict)

    def take(self, collector: str, who: str, found: NotUnderstood) -> None:
        for what, (times, text) in found.take():
            kind = (collector, what)
            self.totals[kind] = self.totals.get(kind, 0) + times
            if kind not in self.told:
                self.told.add(kind)
                log.warning(
                    "%s: the collector %s does not understand this %s: %s; what needs it is left"
                    " out. Is this Ceph newer than this cephqos?",
                    *(who, collector, what, text),
                )

    def __iter__(self) -> Iterator[tuple[str, What, int]]:
        return ((collector, what, total) for (collector, what), total in self.totals.items())
