"""Scrub and recovery: how far, how fast, how long still, and who pays."""

from typing import Final

from cephqos_base.recorded import PerClusterClass
from cephqos_base.series import Cluster, Op, Recovery, Scrub, count, total
from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, or_say, top


def _pools(series: str, by: str = "pool", selector: str = CLUSTER) -> str:
    return f"max by ({by}) ({series}{{{selector}}})"


_LEFT: Final = (
    f"{_pools(Recovery.POOL_DEGRADED_OBJECTS)} + {_pools(Recovery.POOL_MISPLACED_OBJECTS)}"
)
COPIES_LEFT: Final = Query(f"sum({_LEFT})", "copies to recover")
RECOVERY_ETA: Final = Query(f"max({_pools(Recovery.POOL_ETA_SECONDS)})", "recovery is done in")
OVERDUE: Final = Query(
    f'sum(max by (pool, level) ({Scrub.POOL_SCHEDULE_PGS}{{cluster="$cluster", state="overdue"}}))',
    "overdue scrubs",
)
SCRUB_ETA: Final = Query(
    f"max by (level) ({_pools(Scrub.POOL_BACKLOG_ETA_SECONDS, 'pool, level')})",
    "{{level}}",
)
UNFOUND: Final = Query(f"sum({_pools(Recovery.POOL_UNFOUND_OBJECTS)})", "unfound objects")
SCRUBBING: Final = Query(f"max by (level) ({Scrub.CLUSTER_PGS}{{{CLUSTER}}})", "{{level}} scrubs")
FLAGS: Final = Query(f"max by (flag) ({Cluster.FLAG}{{{CLUSTER}}}) > 0", "{{flag}}")

REMAINING: Final = (
    Query(top(_pools(Recovery.POOL_DEGRADED_OBJECTS) + " > 0", "pool"), "{{pool}} degraded"),
    Query(
        top(_pools(Recovery.POOL_MISPLACED_OBJECTS) + " > 0", "pool"),
        "{{pool}} misplaced",
    ),
)
RECOVERY_RATE: Final = Query(top(_pools(Recovery.POOL_OBJECTS_PER_SECOND), "pool"), "{{pool}}")
RECOVERY_STATES: Final = Query(
    f"max by (state) ({Recovery.CLUSTER_PGS}{{{CLUSTER}}}) > 0", "{{state}}"
)
RECOVERY_SLOTS: Final = (
    Query(
        "sum by (side, state) (max by (ceph_daemon, side, state, kind)"
        f" ({Recovery.RESERVATIONS}{{{DETAIL}}}))",
        "{{side}} {{state}}",
    ),
    Query(
        f"sum by (side) (max by (ceph_daemon, side) ({Recovery.RESERVATIONS_MAX}{{{DETAIL}}}))",
        "{{side}} limit",
    ),
)

_RUNNING: Final = Scrub.POOL_RUNNING_OBJECTS
SCRUB_PROGRESS: Final = (
    Query(f"sum by (level) ({_pools(_RUNNING + '_done', 'pool, level')})", "{{level}} done"),
    Query(f"sum by (level) ({_pools(_RUNNING + '_left', 'pool, level')})", "{{level}} left"),
)
SCRUB_RATE: Final = Query(
    top(_pools(Scrub.POOL_OBJECTS_PER_SECOND, "pool, level"), "pool, level"),
    "{{pool}} {{level}}",
)
SCHEDULE: Final = Query(
    "sum by (level, state)"
    f' (max by (pool, level, state) ({Scrub.POOL_SCHEDULE_PGS}{{cluster="$cluster"}}))',
    "{{level}} {{state}}",
)
OLDEST: Final = (
    Query(
        or_say(
            _pools(Scrub.POOL_OLDEST_SECONDS, "pool, level"),
            "pool",
            "no cluster role",
        ),
        name="oldest",
    ),
    Query(_pools(Scrub.POOL_INTERVAL_SECONDS, "pool, level"), name="interval"),
    Query(_pools(Scrub.POOL_OVERDUE_AFTER_SECONDS, "pool, level"), name="overdue"),
    Query(_pools(Scrub.POOL_BACKLOG_OBJECTS, "pool, level"), name="backlog"),
    Query(_pools(Scrub.POOL_ALLOWED, "pool, level"), name="allowed"),
)
SCRUB_SLOTS: Final = (
    Query(
        f"sum by (side) (max by (ceph_daemon, side) ({Scrub.RESERVATIONS}{{{DETAIL}}}))",
        "{{side}}",
    ),
    Query(
        f"sum(max by (ceph_daemon) ({Scrub.RESERVATIONS_MAX}{{{DETAIL}}}))",
        "each side limit",
    ),
)
SCRUB_TROUBLE: Final = (
    Query(
        "sum(max by (ceph_daemon, pool_type)"
        f" (rate({Scrub.RESERVATION_FAILURES}{{{DETAIL}}}[$__rate_interval])))",
        "no replica had a slot",
    ),
    Query(
        "sum(max by (ceph_daemon, level, pool_type)"
        f" (rate({Scrub.WRITES_BLOCKED}{{{DETAIL}}}[$__rate_interval])))",
        "client writes that waited",
    ),
    Query(
        "sum(max by (ceph_daemon, level, pool_type)"
        f" (rate({Scrub.PREEMPTIONS}{{{DETAIL}}}[$__rate_interval])))",
        "chunks given up for a client",
    ),
)

_MEAN: Final = (
    "sum(max by (ceph_daemon, op)"
    f" (rate({total(Op.LATENCY_SECONDS)}{{{DETAIL}}}[$__rate_interval])))"
    " / (sum(max by (ceph_daemon, op)"
    f" (rate({count(Op.LATENCY_SECONDS)}{{{DETAIL}}}[$__rate_interval]))) > 0)"
)
WHO_PAYS: Final = (
    Query(_MEAN, "mean latency of clients"),
    Query(
        f'max by (class) ({PerClusterClass.ATTAINED_OPS}{{cluster="$cluster",'
        ' class=~"background_.*|client"})',
        "{{class}} work",
    ),
)
