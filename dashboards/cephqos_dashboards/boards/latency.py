"""Client latency and SLO: how long clients wait, and how much of the error budget is left."""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import AnyPanel, figure, heat, lines
from cephqos_dashboards.queries import latency
from cephqos_dashboards.queries.common import NO_RULES, TOO_LARGE
from cephqos_dashboards.theme import Unit

_NO_OPS = f"No operation of this kind was completed in this time range. {TOO_LARGE}"

_BUDGET = (
    figure(
        *latency.NOW,
        title="99 of 100 operations are faster than",
        reads="The 99th percentile over the last minute, over all OSDs.",
        blind="network and client: OSDs start the clock when they receive an operation.",
        empty="no operation seen",
        width=8,
        height=5,
        unit=Unit.SECONDS,
    ),
    figure(
        latency.BUDGET,
        title="Error budget left",
        reads="""The share of the error budget of the SLO's whole window (30 days by default)
            that is not spent. 0 or less: the objective is missed.""",
        blind="what was before Prometheus began to record.",
        empty="not enough data yet",
        width=8,
        height=5,
        unit=Unit.RATIO,
        thresholds=theme.BUDGET,
        decimals=0,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    lines(
        latency.RATE,
        title="Operations per second",
        reads="Client operations that OSDs completed as primary, by kind.",
        empty=_NO_OPS,
        width=8,
        height=5,
        unit=Unit.IOPS,
    ),
    lines(
        *latency.BURN_FAST,
        title="Burn rate of the error budget, last hour",
        reads="""At 1 the budget lasts exactly as long as the SLO's window. Red dashed line: an
            alert fires when both lines of an SLO are above it.""",
        empty=f"Not enough data yet: fewer than 100 operations. {NO_RULES}",
        unit=Unit.NONE,
        decimals=1,
        overrides=theme.bound_overrides(),
    ),
    lines(
        latency.TOO_SLOW,
        title="Share of operations that are too slow",
        reads="Operations of the last minute that took longer than the SLO's threshold.",
        empty=f"Not enough data yet. {NO_RULES}",
        unit=Unit.RATIO,
    ),
)


def _as_osds_measure(op: str, name: str) -> tuple[AnyPanel, ...]:
    return (
        lines(
            *latency.percentiles(op),
            title=f"{name}: percentiles",
            reads="""Latency as OSDs measure it, over all OSDs. Logarithmic axis. Percentiles
                are exact to the width of a bucket (a factor of 2).""",
            empty=_NO_OPS,
            height=9,
            unit=Unit.SECONDS,
            log=True,
        ),
        heat(
            latency.heat(op),
            title=f"{name}: how they spread",
            reads="""Operations per second in each bucket of latency. Two bands
                are two kinds of operations, for example hits and misses of a cache.""",
            empty=_NO_OPS,
            height=9,
            unit=Unit.SECONDS,
        ),
    )


_SLOW_BURN = (
    lines(
        *latency.BURN_SLOW,
        title="Burn rate of the error budget, last days",
        reads="""The windows of the alerts that can wait. Red dashed line: an alert fires when
            both lines of an SLO are above it.""",
        blind="anything before Prometheus has data for the whole window.",
        empty=f"Not enough data yet. {NO_RULES}",
        width=24,
        unit=Unit.NONE,
        decimals=1,
        overrides=theme.bound_overrides(),
    ),
)


def _three_views(op: str) -> AnyPanel:
    return lines(
        *latency.views(op),
        title=f"{op.capitalize()}s: the OSD's view, the probe's and fio's",
        reads="""The same operations measured at three places. What the client sees above the
            OSD is network and client.""",
        blind="""clients that are neither the probe nor a test run's fio. rados bench has no
            histogram. Differences of percentiles are no exact times: compare their sizes only.""",
        empty="Neither OSDs nor a probe nor fio report operations of this kind.",
        unit=Unit.SECONDS,
        log=True,
    )


_WHERE_SLOW = (
    lines(
        latency.SLOWEST,
        title="Slowest OSDs, mean of all operations",
        reads="The OSDs with the highest mean latency. A slow one among fast ones stands out.",
        empty=_NO_OPS,
        unit=Unit.SECONDS,
        link=frame.OSD_OF_SERIES,
    ),
    lines(
        latency.SLOW_OPS,
        title="OSDs with blocked operations",
        reads="Operations in progress for longer than osd_op_complaint_time (30 s by default).",
        empty=f"No operation is blocked, or the collector ops is off. {TOO_LARGE}",
        link=frame.OSD_OF_SERIES,
    ),
    lines(
        latency.PROBE_FAILURES,
        title="The probe's failures",
        reads="Operations of the probe that failed or timed out, by pool and reason.",
        empty="No operation of a probe failed, or no exporter has the role probe.",
        width=24,
        height=6,
        unit=Unit.IOPS,
    ),
)

BOARD = Board(
    uid=dashboards.LATENCY,
    title="Client latency & SLO",
    about="How long do clients wait, and how much of the error budget is left?",
    rows=(
        BoardRow("Objectives", _BUDGET),
        BoardRow("Error budget over days", _SLOW_BURN, collapsed=True),
        BoardRow(
            "As OSDs measure it",
            (*_as_osds_measure("write", "Writes"), *_as_osds_measure("read", "Reads")),
        ),
        BoardRow("As clients see it", (_three_views("write"), _three_views("read"))),
        BoardRow("Where it is slow", _WHERE_SLOW),
        BoardRow(
            "Operations that read and write at once (rw)",
            _as_osds_measure("rw", "rw"),
            collapsed=True,
        ),
    ),
    annotations=(frame.critical_alerts(),),
)
