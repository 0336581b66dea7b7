"""The charts of a report, each with the data that it draws."""

from collections.abc import Iterator, Sequence
from typing import Final

from cephqos_loadgen.report import metrics, plots
from cephqos_loadgen.report.analysis import BACKGROUND, ReportRow
from cephqos_loadgen.report.core_map import core_maps
from cephqos_loadgen.report.cost import thread_groups
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.metrics import PERCENTILES, FigureKind
from cephqos_loadgen.report.observe import WHOLE
from cephqos_loadgen.report.over_time import timelines
from cephqos_loadgen.report.plot_time import Line
from cephqos_loadgen.report.plots import Dot
from cephqos_loadgen.report.surface import surfaces
from cephqos_loadgen.report.tables import Cell, Subject, Table, TableColumn, count, figure, text

_GROUPS: Final = 5
_MOST_DOTS: Final = 24  # points that a first screen holds


def charts(subject: Subject) -> Iterator[Chart]:
    """The main chart first: throughput of each point, or surfaces where there are too many."""
    loads = subject.main_loads
    maps = list(surfaces(subject))
    if maps and len(loads) > _MOST_DOTS:
        yield from maps
        maps = []
    if loads:
        yield dots_chart(subject, loads, metrics.IOPS, "throughput", "Client throughput")
        if any(metrics.P99.key in row.figures for row in loads):
            yield percentiles_chart(subject, loads)
    steps = [r for r in subject.loads(curves=True) if r.key.op == "total" and r.key.window == WHOLE]
    if steps:
        yield curves_chart(subject, steps)
    background = [row for row in subject.rows if row.key.kind == BACKGROUND]
    for metric, name, title in (
        (metrics.SCRUB_SECONDS, "scrub-time", "Scrub time"),
        (metrics.RECOVERY_SECONDS, "recovery-time", "Recovery time"),
        (metrics.RECOVERY_OBJECT_RATE, "recovery-rate", "Recovery rate"),
    ):
        rows = [row for row in background if metric.key in row.figures]
        if rows:
            yield dots_chart(subject, rows, metric, name, title)
    yield from maps
    yield from timelines(subject)
    yield from cpu_chart(subject)
    yield from core_maps(subject)


def _labels(subject: Subject, rows: Sequence[ReportRow]) -> list[str]:
    """The points, with the load where there are several."""
    phases = {row.key.phase for row in rows}
    return [
        subject.label(row.key) + (f": {row.key.phase}" if len(phases) > 1 else "") for row in rows
    ]


def dots_chart(
    subject: Subject, rows: Sequence[ReportRow], metric: FigureKind, name: str, title: str
) -> Chart:
    """One figure of each row, with one deviation over the repeats to both sides."""
    labels = _labels(subject, rows)
    drawn: list[list[Dot]] = []
    data = []
    for label, row in zip(labels, rows, strict=True):
        found = row.figures[metric.key]
        value, spread = found.value * metric.scale, found.deviation
        reach = None if spread is None else spread * metric.scale
        low, high = (None, None) if reach is None else (max(0.0, value - reach), value + reach)
        drawn.append([Dot(0, value, low, high)])
        data.append((text(label), figure(metric, found.value), figure(metric, spread)))
    spread_note = " (bars: ± 1 σ over repeats)" if any(d[0].low is not None for d in drawn) else ""
    drawing = plots.dots(title + spread_note, metric.unit, labels, drawn, [title])
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn(title, metric.unit),
        TableColumn("σ", metric.unit),
    )
    return Chart(name, title, drawing, Table(f"chart-{name}", title, columns, tuple(data)))


def percentiles_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Percentiles of all completions of each load."""
    rows = [row for row in rows if metrics.P99.key in row.figures]
    shown = [metric for metric in PERCENTILES if metric.key != "clat_p99.5"]
    labels = _labels(subject, rows)
    drawn = [
        [Dot(n, row.figures[m.key].value * m.scale) for n, m in enumerate(shown)] for row in rows
    ]
    title = "Completion latency, logarithmic"
    drawing = plots.dots(title, "ms", labels, drawn, [m.title for m in shown], log=True)
    data = tuple(
        (text(label), *(figure(m, row.value(m.key)) for m in shown))
        for label, row in zip(labels, rows, strict=True)
    )
    columns = (TableColumn("Point", numeric=False), *(TableColumn(m.title, "ms") for m in shown))
    return Chart("latency", title, drawing, Table("chart-latency", title, columns, data))


def curves_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Throughput against mean latency; bars are one deviation over the repeats."""
    groups: dict[str, list[ReportRow]] = {}
    for label, row in zip(_labels(subject, rows), rows, strict=True):
        groups.setdefault(label, []).append(row)
    lines = []
    data: list[tuple[Cell, ...]] = []
    for label, found in groups.items():
        pairs = [
            (row, row.figures[metrics.IOPS.key], row.figures[metrics.MEAN.key])
            for row in found
            if metrics.MEAN.key in row.figures
        ]
        lines.append(
            Line(
                label,
                tuple((i.value, m.value * 1e3) for _, i, m in pairs),
                tuple((i.deviation or 0.0, (m.deviation or 0.0) * 1e3) for _, i, m in pairs),
                tuple(f"depth {row.key.depth}" for row, _, _ in pairs),
            )
        )
        data += [
            (
                text(label),
                count(row.key.depth or 0),
                figure(metrics.IOPS, i.value),
                figure(metrics.IOPS, i.deviation),
                figure(metrics.MEAN, m.value),
                figure(metrics.MEAN, m.deviation),
            )
            for row, i, m in pairs
        ]
    title = "Response curve: depth at each point, bars ± 1 σ over repeats"
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn("Depth"),
        TableColumn("Throughput", "IOPS"),
        TableColumn("σ", "IOPS"),
        TableColumn("Mean latency", "ms"),
        TableColumn("σ of the mean", "ms"),
    )
    drawing = plots.curves(title, "IOPS", "mean latency, ms", lines)
    return Chart("curve", title, drawing, Table("chart-curve", title, columns, tuple(data)))


# -- CPU -------------------------------------------------------------------------------------------


def cpu_chart(subject: Subject) -> Iterator[Chart]:
    """CPU of all OSDs by group of threads, of each load of each point."""
    means = _cores_by_group(subject)
    totals: dict[str, float] = {}
    for groups in means.values():
        for group, value in groups.items():
            totals[group] = totals.get(group, 0.0) + value
    if not sum(totals.values()):
        return
    main = sorted(totals, key=lambda group: -totals[group])[:_GROUPS]
    rows = [
        [groups.get(g, 0.0) for g in main] + [sum(v for g, v in groups.items() if g not in main)]
        for groups in means.values()
    ]
    names = [*main, "all others"]
    title = "CPU of all OSDs by group of threads"
    drawing = plots.stacked(title, "cores", list(means), names, rows)
    data = tuple(
        (text(label), *(Cell(f"{v:.3f}", v) for v in row))
        for label, row in zip(means, rows, strict=True)
    )
    columns = (TableColumn("Load", numeric=False), *(TableColumn(name, "cores") for name in names))
    yield Chart("cpu", title, drawing, Table("chart-cpu", title, columns, data))


def _cores_by_group(subject: Subject) -> dict[str, dict[str, float]]:
    """By load, then by group of threads: the mean over the repeats."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in subject.runs:
        for observed in run.finished:
            row = next((r for r in run.rows if r.key.point == observed.record.point), None)
            for part in observed.loads:
                if part.op != "total" or part.window != WHOLE or part.several_depths or not row:
                    continue
                groups = found.setdefault(f"{subject.label(row.key)}: {part.phase}", {})
                spent = thread_groups(observed.samples, part.start, part.end)
                for group, seconds in spent.items():
                    groups.setdefault(group, []).append(seconds / (part.end - part.start))
    return {
        label: {group: sum(values) / len(values) for group, values in groups.items()}
        for label, groups in found.items()
        if groups
    }
