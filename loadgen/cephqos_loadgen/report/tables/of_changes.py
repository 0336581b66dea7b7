"""Tables of changes: against a point of the same runs, against a baseline, between schedulers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, LOAD, Key, ReportRow, ReportSettings
from cephqos_loadgen.report.figures.baseline import (
    Outcome,
    against_baseline,
    is_no_baseline,
    outcome,
    pairs,
)
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import WHO, background_rows, best_and_worst
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, figure, text, text_columns
from cephqos_loadgen.report.words import interval, percent, shown, verdict

LATENCIES: Final = (metrics.MEAN, *(metrics.percentile(p) for p in (95.0, 99.0, 99.5)))
WORK: Final = (
    *(metrics.SCRUB_SECONDS, metrics.SCRUB_BANDWIDTH),
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE, metrics.RECOVERY_BANDWIDTH),
)
COMPARED: Final = (metrics.IOPS, *LATENCIES, *WORK)
_CHANGE: Final = (
    TableColumn("Change"),
    TableColumn("Change", "%"),
    TableColumn("95 % interval", "%", numeric=False),
    TableColumn("Result", numeric=False),
)
_NOTE: Final = (
    "Changes are between the figures of all repeats together, as the other tables show them. The"
    " interval is bootstrapped over the repeats."
    " Where it contains zero, no difference was found."
)


def change_tables(subject: Subject) -> Iterator[Table]:
    """All of them that have rows."""
    built = (
        *(alone_table(subject), changes_table(subject)),
        *(targets_table(subject), baseline_table(subject)),
    )
    yield from (table for table in (*built, *level_tables(subject)) if table.rows)


def _compared(subject: Subject) -> list[ReportRow]:
    """Loads, and the steps of curves."""
    return [*subject.main_loads, *subject.steps]


def _who(subject: Subject, row: ReportRow) -> list[Cell]:
    """Point and load, of a step with its depth."""
    depth = "" if row.key.depth is None else f", depth {row.key.depth}"
    return [text(subject.label(row.key)), text(f"{row.key.phase}{depth}")]


def change_between(
    row: ReportRow, reference: ReportRow, metric: FigureKind, comparisons: int = 1
) -> ChangeInterval | None:
    new, old = row.figures.get(metric.key), reference.figures.get(metric.key)
    if new is None or old is None or not new.samples or not old.samples:
        return None
    return new.against(old, comparisons)


def changes_table(subject: Subject) -> Table:
    """Every load, scrub and recovery against the reference point."""
    lines = []
    for row in [*_compared(subject), *background_rows(subject)]:
        reference = subject.reference_of(row)
        if reference is None or reference.key == row.key:
            continue
        for metric in COMPARED:
            if moved := change_between(row, reference, metric):
                name = text(f"{metric.title}, {metric.unit}")
                against = text(subject.label(reference.key))
                lines.append((*_who(subject, row), name, against, *_change_cells(metric, moved)))
    columns = (
        *WHO,
        *text_columns("Figure", "Reference"),
        *_CHANGE,
    )
    return Table("changes", "Change against the reference", columns, tuple(lines), _NOTE)


def _change_cells(metric: FigureKind, moved: ChangeInterval) -> tuple[Cell, ...]:
    return (
        figure(metric, moved.absolute),
        Cell(percent(moved.ratio), _times_100(moved.ratio)),
        text(interval(moved)),
        text(verdict(moved)),
    )


def _times_100(value: float | None) -> float | None:
    return None if value is None else value * 100


# -- the baseline ----------------------------------------------------------------------------------


def baseline_table(subject: Subject) -> Table:
    """Latency, scrub and recovery against those of the baseline's run, where it has them."""
    settings = subject.settings
    lines = []
    for row in [*_compared(subject), *background_rows(subject)]:
        for metric in (*LATENCIES, *WORK):
            base = _of_baseline(settings, row, metric)
            moved = change_between(row, base, metric) if base else None
            if base and moved:
                lines.append(
                    (
                        *_who(subject, row),
                        text(f"{metric.title}, {metric.unit}"),
                        figure(metric, base.value(metric.key)),
                        figure(metric, row.value(metric.key)),
                        *_change_cells(metric, moved),
                    )
                )
    columns = (
        *WHO,
        TableColumn("Figure", numeric=False),
        TableColumn("Baseline"),
        TableColumn("Value"),
        *_CHANGE,
    )
    title = "Latency, scrub and recovery against the baseline"
    note = f"Baseline: {settings.baseline_name}. {_NOTE}"
    return Table("baseline-others", title, columns, tuple(lines), note)


def _of_baseline(settings: ReportSettings, row: ReportRow, metric: FigureKind) -> ReportRow | None:
    """A load is compared with the baseline's load, other work with the same of that point."""
    load = settings.baseline_row
    if load is None or settings.baseline_run is None or row.key.kind == LOAD:
        return load
    return next(
        (
            base
            for base in settings.baseline_run.rows
            if base.key.point == load.key.point
            and base.key.kind == BACKGROUND
            and metric.key in base.figures
        ),
        None,
    )


def targets_table(subject: Subject) -> Table:
    """Every load against the baseline, and the target where one is set."""
    settings = subject.settings
    lines = []
    baseline = settings.baseline_iops
    for row in _compared(subject) if baseline else []:
        iops = row.figures[metrics.IOPS.key]
        moved = against_baseline(row, baseline, exact=settings.baseline_row is None)
        cells = [
            *_who(subject, row),
            figure(metrics.IOPS, sum(baseline) / len(baseline)),
            figure(metrics.IOPS, iops.value),
            figure(metrics.IOPS, moved.absolute),
            Cell(percent(moved.ratio), _times_100(moved.ratio)),
            text(interval(moved)),
        ]
        if settings.target is not None:
            least = settings.target * sum(baseline) / len(baseline)
            judged = row.key.depth is None  # a low depth of a curve asks for less
            result = _outcome_cell(outcome(moved, settings.target)) if judged else Cell("–")
            cells += [figure(metrics.IOPS, least), result]
        lines.append(tuple(cells))
    columns = [
        *WHO,
        TableColumn("Baseline", "IOPS"),
        TableColumn("Throughput", "IOPS"),
        TableColumn("Change", "IOPS"),
        TableColumn("Change", "%"),
        TableColumn("95 % interval", "%", numeric=False),
    ]
    if settings.target is not None:
        columns += [TableColumn("Target", "IOPS"), TableColumn("Result", numeric=False)]
    note = f"Baseline: {settings.baseline_name}." if settings.baseline_name else ""
    if settings.target is not None:
        note += (
            " Kept and broken: beyond noise. Not put to the test: the load did more than the"
            " baseline. Steps of curves are not judged: a low depth asks for less."
        )
    return Table("baseline", "Change against the baseline", tuple(columns), tuple(lines), note)


def _outcome_cell(judged: Outcome) -> Cell:
    return Cell(judged, judged, {"kept": "best", "broken": "worst"}.get(judged, ""))


# -- the load alone, where the plan has one --------------------------------------------------------


def alone_table(subject: Subject) -> Table:
    """What background work cost the clients, by the load alone of the same point."""
    lines = []
    for row, alone in (pair for run in subject.runs for pair in pairs(run)):
        throughput = change_between(row, alone, metrics.IOPS)
        for metric in (metrics.IOPS, *LATENCIES):
            if moved := change_between(row, alone, metric):
                cells = list(_change_cells(metric, moved))
                if throughput and is_no_baseline(throughput):
                    cells[-1] = text("not put to the test")
                lines.append(
                    (
                        *_who(subject, row),
                        text(row.key.window),
                        text(f"{metric.title}, {metric.unit}"),
                        figure(metric, alone.value(metric.key)),
                        figure(metric, row.value(metric.key)),
                        *cells,
                    )
                )
    columns = (
        *WHO,
        *text_columns("Part", "Figure"),
        TableColumn("Alone"),
        TableColumn("Value"),
        *_CHANGE,
    )
    return Table("alone", "Change against the load alone", columns, tuple(lines), _NOTE)


# -- one table per load and figure, as the studies printed them ------------------------------------

_PRINTED: Final = (metrics.IOPS, metrics.BANDWIDTH, metrics.MEAN, metrics.P99)


def level_tables(subject: Subject) -> Iterator[Table]:
    """Where the matrix has an axis of names (schedulers, profiles) and others: names across."""
    rows = subject.main_loads
    axis = subject.named_axis
    if axis is None or len(subject.varying) < 2 or len(subject.runs) > 1:
        return
    for phase in dict.fromkeys(row.key.phase for row in rows):
        own = [row for row in rows if row.key.phase == phase and axis in row.axes]
        for metric in _PRINTED:
            if any(metric.key in row.figures for row in own):
                yield _level_table(subject, axis, phase, own, metric)


def _level_table(
    subject: Subject, axis: str, phase: str, rows: Sequence[ReportRow], metric: FigureKind
) -> Table:
    levels = list(dict.fromkeys(row.axes[axis] for row in rows))
    others = [a for a in subject.varying if a != axis]
    lines: dict[tuple[str, ...], dict[str, ReportRow]] = {}
    for row in rows:
        lines.setdefault(tuple(row.axes.get(a, "–") for a in others), {})[row.axes[axis]] = row
    cells = []
    for rest, by_level in lines.items():
        marks = best_and_worst(list(by_level.values()), [metric])
        own = [_mean_and_deviation(by_level.get(level), metric, marks) for level in levels]
        cells.append((*(text(value) for value in rest), *own))
    columns = (
        *text_columns(*others),
        *(TableColumn(level, metric.unit) for level in levels),
    )
    return Table(
        f"by-{axis}-{phase}-{metric.key}",
        f"{metric.title} of {phase} by {axis}, mean ± σ",
        columns,
        tuple(cells),
        "▲ best and ▼ worst of a line are marked only where mean ± 1 σ over the repeats of the two"
        " do not overlap.",
    )


def _mean_and_deviation(
    row: ReportRow | None, metric: FigureKind, marks: Mapping[tuple[Key, str], str]
) -> Cell:
    if row is None or metric.key not in row.figures:
        return Cell("–")
    of_row = row.figures[metric.key]
    words = shown(metric, of_row.value)
    if of_row.deviation is not None:
        words += f" ± {shown(metric, of_row.deviation)}"
    return Cell(words, of_row.value * metric.scale, marks.get((row.key, metric.key), ""))
