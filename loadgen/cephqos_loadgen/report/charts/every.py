"""The charts of a report, in the order of the page."""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.charts.core_map import core_maps
from cephqos_loadgen.report.charts.of_points import (
    cpu_chart,
    curves_chart,
    dots_chart,
    percentiles_chart,
)
from cephqos_loadgen.report.charts.over_time import timelines
from cephqos_loadgen.report.charts.surface import surfaces
from cephqos_loadgen.report.charts.trade import trades
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND
from cephqos_loadgen.report.subject import Subject

_MOST_DOTS: Final = 24  # points that a first screen holds


def charts(subject: Subject) -> Iterator[Chart]:
    """The main chart first: what clients kept against how long other work took, else throughput of
    each point, or surfaces where there are too many."""
    yield from trades(subject)
    loads = subject.main_loads
    maps = list(surfaces(subject))
    if maps and len(loads) > _MOST_DOTS:
        yield from maps
        maps = []
    if loads:
        yield dots_chart(subject, loads, metrics.IOPS, "throughput", "Client throughput")
        if any(metrics.P99.key in row.figures for row in loads):
            yield percentiles_chart(subject, loads)
    if subject.steps:
        yield curves_chart(subject, subject.steps)
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
