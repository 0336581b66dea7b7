"""One OSD: its classes, queues, stages, store, throttles, threads, device, slow operations."""

from functools import partial
from typing import Final

from cephqos_base.recorded import PerClass, PerOsd, PerOsdPlace
from cephqos_base.series import (
    AccountSeries,
    DaemonSeries,
    DisksSeries,
    NetworkSeries,
    OpSeries,
    OpsSeries,
    QosSeries,
    ThreadsSeries,
    bucket,
    count,
)
from cephqos_dashboards.logs import OSD_LOG
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import (
    ONE_OSD,
    highest,
    quantiles,
    rate_once,
)

_OSD: Final = f"{{{ONE_OSD}}}"
_rate: Final = partial(rate_once, ONE_OSD)


def _class(series: str, legend: str = "{{class}}", condition: str = "") -> PanelQuery:
    return PanelQuery(f"max by (class) ({series}{_OSD}{condition})", legend)


VIOLATED: Final = _class(PerClass.VIOLATED)
ATTAINMENT: Final = _class(PerClass.EFFECTIVE_ATTAINMENT)
# Demand has a cause at once, and a main cause when one has lasted.
CAUSE: Final = PanelQuery(
    f"""
    max by (class, cause, by) ({PerClass.MAIN_CAUSE}{_OSD})
    or on (class) label_replace(max by (class) ({PerClass.CAUSE}{_OSD}), "cause", "begins", "", "")
    """,
    "{{class}}: {{cause}} {{by}}",
)
SCHEDULER: Final = PanelQuery(
    f"max by (in_force, profile, media, capacity_origin, reservations) "
    f"({QosSeries.SCHEDULER_INFO}{_OSD})",
    name="info",
)
UP: Final = PanelQuery(f"max({DaemonSeries.UP}{_OSD})", "answers")

WORK: Final = (
    PanelQuery(
        f'max by (class) ({PerClass.ATTAINED_OPS}{{{ONE_OSD}, class!="immediate"}})', "{{class}}"
    ),
    PanelQuery(
        f'max({PerClass.ATTAINED_OPS}{{{ONE_OSD}, class="immediate"}})',
        "immediate (replica writes)",
    ),
    PanelQuery(f"max({PerOsd.CAPACITY_OPS}{_OSD})", "capacity"),
    _class(PerClass.RESERVED_OPS, "{{class}} reservation (dashed)", " > 0"),
    _class(QosSeries.LIMIT_OPS, "{{class}} limit (dotted)", " > 0"),
)
EFFECTIVE_RESERVATION: Final = (
    _class(PerClass.EFFECTIVE_RESERVATION_OPS, "{{class}} effective reservation (dashed)"),
    PanelQuery(
        f"max by (class) ({PerClass.SHORTFALL_OPS}{_OSD})"
        f" and on (class) {PerClass.DEMAND}{_OSD} == 1",
        "{{class}} shortfall (filled)",
    ),
)
QUEUES: Final = PanelQuery(
    f"max by (class, shard) ({QosSeries.QUEUE_LENGTH}{_OSD}) > 0", "{{class}} {{shard}}"
)
LAG: Final = (
    PanelQuery(
        f"max by (class, shard) ({QosSeries.RESERVATION_LAG_SECONDS}{_OSD}) > 0",
        "{{class}} {{shard}}",
    ),
    PanelQuery(
        f"max by (class, shard) ({QosSeries.LIMIT_WAIT_SECONDS}{_OSD}) > 0",
        "{{class}} {{shard}} waits for its limit",
    ),
)
_BUCKETS: Final = _rate(bucket(OpSeries.LATENCY_SECONDS), "le", ', op="write"')
LATENCY: Final = tuple(
    PanelQuery(quantiles(_BUCKETS, share), f"write {name}")
    for name, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99}.items()
)


def _mean(total: str, count: str) -> str:
    return f"{_rate(total, 'ceph_daemon')} / ({_rate(count, 'ceph_daemon')} > 0)"


STAGES: Final = (
    PanelQuery(
        _mean(QosSeries.STORE_SECONDS, QosSeries.STORE_TRANSACTIONS),
        "in the store, per transaction",
    ),
    PanelQuery(
        _mean(QosSeries.STORE_KV_COMMIT_SECONDS, QosSeries.STORE_KV_COMMITS),
        "key-value commit, per batch",
    ),
    PanelQuery(f'max({PerOsdPlace.SECONDS}{{{ONE_OSD}, at="device"}})', "device, per request"),
    PanelQuery(
        f"{_rate(QosSeries.CLIENT_WAIT_SECONDS, 'ceph_daemon')}"
        " / on (ceph_daemon) (sum by (ceph_daemon)"
        f" ({_rate(count(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')}) > 0)",
        "waiting before the scheduler, per operation",
    ),
)
STORE: Final = (
    PanelQuery(_rate(QosSeries.STORE_SECONDS, "ceph_daemon"), "transactions in the store"),
    PanelQuery(_rate(QosSeries.CLIENT_WAIT_SECONDS, "ceph_daemon"), "client ops waiting"),
    PanelQuery(f"max({QosSeries.CLIENT_OPS_IN_PROGRESS}{_OSD})", "client ops in progress"),
)
THROTTLES: Final = PanelQuery(
    f"max by (throttle) ({QosSeries.THROTTLE_USED_RATIO}{_OSD})", "{{throttle}}"
)
THROTTLE_WAIT: Final = PanelQuery(
    _rate(QosSeries.THROTTLE_WAIT_SECONDS, "throttle"), "{{throttle}}"
)
THREADS: Final = highest(
    f"sum by (group) ({_rate(ThreadsSeries.CPU_SECONDS, 'group, mode')})", "group"
)
BUSIEST: Final = highest(_rate(ThreadsSeries.BUSIEST_CPU_SECONDS, "group"), "group")
_DEVICE: Final = ', layer="osd"'
DEVICE_TIME: Final = PanelQuery(
    f"{_rate(DisksSeries.TIME_SECONDS, 'device, role, op', _DEVICE)}"
    f" / ({_rate(DisksSeries.OPS, 'device, role, op', _DEVICE)} > 0)",
    "{{role}} {{device}} {{op}}",
)
DEVICE_RATE: Final = PanelQuery(
    _rate(DisksSeries.OPS, "device, role, op", _DEVICE), "{{role}} {{device}} {{op}}"
)
DEVICE_DEPTH: Final = (
    PanelQuery(
        _rate(DisksSeries.WEIGHTED_SECONDS, "device, role", _DEVICE), "{{role}} {{device}} depth"
    ),
)
SLOW: Final = (
    PanelQuery(f"max({OpsSeries.BLOCKED}{_OSD})", "blocked now"),
    PanelQuery(_rate(OpsSeries.SLOW, "ceph_daemon") + " * 60", "slow per minute"),
)
OLDEST: Final = PanelQuery(f"max({OpsSeries.OLDEST_AGE_SECONDS}{_OSD})", "oldest operation")
# Seconds per client operation, by where they are spent.
ACCOUNT: Final = PanelQuery(
    f"{_rate(AccountSeries.SECONDS, 'state, by')} / on () group_left ()"
    f" (sum({_rate(count(OpSeries.LATENCY_SECONDS), 'op')}) > 0)",
    "{{state}} {{by}}",
)
REPLICA_WRITES: Final = (
    PanelQuery(
        _mean(QosSeries.REPLICA_WRITE_SECONDS, QosSeries.REPLICA_WRITES),
        "replica write, receipt to commit",
    ),
    PanelQuery(
        _mean(QosSeries.STORE_SECONDS, QosSeries.STORE_TRANSACTIONS), "any transaction in the store"
    ),
    PanelQuery(
        f'max({PerOsdPlace.SECONDS}{{{ONE_OSD}, at="replica_write"}}'
        f" / on (cluster, ceph_daemon) ({PerOsd.REPLICA_SLOWNESS}{_OSD} > 0))",
        "replica write, median of its peers",
    ),
)
PINGS: Final = (
    PanelQuery(
        f'max by (interface) ({NetworkSeries.PING_WORST_SECONDS}{{{ONE_OSD}, window="1m"}})',
        "{{interface}} worst peer",
    ),
    PanelQuery(
        f'max by (interface) ({NetworkSeries.PING_MEDIAN_SECONDS}{{{ONE_OSD}, window="1m"}})',
        "{{interface}} median",
    ),
    PanelQuery(f"max({NetworkSeries.SLOW_BOUND_SECONDS}{_OSD})", "slow from here on"),
)
LOGS: Final = OSD_LOG
