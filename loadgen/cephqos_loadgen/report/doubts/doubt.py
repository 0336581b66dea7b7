"""One doubt about a run's figures, as data."""

from dataclasses import dataclass
from typing import Literal

from cephqos_loadgen.report.figures.analysis import Key, ReportRun

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
