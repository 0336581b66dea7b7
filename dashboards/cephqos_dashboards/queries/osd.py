"""One OSD: its classes, queues, stages, store, throttles, threads, device, slow operations."""

from typing import Final

from cephqos_base.recorded import PerClass, PerMedia, PerOsd
from cephqos_base.series import Daemon, Disks, Network, Op, Ops, Qos, Threads, bucket, count
from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import CLUSTER, ONE_OSD, SLOW_WINDOW, quantiles, top

_OSD: Final = f"{{{ONE_OSD}}}"


def _class(series: str, legend: str = "{{class}}", condition: str = "") -> Query:
    return Query(f"max by (class) ({series}{_OSD}{condition})", legend)


def _rate(series: str, by: str, more: str = "") -> str:
    return f"max by ({by}) (rate({series}{{{ONE_OSD}{more}}}[$__rate_interval]))"


VIOLATED: Final = _class(PerClass.VIOLATED)
ATTAINMENT: Final = Query(
    f"max by (class) ({PerClass.ATTAINED_OPS}{_OSD})"
    f" / max by (class) ({PerClass.OWED_OPS}{_OSD} > 0)"
    f" and on (class) {PerClass.DEMAND}{_OSD} == 1",
    "{{class}}",
)
CAUSE: Final = Query(
    f"max by (class, cause, by) ({PerClass.MAIN_CAUSE}{_OSD})", "{{class}}: {{cause}} {{by}}"
)
SCHEDULER: Final = Query(
    f"max by (in_force, profile, media, capacity_origin, promise) ({Qos.SCHEDULER_INFO}{_OSD})",
    name="info",
)
UP: Final = Query(f"max({Daemon.UP}{_OSD})", "answers")

WORK: Final = (
    Query(
        f'max by (class) ({PerClass.ATTAINED_OPS}{{{ONE_OSD}, class!="immediate"}})',
        "{{class}}",
    ),
    Query(
        f'max({PerClass.ATTAINED_OPS}{{{ONE_OSD}, class="immediate"}})',
        "immediate (replica writes)",
    ),
    Query(f"max({PerOsd.CAPACITY_OPS}{_OSD})", "capacity"),
    _class(PerClass.RESERVED_OPS, "{{class}} reservation", " > 0"),
    _class(PerClass.LIMIT_OPS, "{{class}} limit", " > 0"),
)
OWED: Final = (
    _class(PerClass.OWED_OPS, "{{class}} owed"),
    Query(
        f"max by (class) ({PerClass.SHORTFALL_OPS}{_OSD})"
        f" and on (class) {PerClass.DEMAND}{_OSD} == 1",
        "{{class}} missing",
    ),
)
QUEUES: Final = Query(
    f"max by (class, shard) ({Qos.QUEUE_LENGTH}{_OSD}) > 0", "{{class}} {{shard}}"
)
LAG: Final = (
    Query(
        f"max by (class, shard) ({Qos.RESERVATION_LAG_SECONDS}{_OSD}) > 0",
        "{{class}} {{shard}}",
    ),
    Query(
        f"max by (class, shard) ({Qos.LIMIT_HOLD_SECONDS}{_OSD}) > 0",
        "{{class}} {{shard}} held by its limit",
    ),
)
_BUCKETS: Final = (
    f'max by (le) (rate({bucket(Op.LATENCY_SECONDS)}{{{ONE_OSD}, op="write"}}[$__rate_interval]))'
)
LATENCY: Final = tuple(
    Query(quantiles(_BUCKETS, share), f"write {name}")
    for name, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99}.items()
)


def _mean(total: str, count: str) -> str:
    return f"{_rate(total, 'ceph_daemon')} / ({_rate(count, 'ceph_daemon')} > 0)"


STAGES: Final = (
    Query(
        _mean(Qos.STORE_SECONDS, Qos.STORE_TRANSACTIONS),
        "in the store, per transaction",
    ),
    Query(
        _mean(Qos.STORE_KV_COMMIT_SECONDS, Qos.STORE_KV_COMMITS),
        "key-value commit, per batch",
    ),
    Query(f"max({PerOsd.DEVICE_LATENCY_SECONDS_RATE}{_OSD})", "device, per request"),
    Query(
        f"{_rate(Qos.CLIENT_WAIT_SECONDS, 'ceph_daemon')}"
        " / on (ceph_daemon) (sum by (ceph_daemon)"
        f" ({_rate(count(Op.LATENCY_SECONDS), 'ceph_daemon, op')}) > 0)",
        "before the scheduler lets it go, per operation",
    ),
)
STORE: Final = (
    Query(_rate(Qos.STORE_SECONDS, "ceph_daemon"), "transactions in the store"),
    Query(_rate(Qos.CLIENT_WAIT_SECONDS, "ceph_daemon"), "client ops waiting"),
    Query(f"max({Qos.CLIENT_OPS_IN_PROGRESS}{_OSD})", "client ops in progress"),
)
THROTTLES: Final = Query(f"max by (throttle) ({Qos.THROTTLE_USED_RATIO}{_OSD})", "{{throttle}}")
THROTTLE_WAIT: Final = Query(_rate(Qos.THROTTLE_WAIT_SECONDS, "throttle"), "{{throttle}}")
THREADS: Final = Query(
    top(f"sum by (group) ({_rate(Threads.CPU_SECONDS, 'group, mode')})", "group"),
    "{{group}}",
)
BUSIEST: Final = Query(top(_rate(Threads.BUSIEST_CPU_SECONDS, "group"), "group"), "{{group}}")
_DEVICE: Final = ', layer="osd"'
DEVICE_TIME: Final = Query(
    f"{_rate(Disks.TIME_SECONDS, 'device, role, op', _DEVICE)}"
    f" / ({_rate(Disks.OPS, 'device, role, op', _DEVICE)} > 0)",
    "{{role}} {{device}} {{op}}",
)
DEVICE_RATE: Final = Query(
    _rate(Disks.OPS, "device, role, op", _DEVICE), "{{role}} {{device}} {{op}}"
)
DEVICE_DEPTH: Final = (
    Query(
        _rate(Disks.WEIGHTED_SECONDS, "device, role", _DEVICE),
        "{{role}} {{device}} depth",
    ),
)
SLOW: Final = (
    Query(f"max({Ops.BLOCKED}{_OSD})", "blocked now"),
    Query(_rate(Ops.SLOW, "ceph_daemon") + " * 60", "slow per minute"),
)
OLDEST: Final = Query(f"max({Ops.OLDEST_AGE_SECONDS}{_OSD})", "oldest operation")
# Where sampled operations waited, as shares of all their waiting. They are sampled every ten
# seconds at most, so the window does not follow the scrape interval.
_SAMPLED: Final = _rate(Ops.SAMPLED_WAIT_SECONDS, "kind, event, peer", ', kind="client"').replace(
    "$__rate_interval", SLOW_WINDOW
)
WAITS: Final = Query(
    top(f"sum by (event, peer) ({_SAMPLED}) / on () group_left () sum({_SAMPLED})", "event, peer"),
    "{{event}} {{peer}}",
)
REPLICA_WRITES: Final = (
    Query(_mean(Qos.REPLICA_WRITE_SECONDS, Qos.REPLICA_WRITES), "replica write, receipt to commit"),
    Query(_mean(Qos.STORE_SECONDS, Qos.STORE_TRANSACTIONS), "any transaction in the store"),
    Query(
        f"max({PerMedia.REPLICA_WRITE_SECONDS}{{{CLUSTER}}})",
        "replica write, median of the cluster's OSDs",
    ),
)
PINGS: Final = (
    Query(
        f'max by (interface) ({Network.PING_WORST_SECONDS}{{{ONE_OSD}, window="1m"}})',
        "{{interface}} worst peer",
    ),
    Query(
        f'max by (interface) ({Network.PING_MEDIAN_SECONDS}{{{ONE_OSD}, window="1m"}})',
        "{{interface}} median",
    ),
    Query(f"max({Network.SLOW_BOUND_SECONDS}{_OSD})", "slow from here on"),
)
PEERS: Final = Query(
    f"max by (interface, peer) ({Network.WORST_PEER_INFO}{_OSD})", "{{interface}}: {{peer}}"
)
LOGS: Final = '{cluster="$cluster", log="osd"} | ceph_daemon="$osd"'
