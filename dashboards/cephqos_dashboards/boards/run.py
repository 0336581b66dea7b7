"""A test run, live or replayed: client, OSD, device and CPU below one another on one time axis."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.common import BigValueTextMode
from grafana_foundation_sdk.models.dashboard import VariableHide

from cephqos_base import dashboards
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import TAG, Annotation, Board, BoardRow, SentAnnotation
from cephqos_dashboards.panels import bars, figure, lines, log_lines, overlaid, states, wide
from cephqos_dashboards.queries import run
from cephqos_dashboards.theme import Unit

_NO_RUN = "No run is shown: choose one, and a time range in which it was under way."
_NO_OSDS = "No exporter's series of this run's cluster in this time range."

_NOW = (
    figure(
        run.WHERE,
        title="Running now",
        reads="Scenario, point of the matrix, repeat.",
        empty="no run now",
        width=10,
        mappings=theme.mapped({"1": ("running", theme.GOOD)}),
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    bars(
        run.PROGRESS,
        title="Repeats done",
        reads="Of all repeats of all points of the matrix.",
        empty="no run now",
        width=5,
        height=4,
        unit=Unit.RATIO,
        minimum=0,
        maximum=1,
        decimals=0,
        thresholds=theme.steps((None, theme.GOOD)),
    ),
    figure(
        run.REMAINING,
        title="Time left",
        reads="Estimated from the repeats that are done.",
        empty="not known",
        width=4,
        unit=Unit.SECONDS,
        decimals=0,
    ),
    bars(
        run.FILL,
        title="Pools being filled",
        reads="How much of a pool's prefill is written.",
        empty="no pool",
        width=5,
        height=4,
        unit=Unit.RATIO,
        minimum=0,
        maximum=1,
        thresholds=theme.steps((None, theme.GOOD)),
    ),
    states(
        run.PHASES,
        title="Phases",
        reads="One row per phase. The same phases are marked in every panel below.",
        empty=_NO_RUN,
        width=24,
        height=7,
        mappings=theme.mapped(
            {"0": ("no run in this time range", theme.QUIET), "1": ("phase runs", theme.GOOD)}
        ),
    ),
)

# A second run is dashed, to distinguish the two.
_SECOND = (theme.second_run_override(),)

# Whole width, one below the other, with the same time axis.
_ON_ONE_AXIS = wide(
    lines(
        *run.IOPS,
        title="Clients: operations per second",
        reads="By load and kind, as the load generator counts it. A second run is moved so "
        "that both begin at the same place.",
        empty=_NO_RUN,
        unit=Unit.IOPS,
        overrides=_SECOND,
        aligned=True,
    ),
    lines(
        *run.P99,
        run.P50,
        run.MEAN,
        title="Clients: latency",
        reads="99th and 50th percentile of completion at the client, and the mean.",
        blind="percentiles of rados bench, which has no histogram.",
        empty=_NO_RUN,
        unit=Unit.SECONDS,
        overrides=_SECOND,
        aligned=True,
        log=True,
    ),
    lines(
        *run.WORK,
        title="OSDs: work by class",
        reads="Normalised operations per second of all OSDs, by class.",
        empty=_NO_OSDS,
        unit=Unit.OPS,
        overrides=_SECOND,
        aligned=True,
        classes=True,
    ),
    lines(
        *run.OSD_LATENCY,
        title="OSDs: latency",
        reads="Mean over all OSDs and kinds of operations. The client's minus this is network "
        "and client.",
        empty=_NO_OSDS,
        height=7,
        unit=Unit.SECONDS,
        overrides=_SECOND,
        aligned=True,
    ),
    lines(
        *run.DEVICE_TIME,
        title="Devices: time per request",
        reads="Mean over all devices of OSDs.",
        empty=_NO_OSDS,
        height=7,
        unit=Unit.SECONDS,
        overrides=_SECOND,
        aligned=True,
    ),
    lines(
        *run.CPU,
        run.BUSIEST,
        title="CPU: all OSDs, and the busiest thread",
        reads="CPUs that all OSDs use together; 1 is a thread at its ceiling.",
        empty=_NO_OSDS,
        height=7,
        unit=Unit.CPUS,
        overrides=_SECOND,
        aligned=True,
    ),
    lines(
        *run.BACKGROUND,
        title="Scrub and recovery of this run",
        reads="Objects that the run's scrub and recovery phases have left.",
        empty="No run is shown that scrubs or recovers at this time.",
        height=7,
        aligned=True,
    ),
)

_NO_LOAD = "This load has not run in this time range. Choose another, or a longer range."
# Points (policies) over one another, from the start of each one's own load, also during the run.
_OVERLAID = (
    overlaid(
        *run.IOPS_BY_POINT,
        by="point",
        none=run.NO_POINT,
        title="Clients' operations per second",
        reads="A line for each point of the matrix, over the seconds since its load started; of "
        "several repeats the last.",
        empty=_NO_LOAD,
        unit=Unit.IOPS,
    ),
    overlaid(
        *run.MEAN_BY_POINT,
        by="point",
        none=run.NO_POINT,
        title="Clients' mean latency",
        reads="A line for each point of the matrix, over the seconds since its load started.",
        empty=_NO_LOAD,
        unit=Unit.SECONDS,
    ),
    overlaid(
        *run.SCRUBBED_BY_POINT,
        by="point",
        none=run.NO_POINT,
        title="Objects scrubbed",
        reads="A line for each point of the matrix, over the seconds since the load started. Its "
        "slope is the rate of the scrub.",
        blind="a replayed run: archives do not have this figure second by second.",
        empty="No scrub beside this load in this time range.",
    ),
    overlaid(
        *run.RECOVERED_BY_POINT,
        by="point",
        none=run.NO_POINT,
        title="Objects recovered",
        reads="A line for each point of the matrix, over the seconds since the load started. Its "
        "slope is the rate of recovery.",
        blind="a replayed run: archives do not have this figure second by second.",
        empty="No recovery beside this load in this time range.",
    ),
)

_EVENTS = (
    log_lines(
        run.EVENTS,
        title="Events of the run",
        reads="What the load generator sent to Loki: phases, repeats, failures.",
        empty="Loki has no event of this run in this time range.",
        width=24,
        height=10,
    ),
)


def _variables() -> tuple[dashboard.QueryVariable, ...]:
    second = frame.query_variable(
        "second", run.SECOND_RUNS, label="Second run", regex='/run="([^"]+)"/'
    )
    shift = frame.query_variable("shift", run.SHIFT, regex=r"/\{\} (-?[0-9]+)/")
    return (
        frame.query_variable("run", run.RUNS, label="Run"),
        frame.query_variable("cluster", run.CLUSTERS, label="Cluster"),
        second,
        shift.hide(VariableHide.HIDE_VARIABLE),
        frame.query_variable("load", run.LOADS, label="Load"),
    )


BOARD = Board(
    uid=dashboards.RUN,
    title="Test run",
    about="A test run, live or replayed: client, OSD, device and CPU on one time axis.",
    rows=(
        BoardRow("Progress", _NOW),
        BoardRow("One time axis", _ON_ONE_AXIS),
        BoardRow("Points over one another, from the start of the load", _OVERLAID),
        BoardRow("Events of the run (needs Loki)", _EVENTS, collapsed=True),
    ),
    logs=True,
    variables=_variables(),
    annotations=(
        Annotation("Phases", run.PHASE, "{{phase}}", theme.QUIET, step="5s"),
        # Phases are there already.
        SentAnnotation((TAG, "trial_block_started")),
    ),
    since="now-30m",
    of_a_cluster=False,
)
