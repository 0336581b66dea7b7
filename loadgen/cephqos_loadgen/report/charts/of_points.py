"""Charts of one figure or curve per point: throughput, latency, response curves."""

from collections.abc import Sequence

from cephqos_loadgen.report.charts import plots
from cephqos_loadgen.report.charts.plot_time import Line
from cephqos_loadgen.report.charts.plots import Dot
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Figure, ReportRow
from cephqos_loadgen.report.figures.metrics import PERCENTILES, FigureKind
from cephqos_loadgen.report.subject import Subject


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
    figures = [row.figures[metric.key] for row in rows]
    bars = _what_bars_are(figures)
    heading = f"{title} ({bars})" if bars else title
    dots = [[_dot(figure, metric)] for figure in figures]
    drawing = plots.dots(heading, metric.unit, labels_of(subject, rows), dots, [title])
    return Chart(name, title, drawing)


def _dot(figure: Figure, metric: FigureKind) -> Dot:
    value, spread = figure.value * metric.scale, figure.deviation
    if spread is None:
        return Dot(0, value)
    return Dot(0, value, max(0.0, value - spread * metric.scale), value + spread * metric.scale)


def _what_bars_are(figures: Sequence[Figure]) -> str:
    """For the title. A point without a bar is of one repeat, which is not the same as no spread."""
    with_bar = [figure for figure in figures if figure.deviation is not None]
    if not with_bar:
        return ""
    some_without = ", none where there was one repeat" if len(with_bar) < len(figures) else ""
    return f"bars: ± 1 σ over repeats{some_without}"


def percentiles_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Percentiles of all completions of each load."""
    rows = [row for row in rows if metrics.P99.key in row.figures]
    # All but p99.5, which the table of loads has.
    metrics_shown = [metric for metric in PERCENTILES if metric.key != "clat_p99.5"]
    dots = []
    for row in rows:
        values = (row.figures[metric.key].value * metric.scale for metric in metrics_shown)
        dots.append([Dot(series, value) for series, value in enumerate(values)])
    title = "Completion latency, logarithmic"
    names = [metric.title for metric in metrics_shown]
    drawing = plots.dots(title, "ms", labels_of(subject, rows), dots, names, log=True)
    return Chart("latency", title, drawing)


def curves_chart(subject: Subject, rows: Sequence[ReportRow]) -> Chart:
    """Throughput against mean latency; bars are one deviation over the repeats."""
    curves: dict[str, list[ReportRow]] = {}
    for label, row in zip(labels_of(subject, rows), rows, strict=True):
        steps = curves.setdefault(label, [])
        steps += [row] if metrics.MEAN.key in row.figures else []
    bars = _what_bars_are([row.figures[metrics.IOPS.key] for row in rows])
    title = "Response curve: depth at each point" + (f"; {bars}" if bars else "")
    lines = [_curve(label, steps) for label, steps in curves.items()]
    return Chart("curve", title, plots.curves(title, "IOPS", "mean latency, ms", lines))


def _curve(label: str, steps: Sequence[ReportRow]) -> Line:
    pairs = [(row.figures[metrics.IOPS.key], row.figures[metrics.MEAN.key]) for row in steps]
    return Line(
        label,
        tuple((iops.value, mean.value * 1e3) for iops, mean in pairs),
        tuple((iops.deviation or 0.0, (mean.deviation or 0.0) * 1e3) for iops, mean in pairs),
        tuple(f"depth {row.key.depth}" for row in steps),
    )
