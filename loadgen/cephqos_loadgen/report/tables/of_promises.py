"""What each class got on each OSD against what it was promised, and why it got no more."""

from collections.abc import Sequence

from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.causes import causes_within
from cephqos_loadgen.report.figures.promises import KeptPromise, promises
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, plain_figure, text
from cephqos_loadgen.report.words import number
from cephqos_loadgen.results.phase import LoadResult


def promises_table(subject: Subject) -> Table:
    """What each class got on each OSD while a load ran; violated seconds add up over repeats."""
    lines = []
    evaluated = any(o.causes is not None for run in subject.runs for o in run.finished)
    for run in subject.runs:
        for (point, phase, osd, work), found in _by_class(run).items():
            row = next(row for row in run.rows if row.key.point == point)
            lines.append(
                (
                    text(subject.label(row.key)),
                    text(phase),
                    text(osd),
                    text(work),
                    *_promise_cells(found),
                    *([_causes_cell(run, point, phase, osd, work)] if evaluated else []),
                )
            )
    columns = (
        *(TableColumn(name, numeric=False) for name in ("Point", "Load", "OSD", "Class")),
        TableColumn("Reserved", "ops/s"), TableColumn("Limit", "ops/s"),
        TableColumn("Attained", "ops/s"),
        TableColumn("Attainment", "%"), TableColumn("Demand", "s"), TableColumn("Violated", "s"),
        TableColumn("Lag, most", "s"), TableColumn("Of", "s"),
        *([TableColumn("Main causes", "s", numeric=False)] if evaluated else []),
    )  # fmt: skip
    return Table(
        "promises",
        "Attainment by OSD and class",
        columns,
        tuple(lines),
        "Normalised operations, from the exporters' samples. Demand: seconds in which requests"
        " waited in the class's queue, or clients' operations waited before it or piled up in the"
        " store. Violated: of these, seconds in which it got less than 90 % of its reservation over"
        " 10 s. Both are sums over the repeats. Without demand nothing is"
        " violated. Classes that an OSD does not report are absent, as is everything with WPQ. "
        + (_CAUSES if evaluated else _NO_CAUSES),
    )


_CAUSES = (
    "Main causes: why a class with demand got no more, violated or not, in seconds, as the alerts'"
    " recording rules say it."
)


_NO_CAUSES = "Causes are not evaluated: cephqos report --causes."


def _causes_cell(run: ReportRun, point: str, phase: str, osd: str, work: str) -> Cell:
    """Seconds of each cause, the most first, summed over the repeats."""
    total: dict[str, float] = {}
    for observed in run.finished:
        record = observed.record.phases.get(phase)
        if observed.record.point == point and record:
            stretch = (record.start_unix_seconds, record.end_unix_seconds)
            for name, seconds in causes_within(observed, osd, work, *stretch).items():
                total[name] = total.get(name, 0.0) + seconds
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {seconds:.0f}" for name, seconds in ordered)
    return Cell(words or "–", words)


def _by_class(run: ReportRun) -> dict[tuple[str, str, str, str], list[KeptPromise]]:
    found: dict[tuple[str, str, str, str], list[KeptPromise]] = {}
    for observed in run.finished:
        for phase, record in observed.record.phases.items():
            if not isinstance(record.result, LoadResult):
                continue
            stretch = (record.start_unix_seconds, record.end_unix_seconds)
            for promise in promises(observed.samples, *stretch):
                key = (observed.record.point, phase, promise.osd, promise.work)
                found.setdefault(key, []).append(promise)
    return found


def _promise_cells(found: Sequence[KeptPromise]) -> list[Cell]:
    first = found[0]
    attained = sum(p.attained for p in found) / len(found)
    share = attained / first.reservation * 100 if first.reservation else None
    violated = [p.violated_seconds for p in found if p.violated_seconds is not None]
    lags = [p.lag_most_seconds for p in found if p.lag_most_seconds is not None]
    lost = sum(violated) if violated else None
    return [
        *(plain_figure(value) for value in (first.reservation, first.limit, attained, share)),
        plain_figure(sum(p.demand_seconds for p in found)),
        Cell(number(lost), lost, "worst" if lost else ""),
        plain_figure(max(lags) if lags else None),
        plain_figure(sum(p.seconds for p in found)),
    ]
