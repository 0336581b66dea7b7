"""Runs against a reference: rows matched by point, differences with their interval."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cephqos_loadgen.report.arrays.statistics import ChangeInterval, holm
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
    # A depth that stays the same: latency is depth / IOPS, so the two are one measurement.
    follows_iops: bool = False
    beyond_chance: bool = False  # also among all figures that are judged together

    @property
    def regression(self) -> bool:
        """Worse than the reference, and not by chance among all figures."""
        worse = {"more": self.change.absolute < 0, "less": self.change.absolute > 0}
        return self.beyond_chance and worse.get(self.metric.better, False)


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
                differences += _differences(run.plan, row, base[key], kinds)
        lost += _lost_by(run, rows, base, kinds)
    found = tuple(judged_together(differences))
    return Comparison(reference, tuple(others), found, tuple(unmatched), tuple(lost))


def judged_together(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences; those that stand among all of them are beyond chance. The mean latency
    of a closed loop is judged with its IOPS and is not counted again."""
    counted = [d for d in differences if d.change.chance is not None and not d.follows_iops]
    stand = holm([d.change.chance or 0.0 for d in counted])
    sure = {(d.row.key, d.metric.key) for d, stands in zip(counted, stand, strict=True) if stands}
    return [
        replace(
            d,
            beyond_chance=d.change.beyond_noise
            and (d.row.key, metrics.IOPS.key if d.follows_iops else d.metric.key) in sure,
        )
        for d in differences
    ]


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
    plan: Mapping[str, Any], row: ReportRow, base: ReportRow, kinds: Sequence[FigureKind]
) -> Iterator[Difference]:
    for metric in kinds:
        if change := change_between(row, base, metric):
            new, old = row.figures[metric.key], base.figures[metric.key]
            follows = metric == metrics.MEAN and metrics.IOPS in kinds and is_closed_loop(plan, row)
            yield Difference(row, metric, new.value, old.value, change, follows)


def is_closed_loop(plan: Mapping[str, Any], row: ReportRow) -> bool:
    """Whether a load keeps as many operations in flight as it can, all the time."""
    for point in plan.get("points", []):
        for phase in point.get("phases", []):
            if (point["name"], phase["name"]) == (row.key.point, row.key.phase):
                action = phase["action"]
                paced = {"rate", "thinktime"} & set(dict(action.get("options") or ()))
                return not (action.get("rate_iops") or paced)
    return False


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
