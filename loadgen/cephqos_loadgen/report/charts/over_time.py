"""The charts over time: what happened in one repeat, second by second.

A chart shows the lines of `tracks` in panels over one axis of time, the phases as bars above them,
when scrub and recovery were active behind them, and the main causes as strips below.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from cephqos_base.series import QosSeries
from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.charts import plot_time
from cephqos_loadgen.report.charts.plot_time import Band, Panel, Strip, line_of, stretches
from cephqos_loadgen.report.charts.tracks import RATE_SECONDS, Track, tracks_of
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn

MOST_TIMELINES: Final = 12
# A repeat of more seconds than this is drawn in longer steps: the drawing has no more pixels.
_MOST_POINTS: Final = 600
# Panels of rates over RATE_SECONDS: their title says so, because such a line lags behind.
_AVERAGED: Final = ("background", "attained")


def timelines(subject: Subject) -> Iterator[Chart]:
    """A chart of the first finished repeat of each point, for MOST_TIMELINES points at most."""
    first_repeats = [
        (subject.point_label(run, point), observed)
        for run in subject.runs
        for point, observed in run.first_repeats.items()
        if len(observed.intervals.middles)
    ]
    for number, (label, observed) in enumerate(first_repeats[:MOST_TIMELINES], start=1):
        yield timeline(observed, label, number)


def timeline(observed: Observation, label: str, number: int) -> Chart:
    """The chart of one repeat, with its data as a table for the CSV file."""
    record = observed.record
    start = record.start_unix_seconds
    seconds = record.end_unix_seconds - start
    step = max(1.0, float(np.ceil(seconds / _MOST_POINTS)))
    times = np.arange(step / 2, seconds, step)  # the middle of each step, since `start`
    tracks = [track for track in tracks_of(observed, times, step) if track.is_known]
    phases = [
        Band(name, phase.start_unix_seconds - start, phase.end_unix_seconds - start)
        for name, phase in record.phases.items()
    ]
    active = [
        Band(work, begin - start, end - start)
        for work, spans in observed.stretches.items()
        for begin, end in spans
    ]
    title = f"Over time: {label}, repeat {record.repeat}"
    panels = list(_panels(times, tracks))
    drawing = plot_time.over_time(title, panels, phases, active, strips(observed), seconds)
    name = f"time-{number:02d}"
    columns = [
        (TableColumn(f"{track.panel}, {track.name}", track.unit), track.values) for track in tracks
    ]
    return Chart(name, title, drawing, data_of(name, title, times, columns))


def _panels(times: Floats, tracks: Sequence[Track]) -> Iterator[Panel]:
    """One panel for each name of a panel among the tracks, in their order."""
    step = float(times[1] - times[0]) if len(times) > 1 else 0.0
    for name in dict.fromkeys(track.panel for track in tracks):
        in_panel = [track for track in tracks if track.panel == name]
        only_line = f" of {in_panel[0].name}" if len(in_panel) == 1 else ""
        averaged = f", mean of {RATE_SECONDS:.0f} s" if name in _AVERAGED else ""
        title = f"{name}{only_line}, {in_panel[0].unit}{averaged}"
        lines = [line_of(track.name, times, track.values) for track in in_panel]
        yield Panel(title, lines, step)


def data_of(
    chart: str, title: str, times: Floats, columns: Sequence[tuple[TableColumn, Floats]]
) -> Table:
    """The lines of a chart as a table: a row for each time, a column for each line."""
    rows = tuple(
        (Cell(f"{time:.1f}", float(time)), *(_cell(values[index]) for _, values in columns))
        for index, time in enumerate(times)
    )
    heads = (TableColumn("Time", "s"), *(column for column, _ in columns))
    return Table(f"chart-{chart}", title, heads, rows)


def _cell(value: float) -> Cell:
    # Six digits: CSV files of an hour stay readable.
    return Cell(f"{value:.6g}", float(f"{value:.6g}")) if np.isfinite(value) else Cell("", None)


def strips(observed: Observation) -> list[Strip]:
    """One strip per class and cause: on how many OSDs it was the main one at each second."""
    start = observed.record.start_unix_seconds
    causes = observed.causes or ()
    reporting = observed.samples.of(QosSeries.OPS)
    all_osds = {series.labels.get("ceph_daemon") for series in reporting}
    all_osds |= {cause.osd for cause in causes}
    osds_by_second: dict[tuple[str, str], dict[int, set[str]]] = {}  # by class and cause
    for cause in causes:
        osds_at = osds_by_second.setdefault((cause.work, cause.cause), {})
        for time in cause.times:
            osds_at.setdefault(round(float(time) - start), set()).add(cause.osd)
    drawn = []
    for (work, cause_name), osds_at in sorted(osds_by_second.items()):
        seconds = sorted(osds_at)
        counts = [len(osds_at[second]) for second in seconds]
        class_name = work.removeprefix("background_").replace("_", " ")
        spans = stretches(seconds, counts)
        drawn.append(Strip(f"{class_name}: {cause_name}", spans, len(all_osds)))
    return drawn
