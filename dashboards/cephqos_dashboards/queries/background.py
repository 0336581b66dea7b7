"""Scrub and recovery: how far, how fast, how long still, and who pays."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, top


def _pools(series: str, by: str = "pool", selector: str = CLUSTER) -> str:
    return f"max by ({by}) ({series}{{{selector}}})"


_LEFT: Final = (
    f"{_pools('cephqos_recovery_pool_degraded_objects')}"
    f" + {_pools('cephqos_recovery_pool_misplaced_objects')}"
)
COPIES_LEFT: Final = Query(f"sum({_LEFT})", "copies to recover")
RECOVERY_ETA: Final = Query(
    f"max({_pools('cephqos_recovery_pool_eta_seconds')})", "recovery is done in"
)
OVERDUE: Final = Query(
    'sum(max by (pool, level) (cephqos_scrub_pool_schedule_pgs{cluster="$cluster",'
    ' state="overdue"}))',
    "overdue scrubs",
)
SCRUB_ETA: Final = Query(
    f"max by (level) ({_pools('cephqos_scrub_pool_backlog_eta_seconds', 'pool, level')})",
    "{{level}} scrubs are done in",
)
UNFOUND: Final = Query(f"sum({_pools('cephqos_recovery_pool_unfound_objects')})", "unfound objects")
SCRUBBING: Final = Query(
    f"max by (level) (cephqos_scrub_cluster_pgs{{{CLUSTER}}})", "{{level}} scrubs"
)
FLAGS: Final = Query(f"max by (flag) (cephqos_cluster_flag{{{CLUSTER}}}) > 0", "{{flag}}")

REMAINING: Final = (
    Query(
        top(_pools("cephqos_recovery_pool_degraded_objects") + " > 0", "pool"), "{{pool}} degraded"
    ),
    Query(
        top(_pools("cephqos_recovery_pool_misplaced_objects") + " > 0", "pool"),
        "{{pool}} misplaced",
    ),
)
RECOVERY_RATE: Final = Query(
    top(_pools("cephqos_recovery_pool_objects_per_second"), "pool"), "{{pool}}"
)
RECOVERY_STATES: Final = Query(
    f"max by (state) (cephqos_recovery_cluster_pgs{{{CLUSTER}}}) > 0", "{{state}}"
)
RECOVERY_SLOTS: Final = (
    Query(
        "sum by (side, state) (max by (ceph_daemon, side, state, kind)"
        f" (cephqos_recovery_reservations{{{DETAIL}}}))",
        "{{side}} {{state}}",
    ),
    Query(
        "sum by (side) (max by (ceph_daemon, side)"
        f" (cephqos_recovery_reservations_max{{{DETAIL}}}))",
        "{{side}} limit",
    ),
)

_RUNNING: Final = "cephqos_scrub_pool_running_objects"
SCRUB_PROGRESS: Final = (
    Query(f"sum by (level) ({_pools(_RUNNING + '_done', 'pool, level')})", "{{level}} done"),
    Query(f"sum by (level) ({_pools(_RUNNING + '_left', 'pool, level')})", "{{level}} left"),
)
SCRUB_RATE: Final = Query(
    top(_pools("cephqos_scrub_pool_objects_per_second", "pool, level"), "pool, level"),
    "{{pool}} {{level}}",
)
SCHEDULE: Final = Query(
    "sum by (level, state)"
    ' (max by (pool, level, state) (cephqos_scrub_pool_schedule_pgs{cluster="$cluster"}))',
    "{{level}} {{state}}",
)
OLDEST: Final = (
    Query(_pools("cephqos_scrub_pool_oldest_seconds", "pool, level"), name="oldest"),
    Query(_pools("cephqos_scrub_pool_interval_seconds", "pool, level"), name="interval"),
    Query(_pools("cephqos_scrub_pool_overdue_after_seconds", "pool, level"), name="overdue"),
    Query(_pools("cephqos_scrub_pool_backlog_objects", "pool, level"), name="backlog"),
    Query(_pools("cephqos_scrub_pool_allowed", "pool, level"), name="allowed"),
)
SCRUB_SLOTS: Final = (
    Query(
        f"sum by (side) (max by (ceph_daemon, side) (cephqos_scrub_reservations{{{DETAIL}}}))",
        "{{side}}",
    ),
    Query(
        f"sum(max by (ceph_daemon) (cephqos_scrub_reservations_max{{{DETAIL}}}))",
        "each side limit",
    ),
)
SCRUB_TROUBLE: Final = (
    Query(
        "sum(max by (ceph_daemon, pool_type)"
        f" (rate(cephqos_scrub_reservation_failures_total{{{DETAIL}}}[$__rate_interval])))",
        "no replica had a slot",
    ),
    Query(
        "sum(max by (ceph_daemon, level, pool_type)"
        f" (rate(cephqos_scrub_writes_blocked_total{{{DETAIL}}}[$__rate_interval])))",
        "client writes that waited",
    ),
    Query(
        "sum(max by (ceph_daemon, level, pool_type)"
        f" (rate(cephqos_scrub_preemptions_total{{{DETAIL}}}[$__rate_interval])))",
        "chunks given up for a client",
    ),
)

_MEAN: Final = (
    "sum(max by (ceph_daemon, op)"
    f" (rate(cephqos_osd_op_latency_seconds_sum{{{DETAIL}}}[$__rate_interval])))"
    " / (sum(max by (ceph_daemon, op)"
    f" (rate(cephqos_osd_op_latency_seconds_count{{{DETAIL}}}[$__rate_interval]))) > 0)"
)
WHO_PAYS: Final = (
    Query(_MEAN, "mean latency of clients"),
    Query(
        'max by (class) (cluster_class:cephqos_attained_ops:sum{cluster="$cluster",'
        ' class=~"background_.*|client"})',
        "{{class}} work",
    ),
)
