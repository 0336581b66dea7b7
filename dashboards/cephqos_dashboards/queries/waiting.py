"""Where the time of client operations goes, and who waits for whom: from the account."""

from collections.abc import Sequence
from typing import Final

from cephqos_base.series import TENANT, WAITING, AccountSeries, OpSeries, TenantsSeries, count
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import DETAIL, SLOW_WINDOW, TOP

HOSTS_OF_CLUSTER: Final = f'label_values({AccountSeries.SECONDS}{{cluster="$cluster"}}, instance)'
OSDS_OF_HOST: Final = (
    f'label_values({AccountSeries.SECONDS}{{cluster="$cluster", instance=~"$host"}}, ceph_daemon)'
)
# One host or OSD, or all of them: the user chooses.
_CHOSEN: Final = f'{DETAIL}, instance=~"$host", ceph_daemon=~"$osd"'
_COMPARED_WINDOW: Final = "5m"  # an hour or a day ago there may have been few operations

# AccountSeries.SECONDS: time of an OSD's client operations by `state`, where it is spent, and `by`,
# who or what they wait for there: in "queue" a class, in "replica" another OSD.


def _spent(window: str, *, matcher: str = "", offset: str = "") -> str:
    """Seconds per second, with the labels ceph_daemon, state, by."""
    return f"""max by (ceph_daemon, state, by) (
        rate({AccountSeries.SECONDS}{{{_CHOSEN}{matcher}}}[{window}]{offset})
      )"""


def _per_operation(spent: str, window: str, *, offset: str = "") -> str:
    """Seconds per client operation of the chosen OSDs, with the labels of `spent`."""
    ops = f"rate({count(OpSeries.LATENCY_SECONDS)}{{{_CHOSEN}}}[{window}]{offset})"
    return f"{spent} / on () group_left () (sum(max by (ceph_daemon, op) ({ops})) > 0)"


def _join_labels(expr: str, label: str, *parts: str, separator: str = " ") -> str:
    """Set a label to others, joined; without a blank at the end where the last one is missing."""
    quoted = ", ".join(f'"{part}"' for part in parts)
    joined = f'label_join({expr}, "{label}", "{separator}", {quoted})'
    return f'label_replace({joined}, "{label}", "$1", "{label}", "(.+) ")'


_RATE: Final = "$__rate_interval"
# Labels: state, by. For replicas without `by`: there would be a series for each other OSD.
_BY_STATE_AND_CLASS: Final = f"""(
      sum by (state, by) ({_spent(_RATE, matcher=', state!="replica"')})
      or sum by (state) ({_spent(_RATE, matcher=', state="replica"')})
    )"""
_STATE_AND_CLASS: Final = _join_labels(
    _per_operation(_BY_STATE_AND_CLASS, _RATE), "state", "state", "by"
)
NOW: Final = PanelQuery(f"max by (state) ({_STATE_AND_CLASS})", "{{state}}")


def _at(when: str, offset: str = "") -> str:
    """Seconds per operation at that time. Labels: when, state."""
    spent = f"sum by (state) ({_spent(_COMPARED_WINDOW, offset=offset)})"
    per_operation = _per_operation(spent, _COMPARED_WINDOW, offset=offset)
    return f'label_replace({per_operation}, "when", "{when}", "", "")'


# The bars, in alphabetical order of `when`. The last is for "now" without any operation: a panel of
# bars cannot say why it is empty.
_BARS: Final = (
    _at("1 day ago", offset=" offset 1d"),
    _at("1 hour ago", offset=" offset 1h"),
    _at("now"),
    f"""label_replace(label_replace(
      vector(NaN) unless on () {_at("now")}, "when", "now: no operation", "", ""
    ), "state", "none", "", "")""",
)
_ALL_BARS: Final = "\n    or ".join(_BARS)
COMPARED: Final = PanelQuery(f"max by (when, state) (\n    {_ALL_BARS}\n    )")

# The edges are of the chosen OSDs' clients: an OSD that these wait for need not be chosen itself.
# What an OSD's own clients wait for on that OSD. Labels: ceph_daemon, state, by.
_OWN_CLIENTS: Final = f"""max by (ceph_daemon, state, by) (
      rate({AccountSeries.SECONDS}{{{_CHOSEN}, state!="replica"}}[{SLOW_WINDOW}])
    )"""
# What they wait for on each peer, `by`. Labels: ceph_daemon (who waits), by.
_ON_PEERS: Final = f"""max by (ceph_daemon, by) (
      rate({AccountSeries.SECONDS}{{{_CHOSEN}, state="replica", by=~"osd.+"}}[{SLOW_WINDOW}])
    )"""
# What replica writes of other OSDs take on this one. Labels: ceph_daemon (this OSD), state.
_AT_REPLICA: Final = f"""max by (ceph_daemon, state) (
      rate({AccountSeries.REPLICA_SECONDS}{{{DETAIL}}}[{SLOW_WINDOW}])
    )"""
# The time that chosen OSDs' clients wait for another OSD, divided among the states of the replica
# writes there. Labels: ceph_daemon (the OSD that is waited for), state.
_FOR_OTHERS: Final = f"""
    {_AT_REPLICA} / on (ceph_daemon) group_left () (sum by (ceph_daemon) ({_AT_REPLICA}) > 0)
    * on (ceph_daemon) group_left () label_replace(
      sum by (by) ({_ON_PEERS}), "ceph_daemon", "$1", "by", "(.+)"
    )
""".strip()
# All that is waited for on an OSD. Labels: ceph_daemon, state, by.
_PLACES: Final = f"""sum by (ceph_daemon, state, by) (
      label_replace({_OWN_CLIENTS}, "for", "own clients", "", "")
      or label_replace({_FOR_OTHERS}, "for", "others", "", "")
    )"""


def _tenants_waiting(labels: str, matcher: str = "") -> str:
    """Seconds per second that samples saw tenants wait, with these labels."""
    return f"""sum by ({labels}) (max by (ceph_daemon, {TENANT}) (
      rate({TenantsSeries.SECONDS}{{{_CHOSEN}, state="{WAITING}"{matcher}}}[{SLOW_WINDOW}])
    ))"""


# The time of an OSD's clients, divided among its tenants as samples saw them wait. Labels:
# ceph_daemon and those of a tenant (kind, pool_id, tenant).
_TENANTS: Final = f"""
    {_tenants_waiting(f"ceph_daemon, {TENANT}", matcher=', kind!="other"')}
    / on (ceph_daemon) group_left () ({_tenants_waiting("ceph_daemon")} > 0)
    * on (ceph_daemon) group_left () sum by (ceph_daemon) (max by (ceph_daemon, state, by) (
      rate({AccountSeries.SECONDS}{{{_CHOSEN}}}[{SLOW_WINDOW}])
    ))
""".strip()


def _edges(seconds: str, source: Sequence[str], target: Sequence[str]) -> str:
    """An edge of the graph: who waits, for whom or what. Each end is named by these labels."""
    return _join_labels(_join_labels(seconds, "source", *source), "target", *target)


# TOP edges of each kind: tenant to OSD, OSD to peer, OSD to the place where the time is spent.
_TOP_TENANTS: Final = _join_labels(
    f"topk({TOP}, {_TENANTS} > 0)", "tenant", "pool_id", "tenant", separator="/"
)
_FROM_TENANTS: Final = _edges(_TOP_TENANTS, ["kind", "tenant"], ["ceph_daemon"])
_TO_PEERS: Final = _edges(f"topk({TOP}, {_ON_PEERS} > 0)", ["ceph_daemon"], ["by"])
_TO_PLACES: Final = _edges(
    f"topk({TOP}, {_PLACES} > 0)", ["ceph_daemon"], ["ceph_daemon", "state", "by"]
)
EDGES: Final = PanelQuery(
    f"""
    label_join(sum by (source, target, highlighted) (
    {_FROM_TENANTS}
    or {_TO_PEERS}
    or label_replace({_TO_PLACES}, "highlighted", "root", "", "")
    ), "id", " > ", "source", "target")
    """,
    name="seconds",
)
