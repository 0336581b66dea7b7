"""One OSD: its classes, queues, stages, store, throttles, threads, device, slow operations."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import ONE_OSD, quantiles, top

_OSD: Final = f"{{{ONE_OSD}}}"


def _class(series: str, legend: str = "{{class}}", condition: str = "") -> Query:
    return Query(f"max by (class) ({series}{_OSD}{condition})", legend)


def _rate(series: str, by: str, more: str = "") -> str:
    return f"max by ({by}) (rate({series}{{{ONE_OSD}{more}}}[$__rate_interval]))"


VIOLATED: Final = _class("osd_class:cephqos_violated:bool")
ATTAINMENT: Final = Query(
    f"max by (class) (osd_class:cephqos_attained_ops:rate{_OSD})"
    f" / max by (class) (osd_class:cephqos_owed_ops{_OSD} > 0)"
    f" and on (class) osd_class:cephqos_demand:bool{_OSD} == 1",
    "{{class}}",
)
CAUSE: Final = Query(
    f"max by (class, cause, by) (osd_class:cephqos_main_cause{_OSD})", "{{class}}: {{cause}} {{by}}"
)
SCHEDULER: Final = Query(
    "max by (in_force, profile, media, capacity_origin, promise)"
    f" (cephqos_qos_scheduler_info{_OSD})",
    name="info",
)
UP: Final = Query(f"max(cephqos_daemon_up{_OSD})", "answers")

WORK: Final = (
    Query(
        f'max by (class) (osd_class:cephqos_attained_ops:rate{{{ONE_OSD}, class!="immediate"}})',
        "{{class}}",
    ),
    Query(
        f'max(osd_class:cephqos_attained_ops:rate{{{ONE_OSD}, class="immediate"}})',
        "immediate (replica writes)",
    ),
    Query(f"max(osd:cephqos_capacity_ops{_OSD})", "capacity"),
    _class("osd_class:cephqos_reserved_ops", "{{class}} reservation", " > 0"),
    _class("osd_class:cephqos_limit_ops", "{{class}} limit", " > 0"),
)
OWED: Final = (
    _class("osd_class:cephqos_owed_ops", "{{class}} owed"),
    Query(
        f"max by (class) (osd_class:cephqos_shortfall_ops:rate{_OSD})"
        f" and on (class) osd_class:cephqos_demand:bool{_OSD} == 1",
        "{{class}} missing",
    ),
)
QUEUES: Final = Query(
    f"max by (class, shard) (cephqos_qos_queue_length{_OSD}) > 0", "{{class}} {{shard}}"
)
LAG: Final = (
    Query(
        f"max by (class, shard) (cephqos_qos_reservation_lag_seconds{_OSD}) > 0",
        "{{class}} {{shard}}",
    ),
    Query(
        f"max by (class, shard) (cephqos_qos_limit_hold_seconds{_OSD}) > 0",
        "{{class}} {{shard}} held by its limit",
    ),
)
_BUCKETS: Final = (
    "max by (le) (rate(cephqos_osd_op_latency_seconds_bucket"
    f'{{{ONE_OSD}, op="write"}}[$__rate_interval]))'
)
LATENCY: Final = tuple(
    Query(quantiles(_BUCKETS, share), f"write {name}")
    for name, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99}.items()
)


def _mean(total: str, count: str) -> str:
    return f"{_rate(total, 'ceph_daemon')} / ({_rate(count, 'ceph_daemon')} > 0)"


STAGES: Final = (
    Query(
        _mean("cephqos_qos_store_seconds_total", "cephqos_qos_store_transactions_total"),
        "in the store, per transaction",
    ),
    Query(
        _mean("cephqos_qos_store_kv_commit_seconds_total", "cephqos_qos_store_kv_commits_total"),
        "key-value commit, per batch",
    ),
    Query(f"max(osd:cephqos_device_latency_seconds:rate{_OSD})", "device, per request"),
    Query(
        f"{_rate('cephqos_qos_client_wait_seconds_total', 'ceph_daemon')}"
        " / on (ceph_daemon) (sum by (ceph_daemon)"
        f" ({_rate('cephqos_osd_op_latency_seconds_count', 'ceph_daemon, op')}) > 0)",
        "before the scheduler lets it go, per operation",
    ),
)
STORE: Final = (
    Query(_rate("cephqos_qos_store_seconds_total", "ceph_daemon"), "transactions in the store"),
    Query(_rate("cephqos_qos_client_wait_seconds_total", "ceph_daemon"), "client ops waiting"),
    Query(f"max(cephqos_qos_client_ops_in_progress{_OSD})", "client ops in progress"),
)
THROTTLES: Final = Query(
    f"max by (throttle) (cephqos_qos_throttle_used_ratio{_OSD})", "{{throttle}}"
)
THROTTLE_WAIT: Final = Query(
    _rate("cephqos_qos_throttle_wait_seconds_total", "throttle"), "{{throttle}}"
)
THREADS: Final = Query(
    top(f"sum by (group) ({_rate('cephqos_threads_cpu_seconds_total', 'group, mode')})", "group"),
    "{{group}}",
)
BUSIEST: Final = Query(
    top(_rate("cephqos_threads_busiest_cpu_seconds_total", "group"), "group"), "{{group}}"
)
_DEVICE: Final = ', layer="osd"'
DEVICE_TIME: Final = Query(
    f"{_rate('cephqos_disks_time_seconds_total', 'device, role, op', _DEVICE)}"
    f" / ({_rate('cephqos_disks_ops_total', 'device, role, op', _DEVICE)} > 0)",
    "{{role}} {{device}} {{op}}",
)
DEVICE_RATE: Final = Query(
    _rate("cephqos_disks_ops_total", "device, role, op", _DEVICE), "{{role}} {{device}} {{op}}"
)
DEVICE_DEPTH: Final = (
    Query(
        _rate("cephqos_disks_weighted_seconds_total", "device, role", _DEVICE),
        "{{role}} {{device}} depth",
    ),
)
SLOW: Final = (
    Query(f"max(cephqos_ops_blocked{_OSD})", "blocked now"),
    Query(_rate("cephqos_ops_slow_total", "ceph_daemon") + " * 60", "slow per minute"),
)
OLDEST: Final = Query(f"max(cephqos_ops_oldest_age_seconds{_OSD})", "oldest operation")
LOGS: Final = '{cluster="$cluster", log="osd"} | ceph_daemon="$osd"'
