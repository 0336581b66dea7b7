"""Attained work and reservation of each class on each OSD, and why it got no more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cephqos_loadgen.record.layout import RECORDED
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.attained import WINDOW, Attained, attained_by_class
from cephqos_loadgen.report.figures.causes import causes_within
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    depth_cell,
    plain_figure,
    text,
    text_columns,
)
from cephqos_loadgen.report.words import number
from cephqos_loadgen.results.phase import LoadResult


def reservations_table(subject: Subject) -> Table:
    """What each class got on each OSD while a load ran; violated seconds add up over repeats."""
    lines = []
    evaluated = any(o.causes is not None for run in subject.runs for o in run.finished)
    curves = any(part.several_depths for r in subject.runs for o in r.finished for part in o.loads)
    for run in subject.runs:
        for steps in _by_class(run).values():
            load, one = steps[0].load, steps[0].attained
            lines.append(
                (
                    text(subject.point_label(run, load.point)),
                    text(load.phase),
                    *([depth_cell(load.depth)] if curves else []),
                    text(one.osd),
                    text(one.work),
                    *_attained_cells([step.attained for step in steps]),
                    *([_causes_cell(steps)] if evaluated else []),
                )
            )
    return Table(
        "reservations",
        "Attainment by OSD and class",
        _columns(curves, evaluated),
        tuple(lines),
        _NOTE + (_CAUSES if evaluated else _NO_CAUSES),
    )


def _columns(curves: bool, evaluated: bool) -> tuple[TableColumn, ...]:
    return (
        *text_columns("Point", "Load"),
        *([TableColumn("Depth")] if curves else []),
        *text_columns("OSD", "Class"),
        TableColumn("Reserved", "ops/s"), TableColumn("Limit", "ops/s"),
        TableColumn("Attained", "ops/s"),
        TableColumn("Attainment", "%"), TableColumn("Demand", "s"), TableColumn("Violated", "s"),
        TableColumn("Lag, most", "s"), TableColumn("Of", "s"),
        *([TableColumn("Main causes", "s", numeric=False)] if evaluated else []),
    )  # fmt: skip


_NOTE = (
    "Normalised operations, from the exporters' samples. Demand: seconds in which requests"
    " waited in the class's queue, or clients' operations waited before it or piled up in the"
    " store. Violated: of these, seconds in which it got less than 90 % of its effective"
    " reservation over 10 s, or got it later than 0.25 s. Both are sums over the repeats."
    " Without demand nothing is violated. Classes that an OSD does not report are absent, as is"
    " everything with WPQ. "
)

_CAUSES = (
    "Main causes: why a class with demand got no more, violated or not, in seconds, as the alerts'"
    " recording rules say it. Of a step of a curve they begin 10 s after its start: until then the"
    " rules see the step before."
)
_NO_CAUSES = "Causes are not evaluated: cephqos report --causes."


# A window has so many samples at least, as a rate in the rules has.
_SCRAPES = 4


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A load, or one step of a curve, in one repeat; `depth` is that of the step."""

    point: str
    phase: str
    depth: int | None
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class StepAttained:
    """What a class got on an OSD during a load or step."""

    observed: Observation
    load: LoadStep
    attained: Attained


def load_steps(observed: Observation) -> Iterator[LoadStep]:
    """Each load of a repeat; of a curve its steps instead. All phases of what an exporter recorded
    by itself: there the clients are others."""
    point = observed.record.point
    for phase, record in observed.record.phases.items():
        if point == RECORDED:
            yield LoadStep(point, phase, None, *record.worked)
        if not isinstance(record.result, LoadResult):
            continue
        if not record.result.is_curve:
            began = [step.counted_from_unix_seconds or 0.0 for step in record.result.steps]
            start = max([record.worked[0], *began])
            yield LoadStep(point, phase, None, start, record.worked[1])
            continue
        for step in record.result.steps:
            yield LoadStep(point, phase, step.depth, *step.counted)


def _by_class(run: ReportRun) -> dict[tuple[object, ...], list[StepAttained]]:
    """The same class on the same OSD in each repeat."""
    by_class: dict[tuple[object, ...], list[StepAttained]] = {}
    for observed in run.finished:
        for load in load_steps(observed):
            window = max(WINDOW, _SCRAPES * observed.record.metrics.interval_seconds)
            for one in attained_by_class(observed.samples, load.start, load.end, window):
                key = (load.point, load.phase, load.depth, one.osd, one.work)
                by_class.setdefault(key, []).append(StepAttained(observed, load, one))
    return by_class


def _causes_cell(steps: Sequence[StepAttained]) -> Cell:
    """Seconds of each cause, the most first, summed over the repeats.

    The rules look back over a window, which at the start of a step still is the step before it.
    """
    total: dict[str, float] = {}
    for one in steps:
        load = one.load
        start = load.start if load.depth is None else load.start + WINDOW
        causes = causes_within(one.observed, one.attained, start, load.end)
        for name, seconds in causes.items():
            total[name] = total.get(name, 0.0) + seconds
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {seconds:.0f}" for name, seconds in ordered)
    return Cell(words or "–", words)


def _attained_cells(repeats: Sequence[Attained]) -> list[Cell]:
    # Repeats differ in them where the capacity was measured for each.
    reservation = _average([p.reservation for p in repeats])
    limit = _average([p.limit for p in repeats])
    attained = sum(p.attained for p in repeats) / len(repeats)
    share = attained / reservation * 100 if reservation else None
    violated = [p.violated_seconds for p in repeats if p.violated_seconds is not None]
    lags = [p.lag_most_seconds for p in repeats if p.lag_most_seconds is not None]
    lost = sum(violated) if violated else None
    return [
        *(plain_figure(value) for value in (reservation, limit, attained, share)),
        plain_figure(sum(p.demand_seconds for p in repeats)),
        Cell(number(lost), lost, "worst" if lost else ""),
        plain_figure(max(lags) if lags else None),
        plain_figure(sum(p.seconds for p in repeats)),
    ]


def _average(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
