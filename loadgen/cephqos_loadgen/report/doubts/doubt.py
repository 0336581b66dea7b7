"""One doubt about a run's figures, as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from cephqos_loadgen.report.figures.analysis import Key, ReportRun

# The gravest first.
Severity = Literal["serious", "caution", "note"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """One doubt: what it is, what it rests on, and the rows that it touches."""

    severity: Severity
    text: str
    evidence: str
    rows: tuple[Key, ...] = ()


def rows_of(run: ReportRun, *points: str) -> tuple[Key, ...]:
    """The rows that a doubt about these points touches."""
    return tuple(row.key for row in run.rows if row.key.point in points)


def gravest_first(found: Iterable[Doubt]) -> list[Doubt]:
    return sorted(found, key=lambda doubt: get_args(Severity).index(doubt.severity))


def load_name(phase: str, depth: int | None) -> str:
    """A load, or one step of its curve."""
    return phase if depth is None else f"{phase} at depth {depth}"
