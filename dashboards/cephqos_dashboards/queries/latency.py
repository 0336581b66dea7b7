"""How long clients wait: as OSDs measure it, as fio and the probe see it, against objectives."""

from typing import Final

from cephqos_base.recorded import PerSlo
from cephqos_base.series import ClientSeries, OpSeries, OpsSeries, ProbeSeries, bucket, count, total
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, highest, quantiles, rate_once
from cephqos_dashboards.theme import BOUND

SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
OPS: Final = ("read", "write", "rw")

# `OP` stands for read, write or rw.
_OF_OP: Final = rate_once(DETAIL, bucket(OpSeries.LATENCY_SECONDS), "ceph_daemon, le", ', op="OP"')
_BUCKETS: Final = f"sum by (le) ({_OF_OP})"


def percentiles(op: str) -> tuple[PanelQuery, ...]:
    buckets = _BUCKETS.replace("OP", op)
    return tuple(PanelQuery(quantiles(buckets, share), name) for name, share in SHARES.items())


def heat(op: str) -> PanelQuery:
    """Buckets without operations too: Grafana says "No data" in a heat map without any series."""
    return PanelQuery(_BUCKETS.replace("OP", op), "{{le}}")


NOW: Final = tuple(
    PanelQuery(quantiles(_BUCKETS.replace("OP", op), 0.99), f"{op} p99") for op in ("read", "write")
)
RATE: Final = PanelQuery(
    f"sum by (op) ({rate_once(DETAIL, count(OpSeries.LATENCY_SECONDS), 'ceph_daemon, op')})",
    "{{op}}",
)
BUDGET: Final = PanelQuery(
    f"min by (slo, pool, load) ({PerSlo.BUDGET_LEFT}{{{CLUSTER}}})", "{{slo}} {{pool}} {{load}}"
)


def _burn(windows: str) -> tuple[PanelQuery, PanelQuery]:
    """The burn rate over these windows, and the bound of their alert."""
    return (
        PanelQuery(
            f"""
    max by (slo, window) ({PerSlo.ERRORS}{{{CLUSTER}, window=~"{windows}"}})
    / on (slo) group_left () (1 - max by (slo) ({PerSlo.OBJECTIVE}))
    """,
            "{{slo}} over {{window}}",
        ),
        PanelQuery(f'min({PerSlo.BURN_BOUND}{{window=~"{windows}"}})', BOUND),
    )


BURN_FAST: Final = _burn("5m|1h")
BURN_SLOW: Final = _burn("6h|3d")
TOO_SLOW: Final = PanelQuery(
    f"""
    1 - sum by (slo) ({PerSlo.GOOD}{{{CLUSTER}}})
    / (sum by (slo) ({PerSlo.TOTAL}{{{CLUSTER}}}) > 0)
    """,
    "{{slo}}",
)


def _client_buckets(metric: str, op: str) -> str:
    """Buckets of a histogram that a client keeps: the probe, or fio of a test run."""
    return f'sum by (le) (rate({bucket(metric)}{{{CLUSTER}, op="{op}"}}[$__rate_interval]))'


def views(op: str) -> tuple[PanelQuery, ...]:
    """The same operations as the OSD, the probe and fio see them."""
    buckets = {
        "OSD": _BUCKETS.replace("OP", op),
        "probe": _client_buckets(ProbeSeries.LATENCY_SECONDS, op),
        "fio": _client_buckets(ClientSeries.LATENCY_SECONDS, op),
    }
    return tuple(
        PanelQuery(quantiles(buckets[who], SHARES[name]), f"{who} {name}")
        for name in ("p99", "p50")
        for who in buckets
    )


PROBE_FAILURES: Final = PanelQuery(
    f"sum by (pool, op, reason) (rate({ProbeSeries.FAILURES}{{{CLUSTER}}}[$__rate_interval]))",
    "{{pool}} {{op}} {{reason}}",
)


def _rate(series: str) -> str:
    return f"(rate({series}{{{DETAIL}}}[$__rate_interval]))"


SLOWEST: Final = highest(
    f"""
    max by (ceph_daemon) (
      sum by (ceph_daemon, instance) {_rate(total(OpSeries.LATENCY_SECONDS))}
      / (sum by (ceph_daemon, instance) {_rate(count(OpSeries.LATENCY_SECONDS))} > 0)
    )
    """,
    "ceph_daemon",
)
SLOW_OPS: Final = highest(
    f"max by (ceph_daemon) ({OpsSeries.BLOCKED}{{{DETAIL}}}) > 0", "ceph_daemon"
)
