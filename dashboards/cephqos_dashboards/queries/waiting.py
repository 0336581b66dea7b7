"""Where the time of client operations goes, and who waits for whom: from the account."""

from typing import Final

from cephqos_base.series import TENANT, WAITING, AccountSeries, OpSeries, TenantsSeries, count
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import DETAIL, SLOW_WINDOW, TOP

HOSTS_OF_CLUSTER: Final = f'label_values({AccountSeries.SECONDS}{{cluster="$cluster"}}, instance)'
OSDS_OF_HOST: Final = (
    f'label_values({AccountSeries.SECONDS}{{cluster="$cluster", instance=~"$host"}}, ceph_daemon)'
)
# One host or OSD, or all of them.
_CHOSEN: Final = f'{DETAIL}, instance=~"$host", ceph_daemon=~"$osd"'
_LONG: Final = "5m"  # an hour and a day ago there may have been few operations


def _spent(window: str, state: str, back: str) -> str:
    return f"""max by (ceph_daemon, state, by) (
        rate({AccountSeries.SECONDS}{{{_CHOSEN}{state}}}[{window}]{back})
      )"""


def _each(spent: str, window: str, back: str = "") -> str:
    """Seconds per client operation of what is chosen."""
    ops = f"rate({count(OpSeries.LATENCY_SECONDS)}{{{_CHOSEN}}}[{window}]{back})"
    return f"{spent} / on () group_left () (sum(max by (ceph_daemon, op) ({ops})) > 0)"


def _named(expr: str, label: str, *parts: str, by: str = " ") -> str:
    """A label made of others, without a blank where the last one is missing."""
    quoted = ", ".join(f'"{part}"' for part in parts)
    joined = f'label_join({expr}, "{label}", "{by}", {quoted})'
    return f'label_replace({joined}, "{label}", "$1", "{label}", "(.+) ")'


_RATE: Final = "$__rate_interval"
# By the OSD that is waited for there would be too many.
_BY_STATE_AND_CLASS: Final = f"""(
      sum by (state, by) ({_spent(_RATE, ', state!="replica"', "")})
      or sum by (state) ({_spent(_RATE, ', state="replica"', "")})
    )"""
NOW: Final = PanelQuery(
    f"max by (state) ({_named(_each(_BY_STATE_AND_CLASS, _RATE), 'state', 'state', 'by')})",
    "{{state}}",
)


def _when(words: str, back: str = "") -> str:
    spent = f"sum by (state) ({_spent(_LONG, '', back)})"
    return f'label_replace({_each(spent, _LONG, back)}, "when", "{words}", "", "")'


# In the order of their names. A panel of bars cannot say why it is empty.
_WHENS: Final = (
    _when("1 day ago", " offset 1d"),
    _when("1 hour ago", " offset 1h"),
    _when("now"),
    f"""label_replace(label_replace(
      vector(0) unless on () {_when("now")}, "when", "now: no operation", "", ""
    ), "state", "none", "", "")""",
)
_ALL_WHENS: Final = "\n    or ".join(_WHENS)
COMPARED: Final = PanelQuery(f"max by (when, state) (\n    {_ALL_WHENS}\n    )")

_OWN: Final = f"""max by (ceph_daemon, state, by) (
      rate({AccountSeries.SECONDS}{{{DETAIL}, state!="replica"}}[{SLOW_WINDOW}])
    )"""
_FOR_PEERS: Final = f"""max by (ceph_daemon, by) (
      rate({AccountSeries.SECONDS}{{{DETAIL}, state="replica", by=~"osd.+"}}[{SLOW_WINDOW}])
    )"""
_AS_REPLICA: Final = f"""max by (ceph_daemon, state) (
      rate({AccountSeries.REPLICA_SECONDS}{{{DETAIL}}}[{SLOW_WINDOW}])
    )"""
# What others wait for on an OSD is divided as the writes that it carries out for them.
_FOR_OTHERS: Final = f"""
    {_AS_REPLICA} / on (ceph_daemon) group_left () (sum by (ceph_daemon) ({_AS_REPLICA}) > 0)
    * on (ceph_daemon) group_left () label_replace(
      sum by (by) ({_FOR_PEERS}), "ceph_daemon", "$1", "by", "(.+)"
    )
""".strip()
_PLACES: Final = f"""sum by (ceph_daemon, state, by) (
      label_replace({_OWN}, "for", "own clients", "", "")
      or label_replace({_FOR_OTHERS}, "for", "others", "", "")
    )"""


def _waiting(by: str, more: str = "") -> str:
    return f"""sum by ({by}) (max by (ceph_daemon, {TENANT}) (
      rate({TenantsSeries.SECONDS}{{{DETAIL}, state="{WAITING}"{more}}}[{SLOW_WINDOW}])
    ))"""


# The seconds of an OSD's clients are its tenants' by their shares of the waiting in samples.
_TENANTS: Final = f"""
    {_waiting(f"ceph_daemon, {TENANT}", ', kind!="other"')}
    / on (ceph_daemon) group_left () ({_waiting("ceph_daemon")} > 0)
    * on (ceph_daemon) group_left () sum by (ceph_daemon) (max by (ceph_daemon, state, by) (
      rate({AccountSeries.SECONDS}{{{DETAIL}}}[{SLOW_WINDOW}])
    ))
""".strip()


_IMAGES: Final = _named(f"topk({TOP}, {_TENANTS} > 0)", "tenant", "pool_id", "tenant", by="/")
_ENDS: Final = _named(
    _named(f"topk({TOP}, {_PLACES} > 0)", "source", "ceph_daemon"),
    "target",
    "ceph_daemon",
    "state",
    "by",
)
# An edge each: who waits, for whom or what, seconds per second. At most ten of each kind.
EDGES: Final = PanelQuery(
    f"""
    label_join(sum by (source, target, highlighted) (
    {_named(_named(_IMAGES, "source", "kind", "tenant"), "target", "ceph_daemon")}
    or {_named(_named(f"topk({TOP}, {_FOR_PEERS} > 0)", "source", "ceph_daemon"), "target", "by")}
    or label_replace({_ENDS}, "highlighted", "root", "", "")
    ), "id", " > ", "source", "target")
    """,
    name="seconds",
)
