"""Scrub and recovery: how far, how fast, how long still, and who pays."""

from functools import partial
from typing import Final

from cephqos_base.recorded import PerHostClass
from cephqos_base.series import (
    BalanceSeries,
    ClusterSeries,
    OpSeries,
    RecoverySeries,
    ScrubSeries,
    SnapTrimSeries,
    count,
    total,
)
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, ROWS, highest, or_say, rate_once

_rate: Final = partial(rate_once, DETAIL)


def _pools(series: str, by: str = "pool") -> str:
    """One series for each pool, even if two exporters report the cluster."""
    return f"max by ({by}) ({series}{{{CLUSTER}}})"


_COPIES_LEFT: Final = (
    f"{_pools(RecoverySeries.POOL_DEGRADED_OBJECTS)}"
    f" + {_pools(RecoverySeries.POOL_MISPLACED_OBJECTS)}"
)
COPIES_LEFT: Final = PanelQuery(f"sum({_COPIES_LEFT})", "copies to recover")
RECOVERY_ETA: Final = PanelQuery(
    f'max by (bound) ({RecoverySeries.CLUSTER_ETA_SECONDS}{{cluster="$cluster"}})', "{{bound}}"
)
OVERDUE: Final = PanelQuery(
    f"sum(max by (pool, level) ({ScrubSeries.POOL_SCHEDULE_PGS}"
    f'{{cluster="$cluster", state="overdue"}}))',
    "overdue scrubs",
)
SCRUB_ETA: Final = PanelQuery(
    f"max by (level) ({ScrubSeries.POOL_BACKLOG_ETA_SECONDS}{{{CLUSTER}, bound='likely'}})",
    "{{level}}",
)
UNFOUND: Final = PanelQuery(
    f"sum({_pools(RecoverySeries.POOL_UNFOUND_OBJECTS)})", "unfound objects"
)
SCRUBBING: Final = PanelQuery(
    f"max by (level) ({ScrubSeries.CLUSTER_PGS}{{{CLUSTER}}})", "{{level}} scrubs"
)
_FLAG: Final = f"{ClusterSeries.FLAG}{{{CLUSTER}}}"
FLAGS: Final = PanelQuery(
    f"""
    max by (flag) ({_FLAG}) > 0
    or on () label_replace(0 * max({_FLAG}), "flag", "any flag", "", "")
    """,
    "{{flag}}",
)

REMAINING: Final = (
    highest(_pools(RecoverySeries.POOL_DEGRADED_OBJECTS) + " > 0", "pool", "{{pool}} degraded"),
    highest(_pools(RecoverySeries.POOL_MISPLACED_OBJECTS) + " > 0", "pool", "{{pool}} misplaced"),
)
RECOVERY_RATE: Final = highest(_pools(RecoverySeries.POOL_OBJECTS_PER_SECOND), "pool")
RECOVERY_STATES: Final = PanelQuery(
    f"max by (state) ({RecoverySeries.CLUSTER_PGS}{{{CLUSTER}}}) > 0", "{{state}}"
)
RECOVERY_SLOTS: Final = (
    PanelQuery(
        "sum by (side, state) (max by (ceph_daemon, side, state, kind)"
        f" ({RecoverySeries.SLOTS}{{{DETAIL}}}))",
        "{{side}} {{state}}",
    ),
    PanelQuery(
        f"sum by (side) (max by (ceph_daemon, side) ({RecoverySeries.SLOTS_MAX}{{{DETAIL}}}))",
        "{{side}} limit",
    ),
)

SCRUB_PROGRESS: Final = (
    PanelQuery(
        f"sum by (level) ({_pools(ScrubSeries.POOL_RUNNING_OBJECTS_DONE, 'pool, level')})",
        "{{level}} done",
    ),
    PanelQuery(
        f"sum by (level) ({_pools(ScrubSeries.POOL_RUNNING_OBJECTS_LEFT, 'pool, level')})",
        "{{level}} left",
    ),
)
SCRUB_RATE: Final = highest(
    _pools(ScrubSeries.POOL_OBJECTS_PER_SECOND, "pool, level"), "pool, level"
)
SCHEDULE: Final = PanelQuery(
    "sum by (level, state)"
    f' (max by (pool, level, state) ({ScrubSeries.POOL_SCHEDULE_PGS}{{cluster="$cluster"}}))',
    "{{level}} {{state}}",
)
OLDEST: Final = (
    PanelQuery(
        or_say(_pools(ScrubSeries.POOL_OLDEST_SECONDS, "pool, level"), "pool", "no cluster role"),
        name="oldest",
    ),
    PanelQuery(_pools(ScrubSeries.POOL_INTERVAL_SECONDS, "pool, level"), name="interval"),
    PanelQuery(_pools(ScrubSeries.POOL_OVERDUE_AFTER_SECONDS, "pool, level"), name="overdue"),
    PanelQuery(_pools(ScrubSeries.POOL_BACKLOG_OBJECTS, "pool, level"), name="backlog"),
    PanelQuery(_pools(ScrubSeries.POOL_ALLOWED, "pool, level"), name="allowed"),
)
SCRUB_SLOTS: Final = (
    PanelQuery(
        f"sum by (side) (max by (ceph_daemon, side) ({ScrubSeries.SLOTS}{{{DETAIL}}}))", "{{side}}"
    ),
    PanelQuery(
        f"sum(max by (ceph_daemon) ({ScrubSeries.SLOTS_MAX}{{{DETAIL}}}))", "each side limit"
    ),
)
SCRUB_TROUBLE: Final = (
    PanelQuery(
        f"sum({_rate(ScrubSeries.SLOT_FAILURES, 'ceph_daemon, pool_type')})",
        "no replica had a slot",
    ),
    PanelQuery(
        f"sum({_rate(ScrubSeries.WRITES_BLOCKED, 'ceph_daemon, level, pool_type')})",
        "client writes that waited",
    ),
    PanelQuery(
        f"sum({_rate(ScrubSeries.PREEMPTIONS, 'ceph_daemon, level, pool_type')})",
        "chunks given up for a client",
    ),
)

_MEAN: Final = (
    f"sum({_rate(total(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')})"
    f" / (sum({_rate(count(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')}) > 0)"
)
WHO_PAYS: Final = (
    PanelQuery(_MEAN, "mean latency of clients"),
    PanelQuery(
        f'sum by (class) ({PerHostClass.OPS}{{cluster="$cluster", figure="attained",'
        ' class=~"background_.*|client"})',
        "{{class}} work",
    ),
)


def _osds(series: str, over: str = "") -> str:
    return f"max by (ceph_daemon) ({series}{{{DETAIL}}}{over})"


_USED: Final = _osds(BalanceSeries.USED_RATIO)
_FULLEST: Final = f"topk({ROWS}, {_USED})"
_FULL_AT: Final = f'scalar(max({BalanceSeries.FULL_RATIO}{{{CLUSTER}, level="full"}}))'
_GREW: Final = f"({_USED} - {_osds(BalanceSeries.USED_RATIO, ' offset 1d')} > 0)"


def _of_fullest(expr: str) -> str:
    return f"{expr} and on (ceph_daemon) {_FULLEST}"


SPACE: Final = (
    PanelQuery(or_say(_FULLEST, "reason", "no cluster role"), name="used"),
    PanelQuery(_of_fullest(f"86400 * ({_FULL_AT} - {_USED}) / {_GREW}"), name="left"),
    PanelQuery(_of_fullest(_osds(BalanceSeries.PGS)), name="pgs"),
    PanelQuery(_of_fullest(_osds(BalanceSeries.PGS_RATIO)), name="share"),
    PanelQuery(_of_fullest(_osds(BalanceSeries.PRIMARIES)), name="primaries"),
)
READ_SCORES: Final = highest(_pools(BalanceSeries.READ_SCORE), "pool")
SNAPSHOTS: Final = highest(_pools(SnapTrimSeries.POOL_SNAPSHOTS) + " > 0", "pool")
