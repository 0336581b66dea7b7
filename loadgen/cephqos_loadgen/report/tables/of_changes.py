"""Tables of changes: against the load alone, a point of the same runs, a baseline."""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, LOAD, ReportRow, ReportSettings
from cephqos_loadgen.report.figures.baseline import (
    against_baseline,
    is_no_baseline,
    outcome,
    pairs,
)
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import background_rows
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    figure,
    percent_cell,
    text,
    text_columns,
)
from cephqos_loadgen.report.words import interval, verdict

LATENCIES: Final = (metrics.MEAN, *(metrics.percentile(p) for p in (95.0, 99.0, 99.5)))
WORK: Final = (
    *(metrics.SCRUB_SECONDS, metrics.SCRUB_BANDWIDTH),
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE, metrics.RECOVERY_BANDWIDTH),
)
COMPARED: Final = (metrics.IOPS, *LATENCIES, *WORK)
WHO: Final = tuple(text_columns("Point", "Load"))
_INTERVAL: Final = TableColumn("95 % interval", "%", numeric=False)
_RESULT: Final = TableColumn("Result", numeric=False)
_CHANGE: Final = (TableColumn("Change"), TableColumn("Change", "%"), _INTERVAL, _RESULT)
_NOTE: Final = (
    "Changes are between the figures of all repeats together, as the other tables show them. The"
    " interval is bootstrapped over the repeats."
    " Where it contains zero, no difference was found."
)
_TARGET_NOTE: Final = (
    " Kept and broken: beyond noise. Not put to the test: the load did more than the"
    " baseline. Steps of curves are not judged: a low depth asks for less."
)


def change_tables(subject: Subject) -> Iterator[Table]:
    """All of them that have rows."""
    built = (
        *(alone_table(subject), changes_table(subject)),
        *(targets_table(subject), baseline_table(subject)),
    )
    yield from (table for table in built if table.rows)


def change_between(
    row: ReportRow, reference: ReportRow, metric: FigureKind, comparisons: int = 1
) -> ChangeInterval | None:
    new, old = row.figures.get(metric.key), reference.figures.get(metric.key)
    if new is None or old is None or not new.samples or not old.samples:
        return None
    return new.against(old, comparisons)


def alone_table(subject: Subject) -> Table:
    """What background work cost the clients, by the load alone of the same point."""
    lines = []
    for row, alone in (pair for run in subject.runs for pair in pairs(run)):
        throughput = change_between(row, alone, metrics.IOPS)
        untested = throughput is not None and is_no_baseline(throughput)
        for metric in (metrics.IOPS, *LATENCIES):
            if cells := _both_and_change(row, alone, metric):
                cells[-1] = text("not put to the test") if untested else cells[-1]
                who = [*_who(subject, row), text(row.key.window)]
                lines.append((*who, text(metric.named), *cells))
    columns = (
        *WHO,
        *text_columns("Part", "Figure"),
        TableColumn("Alone"),
        TableColumn("Value"),
        *_CHANGE,
    )
    return Table("alone", "Change against the load alone", columns, tuple(lines), _NOTE)


def changes_table(subject: Subject) -> Table:
    """Every load, scrub and recovery against the reference point."""
    lines = []
    for row in [*_compared(subject), *background_rows(subject)]:
        reference = subject.reference_of(row)
        if reference is None or reference.key == row.key:
            continue
        for metric in COMPARED:
            if moved := change_between(row, reference, metric):
                against = text(subject.label(reference.key))
                change = _change_cells(metric, moved)
                lines.append((*_who(subject, row), text(metric.named), against, *change))
    columns = (*WHO, *text_columns("Figure", "Reference"), *_CHANGE)
    return Table("changes", "Change against the reference", columns, tuple(lines), _NOTE)


def targets_table(subject: Subject) -> Table:
    """Every load against the baseline, and the target where one is set."""
    settings = subject.settings
    target, baseline = settings.target, settings.baseline_iops
    lines = []
    for row in _compared(subject) if baseline else []:
        base = sum(baseline) / len(baseline)
        moved = against_baseline(row, baseline, exact=settings.baseline_row is None)
        cells = [
            *_who(subject, row),
            figure(metrics.IOPS, base),
            figure(metrics.IOPS, row.figures[metrics.IOPS.key].value),
            *_change_cells(metrics.IOPS, moved)[:-1],
        ]
        if target is not None:
            # A low depth of a curve asks for less: it is not judged.
            result = _outcome_cell(moved, target) if row.key.depth is None else Cell("–")
            cells += [figure(metrics.IOPS, target * base), result]
        lines.append(tuple(cells))
    columns = (
        *WHO,
        TableColumn("Baseline", "IOPS"),
        TableColumn("Throughput", "IOPS"),
        TableColumn("Change", "IOPS"),
        TableColumn("Change", "%"),
        _INTERVAL,
        *([] if target is None else [TableColumn("Target", "IOPS"), _RESULT]),
    )
    note = f"Baseline: {settings.baseline_name}." if settings.baseline_name else ""
    note += _TARGET_NOTE if target is not None else ""
    return Table("baseline", "Change against the baseline", columns, tuple(lines), note)


def baseline_table(subject: Subject) -> Table:
    """Latency, scrub and recovery against those of the baseline's run, where it has them."""
    settings = subject.settings
    lines = []
    for row in [*_compared(subject), *background_rows(subject)]:
        for metric in (*LATENCIES, *WORK):
            base = _of_baseline(settings, row, metric)
            if base and (cells := _both_and_change(row, base, metric)):
                lines.append((*_who(subject, row), text(metric.named), *cells))
    columns = (
        *WHO,
        *text_columns("Figure"),
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


# -- rows and cells --------------------------------------------------------------------------------


def _compared(subject: Subject) -> list[ReportRow]:
    """Loads, and the steps of curves."""
    return [*subject.main_loads, *subject.steps]


def _who(subject: Subject, row: ReportRow) -> list[Cell]:
    """Point and load, of a step with its depth."""
    depth = "" if row.key.depth is None else f", depth {row.key.depth}"
    return [text(subject.label(row.key)), text(f"{row.key.phase}{depth}")]


def _both_and_change(row: ReportRow, base: ReportRow, metric: FigureKind) -> list[Cell]:
    """The two figures and the change; nothing where one of the rows does not have it."""
    moved = change_between(row, base, metric)
    if moved is None:
        return []
    both = [figure(metric, base.value(metric.key)), figure(metric, row.value(metric.key))]
    return [*both, *_change_cells(metric, moved)]


def _change_cells(metric: FigureKind, moved: ChangeInterval) -> list[Cell]:
    return [
        figure(metric, moved.absolute),
        percent_cell(moved.ratio),
        text(interval(moved)),
        text(verdict(moved)),
    ]


def _outcome_cell(moved: ChangeInterval, target: float) -> Cell:
    judged = outcome(moved, target)
    return Cell(judged, judged, {"kept": "best", "broken": "worst"}.get(judged, ""))
