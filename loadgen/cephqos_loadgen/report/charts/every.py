"""The charts of a report, in the order of the page."""

from collections.abc import Iterator

from cephqos_loadgen.report.charts.of_points import curve_charts, dots_chart, percentiles_chart
from cephqos_loadgen.report.charts.over_time import timelines
from cephqos_loadgen.report.charts.overlaid import overlaid
from cephqos_loadgen.report.charts.surface import surfaces
from cephqos_loadgen.report.charts.trade import trades
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import background_rows


def charts(subject: Subject) -> Iterator[Chart]:
    """The main chart first: what clients kept against how long other work took, else throughput of
    each point."""
    yield from trades(subject)
    loads = subject.main_loads
    if loads:
        yield dots_chart(subject, loads, metrics.IOPS, "throughput", "Client throughput")
        if any(metrics.P99.key in row.figures for row in loads):
            yield percentiles_chart(subject, loads)
    if subject.steps:
        yield from curve_charts(subject, subject.steps)
    for metric, name in (
        (metrics.SCRUB_SECONDS, "scrub-time"),
        (metrics.RECOVERY_SECONDS, "recovery-time"),
        (metrics.RECOVERY_OBJECT_RATE, "recovery-rate"),
    ):
        rows = [row for row in background_rows(subject) if metric.key in row.figures]
        if rows:
            yield dots_chart(subject, rows, metric, name, metric.title)
    yield from overlaid(subject)
    yield from surfaces(subject)
    yield from timelines(subject)
