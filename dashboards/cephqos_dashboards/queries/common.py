"""Parts that queries share."""

import re
from typing import Final

from cephqos_base.recorded import PerCluster
from cephqos_base.series import DaemonSeries

# So many OSDs are read one by one; a larger cluster shows its sums and those of its hosts.
MOST_OSDS: Final = 5000
# So many lines, rows and bars a panel draws at most.
TOP: Final = 10
ROWS: Final = 20

CLUSTERS: Final = f"label_values({DaemonSeries.UP}, cluster)"
OSDS_OF_CLUSTER: Final = (
    f'label_values({DaemonSeries.UP}{{cluster="$cluster", ceph_daemon=~"osd.*"}}, ceph_daemon)'
)
# Works without our rules, too.
DETAIL_OF_CLUSTER: Final = (
    f'query_result(group by (cluster) ({DaemonSeries.UP}{{cluster="$cluster"}})'
    f' unless on (cluster) {PerCluster.OSDS}{{cluster="$cluster"}} > {MOST_OSDS})'
)

CLUSTER: Final = 'cluster="$cluster"'
DETAIL: Final = 'cluster="$detail"'
ONE_OSD: Final = 'cluster="$cluster", ceph_daemon="$osd"'
ALL_OF: Final = "cluster, ceph_daemon, class"

CRITICAL_ALERTS: Final = (
    "max by (alertname, ceph_daemon, class)"
    f' (ALERTS{{{CLUSTER}, alertstate="firing", severity="critical"}})'
)

NO_RULES: Final = (
    "Or Prometheus does not answer, or has not loaded the rules of cephqos (alerts/rules)."
)
TOO_LARGE: Final = (
    f"(For a cluster with more than {MOST_OSDS:,} OSDs, only sums and hosts are shown.)"
)


# Rates and holds look back over several evaluations: before that, causes are guesses. Counted, and
# not timed, as the demo's rules evaluate fifteen times as often.
_FIRST_EVALUATIONS: Final = 12
ENOUGH: Final = f"count_over_time({PerCluster.OSDS}{{{CLUSTER}}}[15m]) >= {_FIRST_EVALUATIONS}"


def in_words(expr: str, label: str) -> str:
    """The value of a label without underscores."""
    return f'label_replace({expr}, "{label}", "$1 $2", "{label}", "(.+)_(.+)")'


def rate_once(selector: str, series: str, by: str, more: str = "") -> str:
    """A rate in which two exporters that see the same count once; `more`: further matchers."""
    return f"max by ({by}) (rate({series}{{{selector}{more}}}[$__rate_interval]))"


def quantiles(buckets: str, share: float) -> str:
    """Absent, not NaN, where there was no operation."""
    return f"histogram_quantile({share:g}, {buckets}) >= 0"


SLOW_WINDOW: Final = "2m"  # of what is not read at every scrape
_WINDOW: Final = re.compile(rf"\[(?:\$__rate_interval|{SLOW_WINDOW})\]")
_GAUGE: Final = re.compile(r"([a-z_:][\w:]*\{[^}]*\})(?!\[)")


def top(expr: str, by: str) -> str:
    """The lines that are highest over the whole time range, the same at every point of it.

    A plain `topk` chooses again at each point: a panel then draws everything that was ever among
    the first.
    """
    over = _WINDOW.sub("[$__range] @ end()", expr)
    if over == expr:
        over = _GAUGE.sub(r"max_over_time(\1[$__range] @ end())", expr)
    return f"({expr}) and on ({by}) topk({TOP}, {over})"


TENANT_NAME: Final = "{{kind}} {{tenant}}"


def tenants_named(expr: str) -> str:
    """With the pool before the tenant; `other` has neither."""
    joined = f'label_join({expr}, "tenant", "/", "pool_id", "tenant")'
    return f'label_replace({joined}, "tenant", "", "tenant", "/")'


def or_say(expr: str, label: str, text: str) -> str:
    """A table of several queries that is empty would say "No data": one row says why instead."""
    return f"""
    {expr.strip()}
    or label_replace(vector(0) unless on () ({expr.strip()}), "{label}", "{text}", "", "")
    """
