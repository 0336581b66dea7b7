"""One caveat about a run's figures, as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from cephqos_loadgen.report.figures.analysis import Key, ReportRun

# The gravest first.
Severity = Literal["serious", "caution", "note"]


@dataclass(frozen=True, slots=True)
class Caveat:
    """One caveat: what it is, what it rests on, and the rows that it touches."""

    severity: Severity
    text: str
    evidence: str
    rows: tuple[Key, ...] = ()


def rows_of(run: ReportRun, *points: str) -> tuple[Key, ...]:
    """The rows that a caveat about these points touches."""
    return tuple(row.key for row in run.rows if row.key.point in points)


def gravest_first(caveats: Iterable[Caveat]) -> list[Caveat]:
    return sorted(caveats, key=lambda caveat: get_args(Severity).index(caveat.severity))


def load_name(phase: str, depth: int | None) -> str:
    """A load, or one step of its curve."""
    return phase if depth is None else f"{phase} at depth {depth}"
