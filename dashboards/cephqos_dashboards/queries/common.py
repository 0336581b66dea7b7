"""Parts that queries share: variables of the dashboards, matchers, and PromQL functions.

`$cluster` is the cluster that the user chose. `$detail` is the same, and empty for a cluster that
is too large to read its OSDs one by one: queries with DETAIL then find nothing.
"""

import re
from typing import Final

from cephqos_base.causes import CAUSES
from cephqos_base.recorded import PerCluster
from cephqos_base.series import DaemonSeries
from cephqos_dashboards.panels import PanelQuery

# Above this many OSDs, a cluster shows only its sums and those of its hosts.
MOST_OSDS: Final = 5000
TOP: Final = 10  # lines and bars that a panel draws at most
ROWS: Final = 20  # rows that a table shows at most

CLUSTERS: Final = f"label_values({DaemonSeries.UP}, cluster)"
OSDS_OF_CLUSTER: Final = (
    f'label_values({DaemonSeries.UP}{{cluster="$cluster", ceph_daemon=~"osd.*"}}, ceph_daemon)'
)
# The value of `$detail`. Without our rules, no cluster counts as large.
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


# Rates and holds look back over several evaluations of the rules: before that, causes are guesses.
# Evaluations are counted, not seconds: in the demo rules are evaluated fifteen times as often.
_FIRST_EVALUATIONS: Final = 12
ENOUGH: Final = f"count_over_time({PerCluster.OSDS}{{{CLUSTER}}}[15m]) >= {_FIRST_EVALUATIONS}"


def cause_in_words(expr: str) -> str:
    """The label `cause` as a person reads it: `other_osd` -> `other OSD`."""
    for cause in CAUSES:
        if cause.words != cause.name:
            expr = f'label_replace({expr}, "cause", "{cause.words}", "cause", "{cause.name}")'
    return expr


def rate_once(selector: str, series: str, by: str, more: str = "") -> str:
    """A rate in which an OSD that two exporters read counts once; `more`: further matchers."""
    return f"max by ({by}) (rate({series}{{{selector}{more}}}[$__rate_interval]))"


def quantiles(buckets: str, share: float) -> str:
    """The quantile of a histogram; absent, not NaN, where there was no operation."""
    return f"histogram_quantile({share:g}, {buckets}) >= 0"


SLOW_WINDOW: Final = "2m"  # for rates of counters that do not change at every scrape
_RATE_WINDOW: Final = re.compile(rf"\[(?:\$__rate_interval|{SLOW_WINDOW})\]")
# A series with a selector and no window.
_GAUGE: Final = re.compile(r"([a-z_:][\w:]*\{[^}]*\})(?!\[)")


def top(expr: str, by: str) -> str:
    """The ten lines that are highest over the whole time range, the same at every point of it.

    A plain `topk` chooses again at each point: a panel then draws everything that was ever among
    the first. So the choice is made by the same expression over the whole range, at its end.
    """
    over_range = _RATE_WINDOW.sub("[$__range] @ end()", expr)
    if over_range == expr:  # no rate: gauges
        over_range = _GAUGE.sub(r"max_over_time(\1[$__range] @ end())", expr)
    return f"({expr}) and on ({by}) topk({TOP}, {over_range})"


def highest(expr: str, by: str, legend: str = "") -> PanelQuery:
    """Lines chosen by `top`. Without a legend, their names are the values of those labels."""
    names = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return PanelQuery(top(expr, by), legend or names)


TENANT_NAME: Final = "{{kind}} {{tenant}}"


def tenants_named(expr: str) -> str:
    """With the pool's number before the tenant: 3/image. The kind `other` has neither."""
    joined = f'label_join({expr}, "tenant", "/", "pool_id", "tenant")'
    return f'label_replace({joined}, "tenant", "", "tenant", "/")'


def or_say(expr: str, label: str, text: str) -> str:
    """The expression, or one row without a figure that says in this label why there is none. An
    empty table of several queries would say "No data"."""
    return f"""
    {expr.strip()}
    or label_replace(vector(NaN) unless on () ({expr.strip()}), "{label}", "{text}", "", "")
    """
