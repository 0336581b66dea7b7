"""Charts of one figure or curve per point: throughput, latency, response curves."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cephqos_loadgen.plan.words import size
from cephqos_loadgen.report.charts import plots
from cephqos_loadgen.report.charts.plot_time import Line
from cephqos_loadgen.report.charts.plots import Dot
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Figure, ReportRow
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.subject import Subject

_MEMORY: Final = (metrics.OSD_MEMORY, metrics.CLIENT_MEMORY)


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
    """Mean and percentiles of all completions of each load, as the published studies show them."""
    rows = [row for row in rows if metrics.P99.key in row.figures]
    metrics_shown = [metrics.MEAN, *(metrics.percentile(p) for p in (95.0, 99.0, 99.5))]
    dots = []
    for row in rows:
        values = (row.figures[metric.key].value * metric.scale for metric in metrics_shown)
        dots.append([Dot(series, value) for series, value in enumerate(values)])
    title = "Completion latency, logarithmic"
    names = [metric.title for metric in metrics_shown]
    drawing = plots.dots(title, "ms", labels_of(subject, rows), dots, names, log=True)
    return Chart("latency", title, drawing)


def curve_charts(subject: Subject, rows: Sequence[ReportRow]) -> Iterator[Chart]:
    """For each kind of load: throughput against latency, then CPU and memory against depth; the
    points side by side."""
    by_load: dict[str, list[ReportRow]] = {}
    for row in rows:
        by_load.setdefault(_kind_of_load(subject, row), []).append(row)
    for number, (load, steps) in enumerate(by_load.items(), start=1):
        suffix = f"-{number}" if len(by_load) > 1 else ""
        yield _response(subject, steps, load, f"curve{suffix}")
        for metric in (metrics.OSD_CORES, metrics.CLIENT_CORES, *_MEMORY):
            with_figure = [row for row in steps if metric.key in row.figures]
            if with_figure:
                yield _against_depth(subject, with_figure, metric, load, suffix)


def _kind_of_load(subject: Subject, row: ReportRow) -> str:
    """Such as `randread 4 KiB`."""
    for run in subject.runs:
        for point, phase in run.planned_phases:
            if (run.name, point, phase["name"]) == (row.key.run, row.key.point, row.key.phase):
                action = phase["action"]
                block_size = size(action["block_size"]) if action.get("block_size") else ""
                return " ".join(filter(None, (action.get("rw", ""), block_size)))
    return ""


def _lines(
    subject: Subject, rows: Sequence[ReportRow], line: Callable[[str, Sequence[ReportRow]], Line]
) -> list[Line]:
    steps: dict[str, list[ReportRow]] = {}
    for label, row in zip(labels_of(subject, rows), rows, strict=True):
        steps.setdefault(label, []).append(row)
    return [line(label, its) for label, its in steps.items()]


def _response(subject: Subject, rows: Sequence[ReportRow], load: str, name: str) -> Chart:
    """Throughput against mean latency. The bars up and down are σ of latency, as published; those
    across are one deviation over the repeats."""
    rows = [row for row in rows if metrics.MEAN.key in row.figures]
    over_repeats = _what_bars_are([row.figures[metrics.IOPS.key] for row in rows])
    across = f", across: {over_repeats.removeprefix('bars: ')}" if over_repeats else ""
    bars = f"bars up: σ of latency{across}"
    title = " of ".join(filter(None, ("Response curve", load))) + f": depth at each point; {bars}"
    drawing = plots.curves(title, "IOPS", "mean latency, ms", _lines(subject, rows, _curve))
    return Chart(name, title, drawing)


def _curve(label: str, steps: Sequence[ReportRow]) -> Line:
    points = [(row.figures[metrics.IOPS.key], row.value(metrics.MEAN.key) or 0.0) for row in steps]
    spreads = [row.value(metrics.DEVIATION.key) or 0.0 for row in steps]
    return Line(
        label,
        tuple((iops.value, mean * 1e3) for iops, mean in points),
        tuple(
            (iops.deviation or 0.0, s * 1e3) for (iops, _), s in zip(points, spreads, strict=True)
        ),
        tuple(f"depth {row.key.depth}" for row in steps),
    )


def _against_depth(
    subject: Subject, rows: Sequence[ReportRow], metric: FigureKind, load: str, suffix: str
) -> Chart:
    def line(label: str, steps: Sequence[ReportRow]) -> Line:
        figures = [(row.key.depth or 0, row.figures[metric.key]) for row in steps]
        return Line(
            label,
            tuple((float(depth), it.value * metric.scale) for depth, it in figures),
            tuple((0.0, (it.deviation or 0.0) * metric.scale) for _, it in figures),
            tuple("" for _ in figures),
        )

    title = ", ".join(filter(None, (f"{metric.title} against depth", load)))
    drawing = plots.curves(
        title, "depth", f"{metric.title}, {metric.unit}", _lines(subject, rows, line)
    )
    return Chart(f"depth-{metric.key.replace('_', '-')}{suffix}", title, drawing)
