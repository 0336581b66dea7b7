"""How long clients wait: as OSDs measure it, as fio and the probe see it, against objectives."""

from typing import Final

from cephqos_base.recorded import PerSlo
from cephqos_base.series import Client, Op, Ops, Probe, bucket, count, total
from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, quantiles, top

SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
OPS: Final = ("read", "write", "rw")

_BUCKETS: Final = (
    f"sum by (le) (max by (ceph_daemon, le) (rate({bucket(Op.LATENCY_SECONDS)}"
    f'{{{DETAIL}, op="OP"}}[$__rate_interval])))'
)


def percentiles(op: str) -> tuple[Query, ...]:
    buckets = _BUCKETS.replace("OP", op)
    return tuple(Query(quantiles(buckets, share), name) for name, share in SHARES.items())


def heat(op: str) -> Query:
    """Buckets without operations too: Grafana says "No data" in a heat map without any series."""
    return Query(_BUCKETS.replace("OP", op), "{{le}}")


NOW: Final = tuple(
    Query(quantiles(_BUCKETS.replace("OP", op), 0.99), f"{op} p99") for op in ("read", "write")
)
RATE: Final = Query(
    "sum by (op) (max by (ceph_daemon, op)"
    f" (rate({count(Op.LATENCY_SECONDS)}{{{DETAIL}}}[$__rate_interval])))",
    "{{op}}",
)
BUDGET: Final = Query(
    f"min by (slo, pool, load) ({PerSlo.BUDGET_LEFT}{{{CLUSTER}}})",
    "{{slo}} {{pool}} {{load}}",
)
BURN: Final = Query(
    f"""
    max by (slo, window) ({PerSlo.ERRORS}{{{CLUSTER}, window=~"5m|1h|6h|3d"}})
    / on (slo) group_left () (1 - max by (slo) ({PerSlo.OBJECTIVE}))
    """,
    "{{slo}} over {{window}}",
)
TOO_SLOW: Final = Query(
    f"""
    1 - sum by (slo) ({PerSlo.GOOD}{{{CLUSTER}}})
    / (sum by (slo) ({PerSlo.TOTAL}{{{CLUSTER}}}) > 0)
    """,
    "{{slo}}",
)


def _client(metric: str, by: str, op: str = "write") -> str:
    return f'sum by ({by}) (rate({metric}_bucket{{{CLUSTER}, op="{op}"}}[$__rate_interval]))'


def views(op: str) -> tuple[Query, ...]:
    """The same operations as the OSD, the probe and fio see them."""
    return (
        Query(quantiles(_BUCKETS.replace("OP", op), 0.99), "OSD p99"),
        Query(quantiles(_client(Probe.LATENCY_SECONDS, "le", op), 0.99), "probe p99"),
        Query(quantiles(_client(Client.LATENCY_SECONDS, "le", op), 0.99), "fio p99"),
        Query(quantiles(_BUCKETS.replace("OP", op), 0.5), "OSD p50"),
        Query(quantiles(_client(Probe.LATENCY_SECONDS, "le", op), 0.5), "probe p50"),
        Query(quantiles(_client(Client.LATENCY_SECONDS, "le", op), 0.5), "fio p50"),
    )


PROBE_FAILURES: Final = Query(
    f"sum by (pool, op, reason) (rate({Probe.FAILURES}{{{CLUSTER}}}[$__rate_interval]))",
    "{{pool}} {{op}} {{reason}}",
)


def _rate(series: str) -> str:
    return f"(rate({series}{{{DETAIL}}}[$__rate_interval]))"


SLOWEST: Final = Query(
    top(
        f"""
    max by (ceph_daemon) (
      sum by (ceph_daemon, instance) {_rate(total(Op.LATENCY_SECONDS))}
      / (sum by (ceph_daemon, instance) {_rate(count(Op.LATENCY_SECONDS))} > 0)
    )
    """,
        "ceph_daemon",
    ),
    "{{ceph_daemon}}",
)
SLOW_OPS: Final = Query(
    top(f"max by (ceph_daemon) ({Ops.BLOCKED}{{{DETAIL}}}) > 0", "ceph_daemon"),
    "{{ceph_daemon}}",
)
