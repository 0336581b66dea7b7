"""Are promises kept? Recorded sums of the cluster and its hosts, and the worst of its OSDs."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import ALL_OF, CLUSTER, DETAIL, ROWS
from cephqos_dashboards.theme import CAUSES

_VIOLATED: Final = f"osd_class:cephqos_violated:bool{{{DETAIL}}}"
_IN_DEMAND: Final = f"osd_class:cephqos_demand:bool{{{DETAIL}}} == 1"
_CAUSE: Final = f"osd_class:cephqos_main_cause{{{DETAIL}}}"

BROKEN: Final = Query(
    f"max by (class) (cluster_class:cephqos_violated_osds:sum{{{CLUSTER}}})", "{{class}}"
)
WORST: Final = Query(
    f"""
    bottomk(1,
      max by (ceph_daemon, class) (osd_class:cephqos_attained_ops:rate{{{DETAIL}}})
      / max by (ceph_daemon, class) (osd_class:cephqos_owed_ops{{{DETAIL}}} > 0)
      and on (ceph_daemon, class) ({_IN_DEMAND})
    )
    """,
    "{{ceph_daemon}} {{class}}",
)
WHY: Final = Query(
    f"""
    topk(3,
      count by (class, cause, by) ({_CAUSE} and on ({ALL_OF}) ({_VIOLATED} == 1))
    )
    """,
    "{{class}}: {{cause}} {{by}}",
)
_FIRING: Final = f'ALERTS{{{CLUSTER}, alertstate="firing", severity="SEVERITY"}}'
FIRING: Final = tuple(
    Query(f"count({_FIRING.replace('SEVERITY', severity)}) or vector(0)", f"{severity}s")
    for severity in ("page", "ticket")
)
ALERTS: Final = Query(
    f"""
    bottomk({2 * ROWS},
      max by (severity, alertname, ceph_daemon, class, cause, by, pool, slo, run) (
        1000 * ALERTS_FOR_STATE{{{CLUSTER}, severity!="none"}}
        and ignoring (alertstate) ALERTS{{{CLUSTER}, alertstate="firing"}}
      )
    )
    """,
    name="since",
)

WORK: Final = (
    Query(
        f'max by (class) (cluster_class:cephqos_attained_ops:sum{{{CLUSTER}, class!="immediate"}})',
        "{{class}}",
    ),
    Query(
        f'max(cluster_class:cephqos_attained_ops:sum{{{CLUSTER}, class="immediate"}})',
        "immediate (replica writes)",
    ),
    Query(f"max(cluster:cephqos_capacity_ops:sum{{{CLUSTER}}})", "capacity"),
    Query(
        f"max by (class) (cluster_class:cephqos_reserved_ops:sum{{{CLUSTER}}} > 0)",
        "{{class}} reservation",
    ),
)


def _map() -> str:
    """A code per OSD and class: 0 kept, else the position of the cause in theme.CAUSES.

    The rows are those violated longest in the time shown, the same at every point of it.
    """
    key = "ceph_daemon, class"
    codes = "\n      or ".join(
        f'{code} * max by ({key}) (osd_class:cephqos_main_cause{{{DETAIL}, cause="{cause.name}"}})'
        for code, cause in enumerate(CAUSES, 1)
    )
    return f"""
    (
      (
      {codes}
      )
      and on ({key}) ({_VIOLATED} == 1)
      or {len(CAUSES)} * max by ({key}) ({_VIOLATED})
    )
    and on ({key}) topk({ROWS},
      sum by ({key}) (sum_over_time({_VIOLATED}[$__range] @ end()))
    )
    or label_replace(
      vector(-1) unless on () count(last_over_time({_VIOLATED}[$__range] @ end())),
      "ceph_daemon", "all OSDs", "", ""
    )
    """


MAP: Final = Query(_map(), "{{ceph_daemon}} {{class}}")

_WORST_ROWS: Final = f"""
    topk({ROWS}, max by (ceph_daemon, class) (
      osd_class:cephqos_shortfall_ops:rate{{{DETAIL}}} and on ({ALL_OF}) {_VIOLATED} == 1
    ))
"""


def _of_worst(series: str, labels: str = "ceph_daemon, class") -> str:
    return f"""
    max by ({labels}) ({series}{{{DETAIL}}})
    and on (ceph_daemon, class) {_WORST_ROWS.strip()}
    """


WORST_OSDS: Final = (
    Query(_WORST_ROWS, name="shortfall"),
    Query(_of_worst("osd_class:cephqos_attained_ops:rate"), name="attained"),
    Query(_of_worst("osd_class:cephqos_owed_ops"), name="owed"),
    Query(_of_worst("osd_class:cephqos_reservation_lag_seconds:max"), name="lag"),
    Query(_of_worst("osd_class:cephqos_violated_seconds:sum1h"), name="violated"),
    Query(
        _of_worst("osd_class:cephqos_main_cause", "ceph_daemon, class, cause, by"), name="cause_"
    ),
)

_HOSTS: Final = f"""
    topk({ROWS}, max by (instance, class) (
      instance_class:cephqos_violated_osds:sum{{{CLUSTER}}} > 0
    ))
"""


def _of_hosts(series: str) -> str:
    return f"max by (instance, class) ({series}{{{CLUSTER}}}) and {_HOSTS.strip()}"


HOSTS: Final = (
    Query(_HOSTS, name="violated"),
    Query(_of_hosts("instance_class:cephqos_demand_osds:sum"), name="demand"),
    Query(_of_hosts("instance_class:cephqos_shortfall_ops:sum"), name="shortfall"),
    Query(_of_hosts("instance_class:cephqos_attained_ops:sum"), name="attained"),
    Query(_of_hosts("instance_class:cephqos_reserved_ops:sum"), name="reserved"),
)

_OVERSTATED: Final = f"""
    topk({ROWS},
      max by (ceph_daemon) (osd:cephqos_capacity_ops{{{DETAIL}}})
      / max by (ceph_daemon) (osd:cephqos_proven_ops:max1d{{{DETAIL}}} > 0)
    )
"""
CAPACITY: Final = (
    Query(_OVERSTATED, name="ratio"),
    Query(
        f"max by (ceph_daemon) (osd:cephqos_capacity_ops{{{DETAIL}}})"
        f" and on (ceph_daemon) {_OVERSTATED.strip()}",
        name="capacity",
    ),
    Query(
        f"max by (ceph_daemon) (osd:cephqos_proven_ops:max1d{{{DETAIL}}})"
        f" and on (ceph_daemon) {_OVERSTATED.strip()}",
        name="proven",
    ),
)
