"""A test run: its phases, clients, OSDs, devices and CPU, live or replayed, and a second run.

`$run` and `$second` are the runs that the user chose. Series of the run itself have its label
`run`. Series of OSDs have it only in a replay from an archive, so those without it are read, too
(`run=~"|…"`), and a maximum per OSD makes one of two. The second run is read `$shift` seconds
earlier or later, so that both runs begin at the same place on the axis.
"""

from functools import partial
from typing import Final

from cephqos_base.series import (
    ClientSeries,
    DisksSeries,
    OpSeries,
    QosSeries,
    RunSeries,
    ThreadsSeries,
    bucket,
    count,
    total,
)
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import or_say, quantiles, rate_once
from cephqos_dashboards.theme import SECOND_RUN

START: Final = RunSeries.START_TIMESTAMP_SECONDS
RUNS: Final = f"label_values({RunSeries.INFO}, run)"
CLUSTERS: Final = f'label_values({RunSeries.INFO}{{run="$run"}}, cluster)'
# The choices of the second run: first "(none)", then the runs of the last month.
SECOND_RUNS: Final = (
    f'query_result(group by (run) (last_over_time({START}{{run=~".+"}}[30d]))'
    ' or label_replace(vector(1), "run", "(none)", "", ""))'
)
# Seconds between the starts of the two runs; 1 without a second run, or if they are equal.
SHIFT: Final = (
    "query_result(round("
    f'max(max_over_time({START}{{run="$run"}}[30d]))'
    f' - max(max_over_time({START}{{run="$second"}}[30d]))'
    ") != 0 or vector(1))"
)

RUN: Final = 'run="$run"'
_OF_RUN: Final = f"{{{RUN}}}"  # series of the run itself
OSDS_OF_RUN: Final = 'cluster="$cluster", run=~"|$run"'
_SECOND_RUN: Final = 'run="$second"'
_OSDS_OF_SECOND_RUN: Final = 'run=~"|$second"'

PHASE: Final = f'max by (phase) ({RunSeries.INFO}{{{RUN}, phase!=""}})'
WHERE: Final = PanelQuery(
    f"max by (scenario, point, repeat) ({RunSeries.INFO}{_OF_RUN})",
    "{{scenario}}: {{point}}, repeat {{repeat}}",
)
PHASES: Final = PanelQuery(
    f"{PHASE} or label_replace(vector(0) unless on ()"
    f" count(last_over_time({RunSeries.INFO}{_OF_RUN}[$__range] @ end())),"
    ' "phase", "no phase", "", "")',
    "{{phase}}",
)
PROGRESS: Final = PanelQuery(
    f"max({RunSeries.REPEATS_DONE}{_OF_RUN}) / max({RunSeries.REPEATS}{_OF_RUN})", "repeats done"
)
REMAINING: Final = PanelQuery(f"max({RunSeries.REMAINING_SECONDS}{_OF_RUN})", "to the end")
FILL: Final = PanelQuery(
    f"max by (pool, unit) ({RunSeries.FILL_RATIO}{_OF_RUN})", "{{pool}} {{unit}}"
)


def both_runs(expr: str, legend: str) -> tuple[PanelQuery, PanelQuery]:
    """An expression, and the same of a second run, moved by `$shift`, while that was under way."""
    second = expr.replace(OSDS_OF_RUN, _OSDS_OF_SECOND_RUN).replace(RUN, _SECOND_RUN)
    moved = second.replace("}[$__rate_interval]", "}[$__rate_interval] offset ${shift}s")
    if moved == second:  # no rate
        moved = second.replace("}", "} offset ${shift}s")
    moved += f" and on () max({START}{{{_SECOND_RUN}}} offset ${{shift}}s)"
    return PanelQuery(expr, legend), PanelQuery(moved, f"{SECOND_RUN}{legend}")


_LATENCY: Final = (
    f"sum by (load, le) (rate({bucket(ClientSeries.LATENCY_SECONDS)}{_OF_RUN}[$__rate_interval]))"
)
IOPS: Final = both_runs(f"sum by (load, op) ({ClientSeries.IOPS}{_OF_RUN})", "{{load}} {{op}}")
P99: Final = both_runs(quantiles(_LATENCY, 0.99), "{{load}} p99")
P50: Final = PanelQuery(quantiles(_LATENCY, 0.5), "{{load}} p50")
MEAN: Final = PanelQuery(
    f"avg by (load) ({ClientSeries.LATENCY_MEAN_SECONDS}{_OF_RUN})", "{{load}} mean"
)

_rate: Final = partial(rate_once, OSDS_OF_RUN)
WORK: Final = both_runs(
    f"sum by (class) ({_rate(QosSeries.OPS, 'ceph_daemon, class')})", "{{class}}"
)
OSD_LATENCY: Final = both_runs(
    f"sum({_rate(total(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')})"
    f" / (sum({_rate(count(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')}) > 0)",
    "mean of all OSDs",
)
_DISKS: Final = ', layer="osd"'
DEVICE_TIME: Final = both_runs(
    "sum("
    + _rate(DisksSeries.TIME_SECONDS, "ceph_daemon, device, op", _DISKS)
    + ") / (sum("
    + _rate(DisksSeries.OPS, "ceph_daemon, device, op", _DISKS)
    + ") > 0)",
    "mean of all devices",
)
CPU: Final = both_runs(
    f"sum({_rate(ThreadsSeries.CPU_SECONDS, 'ceph_daemon, group, mode')})", "all OSDs"
)
BUSIEST: Final = PanelQuery(
    "max("
    + _rate(ThreadsSeries.BUSIEST_CPU_SECONDS, "ceph_daemon, group", ', group!="reactor"')
    + ")",
    "busiest thread",
)
BACKGROUND: Final = (
    PanelQuery(f"max({RunSeries.SCRUB_LEFT_OBJECTS}{_OF_RUN})", "objects to scrub"),
    PanelQuery(f"max({RunSeries.RECOVERY_LEFT_OBJECTS}{_OF_RUN})", "copies to recover"),
)
# Points laid over one another, each by the seconds since its load `$load` started. All queries have
# the label point. The panel joins two, so that the seconds are its axis. 5 s: points meet in a row.
_STARTED: Final = (
    f'max by (point) ({RunSeries.PHASE_START_TIMESTAMP_SECONDS}{{{RUN}, phase="$load"}})'
)
LOADS: Final = f"label_values({ClientSeries.IOPS}{_OF_RUN}, load)"
NO_POINT: Final = "none"


def _or_none(expr: str) -> str:
    """The panel refuses a result without the labels and values that it joins by."""
    return or_say(expr, "point", NO_POINT)


def _by_point(expr: str) -> tuple[PanelQuery, PanelQuery]:
    """One figure of the run as that of the point that is running; before it, the seconds since."""
    value = f"{_STARTED} * 0 + on () group_left () ({expr})"
    since = f"round(time() - {_STARTED}, 5) and on (point) ({value})"
    return PanelQuery(_or_none(since), name="since"), PanelQuery(_or_none(value), name="value")


_OF_LOAD: Final = f'{{{RUN}, load="$load"}}'
IOPS_BY_POINT: Final = _by_point(f"sum({ClientSeries.IOPS}{_OF_LOAD})")
MEAN_BY_POINT: Final = _by_point(f"avg({ClientSeries.LATENCY_MEAN_SECONDS}{_OF_LOAD})")
SCRUBBED_BY_POINT: Final = _by_point(f"max({RunSeries.SCRUBBED_OBJECTS}{_OF_RUN})")
RECOVERED_BY_POINT: Final = _by_point(f"max({RunSeries.RECOVERED_OBJECTS}{_OF_RUN})")
EVENTS: Final = (
    '{cluster="$cluster", log="run"} | run="$run" | json | line_format `{{.event}} {{.phase}}'
    "{{if .action}} ({{.action}}){{end}}{{if .ended_by}}, ended by {{.ended_by}}{{end}}"
    "{{if .error}}: {{.error}}{{end}}`"
)
