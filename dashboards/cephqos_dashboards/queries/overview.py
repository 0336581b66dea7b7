"""Is a reservation violated, on which OSD, and why? Recorded sums of the cluster and its hosts, and
the worst of its OSDs. MAIN_CAUSE names the cause of an OSD and class, and in `by` who is to blame.
"""

from typing import Final

from cephqos_base.causes import CAUSES
from cephqos_base.recorded import PerClass, PerCluster, PerHostClass, PerOsd
from cephqos_base.series import OSD, DaemonSeries
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import (
    ALL_OF,
    CLUSTER,
    DETAIL,
    ENOUGH,
    ROWS,
    cause_in_words,
    or_say,
)

_VIOLATED: Final = f"{PerClass.VIOLATED}{{{DETAIL}}}"
_VIOLATED_OSDS: Final = f'{PerHostClass.OSDS}{{{CLUSTER}, figure="violated"}}'
_ATTAINED: Final = f'{PerHostClass.OPS}{{{CLUSTER}, figure="attained"'
_IN_DEMAND: Final = f"{PerClass.DEMAND}{{{DETAIL}}} == 1"
_CAUSE: Final = f"{PerClass.MAIN_CAUSE}{{{DETAIL}}}"

# Where a reservation is violated. All figures of the first row have this condition.
_IS_VIOLATED: Final = f"(max by ({ALL_OF}) ({_VIOLATED}) == 1)"
# The sums of hosts are an evaluation behind, so they count only where OSDs are not read one by one.
VIOLATED: Final = PanelQuery(
    f"""
    count by (class) ({_IS_VIOLATED})
    or on () (sum by (class) ({_VIOLATED_OSDS}) > 0) unless on () {_VIOLATED}
    or on () label_replace(0 * sum({_VIOLATED} or {_VIOLATED_OSDS}), "class", "any class", "", "")
    """,
    "{{class}}",
)
WORST: Final = PanelQuery(
    f"""
    bottomk(1,
      max by (ceph_daemon, class) ({PerClass.EFFECTIVE_ATTAINMENT}{{{DETAIL}}})
      and on (ceph_daemon, class) max by (ceph_daemon, class) ({_IN_DEMAND})
    )
    """,
    "{{ceph_daemon}} {{class}}",
)
_IF_VIOLATED: Final = f"and on ({ALL_OF}) {_IS_VIOLATED}"
# Those that began so recently that no cause has lasted yet.
_BEGINS: Final = f"{_IS_VIOLATED} unless on ({ALL_OF}) {_CAUSE}"
# Violated OSDs whose cause is on themselves, and those that wait for another OSD.
_OWN_CAUSE: Final = f'{PerClass.MAIN_CAUSE}{{{DETAIL}, cause!="other_osd"}} {_IF_VIOLATED}'
_WAITS: Final = f'{PerClass.MAIN_CAUSE}{{{DETAIL}, cause="other_osd"}} {_IF_VIOLATED}'
WHY: Final = PanelQuery(
    f"""
    topk(3,
      {cause_in_words(f"count by (cause) ({_CAUSE} {_IF_VIOLATED})")}
      or label_replace(count({_BEGINS}), "cause", "begins", "", "")
    )
    or on () label_replace(0 * max({_VIOLATED}), "cause", "any cause", "", "")
    """,
    "{{cause}}",
)
# The OSD that explains most violations: each violated OSD counts for the OSD that it waits for, or
# else for itself.
_CULPRIT: Final = f"""
      topk(1, count by (culprit) (
        label_replace({_OWN_CAUSE}, "culprit", "$1", "ceph_daemon", "(.+)")
        or label_replace({_WAITS}, "culprit", "$1", "by", "(.+)")
      ))
"""
# With its own cause; an OSD that is not violated itself has none.
_CULPRIT_WITH_CAUSE: Final = f"""
      {_CULPRIT.strip()} * on (culprit) group_left (cause) topk by (culprit) (1,
        max by (culprit, cause) (
          label_replace({_OWN_CAUSE}, "culprit", "$1", "ceph_daemon", "(.+)")
        )
      )
      or on (culprit) label_replace({_CULPRIT.strip()}, "cause", "others wait for it", "", "")
"""
# As long as no cause has lasted: the OSD with the largest shortfall.
_BEGINS_ON: Final = f"""
      topk(1, max by (ceph_daemon) (
        1 + {PerClass.SHORTFALL_OPS}{{{DETAIL}}} and on ({ALL_OF}) ({_BEGINS})
        or on ({ALL_OF}) {_BEGINS}
      ))
""".strip()
_CULPRIT_THAT_BEGINS: Final = (
    f'label_replace({_BEGINS_ON}, "says", "$1: begins", "ceph_daemon", "(.+)")'
)
# Any OSD of the cluster, so that a click opens one even if none is to blame.
_ANY_OSD: Final = f"""
      (label_replace(
        0 * topk(1, max by (ceph_daemon) ({DaemonSeries.UP}{{{DETAIL}, ceph_daemon=~"osd.*"}})),
        "culprit", "$1", "ceph_daemon", "(.+)") or on () vector(0))
""".strip()
CULPRIT: Final = PanelQuery(
    f"""
    label_join({cause_in_words(_CULPRIT_WITH_CAUSE.strip())}, "says", ": ", "culprit", "cause")
    or on () label_replace({_CULPRIT_THAT_BEGINS}, "culprit", "$1", "ceph_daemon", "(.+)")
    or on ()
    label_replace({_ANY_OSD} - 1 unless on () ({ENOUGH}), "says", "not enough data yet", "", "")
    or on () label_replace({_ANY_OSD} and on () ({_VIOLATED}), "says", "no violation", "", "")
    or on ()
    label_replace({_ANY_OSD} - 1 and on () ({_VIOLATED_OSDS}), "says", "see hosts below", "", "")
    or on () label_replace({_ANY_OSD} - 1, "says", "no reservation", "", "")
    """,
    "{{says}}",
)
_FIRING: Final = f'ALERTS{{{CLUSTER}, alertstate="firing", severity="SEVERITY"}}'
# 0 if no alert fires. It is absent, so that no figure is shown, if our rules are not loaded,
# or if an operator's file gives severities another name.
_NO_ALERTS: Final = (
    f"0 * count({PerCluster.OSDS})"
    f' unless on () ALERTS{{{CLUSTER}, alertstate="firing", alertname=~"CephQos.*",'
    ' severity!~"critical|warning|info|none"}'
)
FIRING: Final = tuple(
    PanelQuery(f"count({_FIRING.replace('SEVERITY', severity)}) or {_NO_ALERTS}", name)
    for severity, name in (("critical", "critical"), ("warning", "warnings"))
)
ALERTS: Final = PanelQuery(
    f"""
    bottomk({2 * ROWS},
      max by (severity, alertname, ceph_daemon, class, cause, pool, slo, run) (
        1000 * ALERTS_FOR_STATE{{{CLUSTER}, severity!="none"}}
        and ignoring (alertstate) ALERTS{{{CLUSTER}, alertstate="firing"}}
      )
    )
    """,
    name="since",
)

WORK: Final = (
    PanelQuery(f'sum by (class) ({_ATTAINED}, class!="immediate"}})', "{{class}}"),
    PanelQuery(f'sum({_ATTAINED}, class="immediate"}})', "immediate (replica writes)"),
    PanelQuery(f"max({PerCluster.CAPACITY_OPS}{{{CLUSTER}}})", "capacity"),
    PanelQuery(
        f'sum by (class) ({PerHostClass.OPS}{{{CLUSTER}, figure="reserved"}}) > 0',
        "{{class}} reservation (dashed)",
    ),
)


def _map() -> str:
    """A code per OSD and class: 0 kept, else the position of the cause in CAUSES, or the one after
    them if no cause has lasted yet. If there is no OSD to show, one row has the reason: -1 no
    figure of violations, -2 too few evaluations so far.

    The rows are those violated longest in the time shown, the same at every point of it.
    """
    key = "ceph_daemon, class"
    codes = "\n      or ".join(
        f'{code} * max by ({key}) ({PerClass.MAIN_CAUSE}{{{DETAIL}, cause="{cause.name}"}})'
        for code, cause in enumerate(CAUSES, 1)
    )
    return f"""
    (
      (
      {codes}
      )
      and on ({key}) ({_VIOLATED} == 1)
      or {len(CAUSES) + 1} * max by ({key}) ({_VIOLATED})
    )
    and on () ({ENOUGH})
    and on ({key}) topk({ROWS},
      sum by ({key}) (sum_over_time({_VIOLATED}[$__range] @ end()))
    )
    or label_replace(
      vector(-1) unless on () count(last_over_time({_VIOLATED}[$__range] @ end())),
      "ceph_daemon", "all OSDs", "", ""
    )
    or label_replace(
      vector(-2) unless on () ({ENOUGH}), "ceph_daemon", "all OSDs", "", ""
    )
    """


MAP: Final = PanelQuery(_map(), "{{ceph_daemon}} {{class}}")

# The violated reservations with the largest shortfall.
_WORST_ROWS: Final = f"""
    topk({ROWS}, max by (ceph_daemon, class) (
      {PerClass.SHORTFALL_OPS}{{{DETAIL}}} and on ({ALL_OF}) {_VIOLATED} == 1
    ))
"""


def _of_worst(series: str, labels: str = "ceph_daemon, class") -> str:
    return f"""
    max by ({labels}) ({series}{{{DETAIL}}})
    and on (ceph_daemon, class) {_WORST_ROWS.strip()}
    """


WORST_OSDS: Final = (
    PanelQuery(or_say(_WORST_ROWS, "class", "none, or no rules"), name="shortfall"),
    PanelQuery(_of_worst(PerClass.ATTAINED_OPS), name="attained"),
    PanelQuery(_of_worst(PerClass.EFFECTIVE_RESERVATION_OPS), name="effective_reservation"),
    PanelQuery(_of_worst(PerClass.RESERVATION_LAG_SECONDS), name="lag"),
    PanelQuery(_of_worst(PerClass.VIOLATED_SECONDS), name="violated"),
    PanelQuery(_of_worst(PerClass.MAIN_CAUSE, "ceph_daemon, class, cause, by"), name="cause_"),
    # OSDs that others wait for, even if their own reservations are not violated.
    PanelQuery(
        f"""
    topk({ROWS}, max by (ceph_daemon, class) (
      label_replace({PerOsd.WAITED_FOR}{{{DETAIL}}}, "class", "client", "ceph_daemon", ".*")
    ))
    or on (ceph_daemon, class) 0 * {_WORST_ROWS.strip()}
    """,
        name="waited",
    ),
)

_HOSTS: Final = f"""
    topk({ROWS}, max by (instance, class) (
      {_VIOLATED_OSDS} > 0
    ))
"""


def _of_hosts(series: str, figure: str) -> str:
    selector = f'{series}{{{CLUSTER}, figure="{figure}"}}'
    return f"max by (instance, class) ({selector}) and {_HOSTS.strip()}"


HOSTS: Final = (
    PanelQuery(or_say(_HOSTS, "class", "none, or no rules"), name="violated"),
    PanelQuery(_of_hosts(PerHostClass.OSDS, "demand"), name="demand"),
    PanelQuery(_of_hosts(PerHostClass.OPS, "shortfall"), name="shortfall"),
    PanelQuery(_of_hosts(PerHostClass.OPS, "attained"), name="attained"),
    PanelQuery(_of_hosts(PerHostClass.OPS, "reserved"), name="reserved"),
)

# The most that an OSD delivered in the last day while it was saturated.
_PROVEN: Final = f'{PerOsd.DELIVERED_OPS_MAX1D}{{{DETAIL}, when="saturated"}}'
_OVERSTATED: Final = f"""
    topk({ROWS},
      max by (ceph_daemon) ({PerOsd.CAPACITY_OPS}{{{DETAIL}}})
      / max by (ceph_daemon) ({_PROVEN} > 0)
    )
"""
# The most that an OSD delivered throughout a hold of the last day.
_SUSTAINED: Final = f'{PerOsd.DELIVERED_OPS_MAX1D}{{{DETAIL}, when="sustained"}}'
_UNDERSTATED: Final = f"""
    topk({ROWS},
      max by (ceph_daemon) (
        {_SUSTAINED} / on ({OSD}) {PerOsd.CAPACITY_OPS}{{{DETAIL}}} > {THRESHOLDS.more:g}
        or {PerOsd.AT_LIMIT_WITH_ROOM}{{{DETAIL}}}
      )
    )
"""
CAPACITY_TOO_LOW: Final = PanelQuery(_UNDERSTATED, name="ratio")
CAPACITY: Final = (
    PanelQuery(or_say(_OVERSTATED, "reason", "none saturated in a day"), name="ratio"),
    PanelQuery(
        f"max by (ceph_daemon) ({PerOsd.CAPACITY_OPS}{{{DETAIL}}})"
        f" and on (ceph_daemon) {_OVERSTATED.strip()}",
        name="capacity",
    ),
    PanelQuery(
        f"max by (ceph_daemon) ({_PROVEN}) and on (ceph_daemon) {_OVERSTATED.strip()}",
        name="proven",
    ),
)
