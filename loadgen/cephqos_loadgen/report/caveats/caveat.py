"""One caveat about a run's figures, as data, and the checks that find them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from cephqos_loadgen.report.figures.analysis import Key, ReportRun
from cephqos_loadgen.report.figures.observe import Observation

# The gravest first.
Severity = Literal["serious", "caution", "note"]


@dataclass(frozen=True, slots=True)
class Caveat:
    """One caveat: what it is, what it rests on, and the rows that it touches."""

    severity: Severity
    text: str
    evidence: str
    rows: tuple[Key, ...] = ()


Check = Callable[[ReportRun], Iterator[Caveat]]


def each_repeat(check: Callable[[Observation], Iterator[Caveat]]) -> Check:
    """A check that looks at one finished repeat. What it finds touches all rows of the point."""

    def of_run(run: ReportRun) -> Iterator[Caveat]:
        for observed in run.finished:
            rows = rows_of(run, observed.record.point)
            for caveat in check(observed):
                yield replace(caveat, rows=rows)

    return of_run


def rows_of(run: ReportRun, *points: str) -> tuple[Key, ...]:
    """The rows that a caveat about these points touches."""
    return tuple(row.key for row in run.rows if row.key.point in points)


def all_rows(run: ReportRun) -> tuple[Key, ...]:
    return tuple(row.key for row in run.rows)


def gravest_first(caveats: Iterable[Caveat]) -> list[Caveat]:
    return sorted(caveats, key=lambda caveat: get_args(Severity).index(caveat.severity))


def load_name(phase: str, depth: int | None) -> str:
    """A load, or one step of its curve."""
    return phase if depth is None else f"{phase} at depth {depth}"
