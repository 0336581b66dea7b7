"""Runs against a reference: rows matched by point, differences with their interval."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.tables.of_changes import change_between

# What every comparison shows. Other figures appear when a rule names them.
SHOWN: Final = (
    *(metrics.IOPS, metrics.MEAN, metrics.P99, metrics.SCRUB_SECONDS),
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE),
)

_Rows = Mapping[tuple[object, ...], ReportRow]  # by `Key.matching`


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one row of a run, against the same of the reference."""

    row: ReportRow
    metric: FigureKind
    value: float
    reference: float
    change: ChangeInterval

    @property
    def beyond_noise(self) -> bool:
        return self.change.beyond_noise

    @property
    def regression(self) -> bool:
        """Worse than the reference, and not by noise."""
        worse = {"more": self.change.absolute < 0, "less": self.change.absolute > 0}
        return self.beyond_noise and worse.get(self.metric.better, False)


@dataclass(frozen=True, slots=True)
class LostFigure:
    """A figure of the reference that a run planned too, and does not have of all its repeats: its
    load stood still, its recovery did not end, or its repeats failed."""

    metric: FigureKind
    words: str


@dataclass(frozen=True, slots=True)
class Comparison:
    reference: ReportRun
    others: tuple[ReportRun, ...]
    differences: tuple[Difference, ...]
    unmatched: tuple[str, ...]  # rows that only some of the runs have
    lost: tuple[LostFigure, ...]


def compare(
    reference: ReportRun, others: Sequence[ReportRun], kinds: Sequence[FigureKind]
) -> Comparison:
    """Every row of each run against that of the reference, in these figures."""
    base = _rows(reference)
    differences: list[Difference] = []
    unmatched: list[str] = []
    lost: list[LostFigure] = []
    for run in others:
        rows = _rows(run)
        unmatched += [f"{run.name} lacks {row_name(base[key])}" for key in base if key not in rows]
        unmatched += [
            f"{reference.name} lacks {row_name(rows[key])}" for key in rows if key not in base
        ]
        for key, row in rows.items():
            if key in base:
                differences += _differences(row, base[key], kinds)
        lost += _lost_by(run, rows, base, kinds)
    return Comparison(reference, tuple(others), tuple(differences), tuple(unmatched), tuple(lost))


def row_name(row: ReportRow) -> str:
    """`POINT: load depth 8 reads, during scrub`."""
    key = row.key
    depth = "" if key.depth is None else f" depth {key.depth}"
    op = "" if key.op == "total" else f" {key.op}s"
    window = f", {key.window}" if key.kind == "load" else ""
    return f"{key.point}: {key.phase}{depth}{op}{window}"


def _rows(run: ReportRun) -> _Rows:
    return {row.key.matching: row for row in run.rows}


def _differences(
    row: ReportRow, base: ReportRow, kinds: Sequence[FigureKind]
) -> Iterator[Difference]:
    for metric in kinds:
        if change := change_between(row, base, metric):
            new, old = row.figures[metric.key], base.figures[metric.key]
            yield Difference(row, metric, new.value, old.value, change)


def _lost_by(
    run: ReportRun, rows: _Rows, base: _Rows, kinds: Sequence[FigureKind]
) -> Iterator[LostFigure]:
    planned = {(point, str(phase["name"])) for point, phase in run.planned_phases}
    began = {(row.key.point, row.key.phase) for row in rows.values()}
    for key, row in base.items():
        phase = (row.key.point, row.key.phase)
        # A sweep may end early, and a search chooses its depths: then other depths are no loss.
        has_other_depths = row.key.depth is not None and key not in rows and phase in began
        if row.key.window == WHOLE and phase in planned and not has_other_depths:
            yield from _lost(run.name, rows.get(key), row, kinds)


def _lost(
    run: str, row: ReportRow | None, base: ReportRow, kinds: Sequence[FigureKind]
) -> Iterator[LostFigure]:
    for metric in kinds:
        old = base.figures.get(metric.key)
        if old is None or len(old.samples) < base.repeats:
            continue
        new = row.figures.get(metric.key) if row else None
        figure = f"{metric.title} of {row_name(base)}"
        if row is None:
            yield LostFigure(metric, f"{run} lacks {row_name(base)}")
        elif new is None:
            yield LostFigure(metric, f"{run} has no {figure}")
        elif (repeats := len(new.samples)) < row.repeats:
            yield LostFigure(metric, f"{run} has {figure} in {repeats} of {row.repeats} repeats")
