"""Charts of one figure or curve per point: throughput, latency, response curves."""

from collections.abc import Sequence
from typing import Final

from cephqos_loadgen.report.charts import plots
from cephqos_loadgen.report.charts.plot_time import Line
from cephqos_loadgen.report.charts.plots import Dot
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.figures.metrics import PERCENTILES, FigureKind
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, count, figure, text


def labels_of(subject: Subject, rows: Sequence[ReportRow]) -> list[str]:
    """The points, with the load where there are several."""
    phases = {row.key.phase for row in rows}
    return [
        subject.label(row.key) + (f": {row.key.phase}" if len(phases) > 1 else "") for row in rows
    ]


def dots_chart(
    subject: Subject, rows: Sequence[ReportRow], metric: FigureKind, name: str, title: str
) -> Chart:
    """One figure of each row, with one deviation over the repeats to both sides."""
    labels = labels_of(subject, rows)
    drawn: list[list[Dot]] = []
    data = []
    for label, row in zip(labels, rows, strict=True):
        of_row = row.figures[metric.key]
        value, spread = of_row.value * metric.scale, of_row.deviation
        reach = None if spread is None else spread * metric.scale
        low, high = (None, None) if reach is None else (max(0.0, value - reach), value + reach)
        drawn.append([Dot(0, value, low, high)])
        data.append((text(label), figure(metric, of_row.value), figure(metric, spread)))
    bars = _bars([row.figures[metric.key].deviation for row in rows])
    shown = f"{title} ({bars})" if bars else title
    drawing = plots.dots(shown, metric.unit, labels, drawn, [title])
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn(title, metric.unit),
        TableColumn("σ", metric.unit),
    )
    return Chart(name, title, drawing, Table(f"chart-{name}", title, columns, tuple(data)))


def _bars(deviations: Sequence[float | None]) -> str:
    """What bars are; a point without one is of one repeat, which is not the same as no spread."""
    known = [deviation is not None for deviation in deviations]
    if not any(known):
        return ""
    return "bars: ± 1 σ over repeats" + ("" if all(known) else ", none where there was one repeat")


def percentiles_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Percentiles of all completions of each load."""
    rows = [row for row in rows if metrics.P99.key in row.figures]
    shown = [metric for metric in PERCENTILES if metric.key != "clat_p99.5"]
    labels = labels_of(subject, rows)
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


_CURVE_COLUMNS: Final = (
    TableColumn("Point", numeric=False),
    TableColumn("Depth"),
    TableColumn("Throughput", "IOPS"),
    TableColumn("σ over repeats", "IOPS"),
    TableColumn("Mean latency", "ms"),
    TableColumn("σ over repeats", "ms"),
)


def curves_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Throughput against mean latency; bars are one deviation over the repeats."""
    groups: dict[str, list[ReportRow]] = {}
    for label, row in zip(labels_of(subject, rows), rows, strict=True):
        groups.setdefault(label, []).append(row)
    lines = []
    data: list[tuple[Cell, ...]] = []
    for label, steps in groups.items():
        pairs = [
            (row, row.figures[metrics.IOPS.key], row.figures[metrics.MEAN.key])
            for row in steps
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
    bars = _bars([row.figures[metrics.IOPS.key].deviation for row in rows])
    title = "Response curve: depth at each point" + (f"; {bars}" if bars else "")
    drawing = plots.curves(title, "IOPS", "mean latency, ms", lines)
    table = Table("chart-curve", title, _CURVE_COLUMNS, tuple(data))
    return Chart("curve", title, drawing, table)
