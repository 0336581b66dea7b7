"""Attained work and reservation of each class on each OSD, and why it got no more."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.attained import WINDOW, Attained, attained_by_class
from cephqos_loadgen.report.figures.causes import causes_within
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    ColumnOf,
    Table,
    TableColumn,
    depth_cell,
    plain_figure,
    table_of,
    text,
)
from cephqos_loadgen.report.words import number
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.run_recording.layout import RECORDED


def reservations_table(subject: Subject) -> Table:
    """What each class got on each OSD while a load ran; violated seconds add up over repeats."""
    finished = [observed for run in subject.runs for observed in run.finished]
    evaluated = any(observed.causes is not None for observed in finished)
    curves = any(part.several_depths for observed in finished for part in observed.loads)
    columns: list[ColumnOf[_ClassRow]] = [
        (TableColumn("Point", numeric=False), lambda row: text(row.label)),
        (TableColumn("Load", numeric=False), lambda row: text(row.load.phase)),
        *([(TableColumn("Depth"), lambda row: depth_cell(row.load.depth))] if curves else []),
        (TableColumn("OSD", numeric=False), lambda row: text(row.repeats[0].osd)),
        (TableColumn("Class", numeric=False), lambda row: text(row.repeats[0].work)),
        (TableColumn("Reserved", "ops/s"), lambda row: plain_figure(row.reserved)),
        (TableColumn("Limit", "ops/s"), _limit),
        (TableColumn("Attained", "ops/s"), lambda row: plain_figure(row.attained)),
        (TableColumn("Attainment", "%"), _attainment),
        (TableColumn("Demand", "s"), _demand),
        (TableColumn("Violated", "s"), _violated),
        (TableColumn("Lag, most", "s"), _lag),
        (TableColumn("Of", "s"), lambda row: plain_figure(sum(r.seconds for r in row.repeats))),
        *([(TableColumn("Main causes", "s", numeric=False), _main_causes)] if evaluated else []),
    ]
    rows = [row for run in subject.runs for row in _by_class(subject, run)]
    note = _NOTE + (_CAUSES if evaluated else _NO_CAUSES)
    return table_of("reservations", "Attainment by OSD and class", rows, columns, note)


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


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A load, or one step of a curve, in one repeat; `depth` is that of the step."""

    point: str
    phase: str
    depth: int | None
    start: float
    end: float


def load_steps(observed: Observation) -> Iterator[LoadStep]:
    """Each load of a repeat, or the steps of a curve. In what an exporter recorded by itself every
    phase is one: the clients there are the cluster's own, not those of a phase."""
    point = observed.record.point
    for phase, record in observed.record.phases.items():
        if point == RECORDED:
            yield LoadStep(point, phase, None, *record.worked)
        if not isinstance(record.result, LoadResult):
            continue
        if not record.result.is_curve:
            after_ramp = [step.counted_from_unix_seconds or 0.0 for step in record.result.steps]
            start = max([record.worked[0], *after_ramp])
            yield LoadStep(point, phase, None, start, record.worked[1])
            continue
        for step in record.result.steps:
            yield LoadStep(point, phase, step.depth, *step.counted)


# A window has this many scrapes at least, as a rate in the rules has.
_SCRAPES_IN_WINDOW = 4


@dataclass(frozen=True, slots=True)
class _ClassRow:
    """What a class got on an OSD during a load or step, in each repeat."""

    label: str  # of the point
    load: LoadStep  # in the first repeat
    repeats: list[Attained] = field(default_factory=list)
    # for each of `repeats`: what it was taken from, and when the load ran there
    observed: list[tuple[Observation, LoadStep]] = field(default_factory=list)

    @property
    def reserved(self) -> float | None:
        # Repeats differ where the capacity was measured for each.
        return _average([repeat.reservation for repeat in self.repeats])

    @property
    def attained(self) -> float:
        return sum(repeat.attained for repeat in self.repeats) / len(self.repeats)


def _by_class(subject: Subject, run: ReportRun) -> Iterable[_ClassRow]:
    """A row for each class on each OSD in each load or step."""
    rows: dict[tuple[object, ...], _ClassRow] = {}
    for observed in run.finished:
        for load in load_steps(observed):
            interval = observed.record.metrics.interval_seconds
            window = max(WINDOW, _SCRAPES_IN_WINDOW * interval)
            for attained in attained_by_class(observed.samples, load.start, load.end, window):
                key = (load.point, load.phase, load.depth, attained.osd, attained.work)
                row = rows.setdefault(key, _ClassRow(subject.point_label(run, load.point), load))
                row.repeats.append(attained)
                row.observed.append((observed, load))
    return rows.values()


def _limit(row: _ClassRow) -> Cell:
    return plain_figure(_average([repeat.limit for repeat in row.repeats]))


def _attainment(row: _ClassRow) -> Cell:
    return plain_figure(row.attained / row.reserved * 100 if row.reserved else None)


def _demand(row: _ClassRow) -> Cell:
    return plain_figure(sum(repeat.demand_seconds for repeat in row.repeats))


def _violated(row: _ClassRow) -> Cell:
    seconds = _known([repeat.violated_seconds for repeat in row.repeats])
    total = sum(seconds) if seconds else None
    return Cell(number(total), total, "worst" if total else "")


def _lag(row: _ClassRow) -> Cell:
    lags = _known([repeat.lag_most_seconds for repeat in row.repeats])
    return plain_figure(max(lags, default=None))


def _main_causes(row: _ClassRow) -> Cell:
    """Seconds of each cause, the most first, summed over the repeats.

    The rules look back over a window, which at the start of a step still is the step before it.
    """
    total: dict[str, float] = defaultdict(float)
    for (observed, load), attained in zip(row.observed, row.repeats, strict=True):
        start = load.start if load.depth is None else load.start + WINDOW
        for name, seconds in causes_within(observed, attained, start, load.end).items():
            total[name] += seconds
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {seconds:.0f}" for name, seconds in ordered)
    return Cell(words or "–", words)


def _average(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
