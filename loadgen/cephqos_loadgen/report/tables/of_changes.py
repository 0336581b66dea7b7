"""The tables of changes: against the load alone, a point of the same runs, a baseline.

A line has a figure of a row, the same figure of the row that it is compared with, and the change
with its interval. Each table differs in what a row is compared with.
"""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, LOAD, ReportRow, ReportSettings
from cephqos_loadgen.report.figures.baseline import (
    against_baseline,
    is_no_baseline,
    loads_with_alone,
    outcome,
)
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import background_rows
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    figure,
    number_columns,
    percent_cell,
    text,
    text_columns,
)
from cephqos_loadgen.report.words import interval, verdict

LATENCIES: Final = (metrics.MEAN, *(metrics.percentile(p) for p in (95.0, 99.0, 99.5)))
_BACKGROUND_WORK: Final = (
    *(metrics.SCRUB_SECONDS, metrics.SCRUB_BANDWIDTH),
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE, metrics.RECOVERY_BANDWIDTH),
)
_POINT_AND_LOAD: Final = tuple(text_columns("Point", "Load"))
_INTERVAL: Final = TableColumn("95 % interval", "%", numeric=False)
_RESULT: Final = TableColumn("Result", numeric=False)
_CHANGE: Final = (TableColumn("Change"), TableColumn("Change", "%"), _INTERVAL, _RESULT)
_NOTE: Final = (
    "Changes are between the figures of all repeats together, as the other tables show them. The"
    " interval is that of one figure, over the repeats: where it contains zero, no difference was"
    " found. Of twenty figures that did not change, one is outside by chance."
)
_TARGET_NOTE: Final = (
    " Kept and broken: beyond noise. Not put to the test: the load did more than the"
    " baseline. Steps of curves are not judged: a low depth asks for less."
)


def change_tables(subject: Subject) -> Iterator[Table]:
    """All of them that have rows."""
    for build in (alone_table, changes_table, targets_table, baseline_table):
        table = build(subject)
        if table.rows:
            yield table


def change_between(
    row: ReportRow, reference: ReportRow, metric: FigureKind, comparisons: int = 1
) -> ChangeInterval | None:
    """The change of one figure of a row from that of the reference; None where one of the two does
    not have it. See `statistics.change` for `comparisons`."""
    new, old = row.figures.get(metric.key), reference.figures.get(metric.key)
    if new is None or old is None or not new.samples or not old.samples:
        return None
    return new.against(old, comparisons)


def alone_table(subject: Subject) -> Table:
    """What background work cost the clients, by the load alone of the same point."""
    lines = []
    for row, alone in (pair for run in subject.runs for pair in loads_with_alone(run)):
        throughput = change_between(row, alone, metrics.IOPS)
        untested = throughput is not None and is_no_baseline(throughput)
        names = [*_point_and_load(subject, row), text(row.key.window)]
        for metric in (metrics.IOPS, *LATENCIES):
            if cells := _figures_and_change(row, alone, metric):
                result = text("not put to the test") if untested else cells[-1]
                lines.append((*names, text(metric.named), *cells[:-1], result))
    figures = (*text_columns("Part", "Figure"), *number_columns("Alone", "Value"))
    columns = (*_POINT_AND_LOAD, *figures, *_CHANGE)
    return Table("alone", "Change against the load alone", columns, tuple(lines), _NOTE)


def changes_table(subject: Subject) -> Table:
    """Every load, scrub and recovery against the reference point."""
    lines = []
    for row in [*_compared(subject), *background_rows(subject)]:
        reference = subject.reference_of(row)
        if reference is None or reference.key == row.key:
            continue
        names = _point_and_load(subject, row)
        against = text(subject.label(reference.key))
        for metric in (metrics.IOPS, *LATENCIES, *_BACKGROUND_WORK):
            if change := change_between(row, reference, metric):
                cells = _change_cells(metric, change)
                lines.append((*names, text(metric.named), against, *cells))
    columns = (*_POINT_AND_LOAD, *text_columns("Figure", "Reference"), *_CHANGE)
    return Table("changes", "Change against the reference", columns, tuple(lines), _NOTE)


def targets_table(subject: Subject) -> Table:
    """Throughput of every load against the baseline, and the target where one is set."""
    settings = subject.settings
    target, baseline = settings.target, settings.baseline_iops
    lines = []
    for row in _compared(subject) if baseline else []:
        mean = sum(baseline) / len(baseline)
        change = against_baseline(row, baseline, exact=settings.baseline_row is None)
        cells = [
            *_point_and_load(subject, row),
            figure(metrics.IOPS, mean),
            figure(metrics.IOPS, row.figures[metrics.IOPS.key].value),
            *_change_cells(metrics.IOPS, change)[:-1],
        ]
        if target is not None:
            # A low depth of a curve asks for less: it is not judged.
            result = _outcome_cell(change, target) if row.key.depth is None else Cell("–")
            cells += [figure(metrics.IOPS, target * mean), result]
        lines.append(tuple(cells))
    columns = (
        *_POINT_AND_LOAD,
        *number_columns("Baseline", "Throughput", "Change", unit="IOPS"),
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
        for metric in (*LATENCIES, *_BACKGROUND_WORK):
            base = _row_of_baseline(settings, row, metric)
            if base and (cells := _figures_and_change(row, base, metric)):
                lines.append((*_point_and_load(subject, row), text(metric.named), *cells))
    figures = (*text_columns("Figure"), *number_columns("Baseline", "Value"))
    columns = (*_POINT_AND_LOAD, *figures, *_CHANGE)
    title = "Latency, scrub and recovery against the baseline"
    note = f"Baseline: {settings.baseline_name}. {_NOTE}"
    return Table("baseline-others", title, columns, tuple(lines), note)


def _row_of_baseline(
    settings: ReportSettings, row: ReportRow, metric: FigureKind
) -> ReportRow | None:
    """The row that this one is compared with: for a load the baseline's load, for scrub and
    recovery the row of the same point of the baseline that has this figure."""
    load = settings.baseline_row
    if load is None or settings.baseline_run is None or row.key.kind == LOAD:
        return load
    for base in settings.baseline_run.rows:
        same_point = base.key.point == load.key.point
        if same_point and base.key.kind == BACKGROUND and metric.key in base.figures:
            return base
    return None


def _compared(subject: Subject) -> list[ReportRow]:
    """Loads, and the steps of curves."""
    return [*subject.main_loads, *subject.steps]


def _point_and_load(subject: Subject, row: ReportRow) -> list[Cell]:
    """The first two cells of a line; a step of a curve has its depth too."""
    depth = "" if row.key.depth is None else f", depth {row.key.depth}"
    return [text(subject.label(row.key)), text(f"{row.key.phase}{depth}")]


def _figures_and_change(row: ReportRow, base: ReportRow, metric: FigureKind) -> list[Cell]:
    """The two figures and the change; nothing where one of the rows does not have it."""
    change = change_between(row, base, metric)
    if change is None:
        return []
    figures = [figure(metric, base.value(metric.key)), figure(metric, row.value(metric.key))]
    return [*figures, *_change_cells(metric, change)]


def _change_cells(metric: FigureKind, change: ChangeInterval) -> list[Cell]:
    """For the columns of _CHANGE."""
    return [
        figure(metric, change.absolute),
        percent_cell(change.ratio),
        text(interval(change)),
        text(verdict(change)),
    ]


def _outcome_cell(change: ChangeInterval, target: float) -> Cell:
    result = outcome(change, target)
    return Cell(result, result, {"kept": "best", "broken": "worst"}.get(result, ""))
