"""Where CPU time goes and where OSDs run."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import DETAIL, ROWS, TOP, top


def _rate(series: str, by: str, more: str = "") -> str:
    return f"max by ({by}) (rate({series}{{{DETAIL}{more}}}[$__rate_interval]))"


GROUPS: Final = Query(
    top(
        "sum by (group)"
        f" ({_rate('cephqos_threads_cpu_seconds_total', 'ceph_daemon, group, mode')})",
        "group",
    ),
    "{{group}}",
)
BUSIEST: Final = Query(
    top(
        _rate(
            "cephqos_threads_busiest_cpu_seconds_total",
            "ceph_daemon, group",
            ', group!~"other|reactor"',
        ),
        "ceph_daemon, group",
    ),
    "{{ceph_daemon}} {{group}}",
)
CEILING: Final = Query(
    top(f"max by (ceph_daemon) (osd:cephqos_thread_ceiling:max{{{DETAIL}}})", "ceph_daemon"),
    "{{ceph_daemon}}",
)
WAITING: Final = Query(
    top(f"max by (ceph_daemon) (osd:cephqos_cpu_waiting:rate{{{DETAIL}}})", "ceph_daemon"),
    "{{ceph_daemon}}",
)
SWITCHES: Final = Query(
    top(
        "sum by (group, kind)"
        f" ({_rate('cephqos_threads_switches_total', 'ceph_daemon, group, kind')})",
        "group, kind",
    ),
    "{{group}} {{kind}}",
)
_CPU: Final = _rate("cephqos_threads_cpu_seconds_total", "ceph_daemon, group, mode")
PER_OP: Final = Query(
    f"""
    sum by (ceph_daemon) ({_CPU})
    / (max by (ceph_daemon) (osd:cephqos_delivered_ops:rate{{{DETAIL}}}) > 1)
    and on (ceph_daemon) topk({TOP}, sum by (ceph_daemon)
      ({_CPU.replace("[$__rate_interval]", "[$__range] @ end()")}))
    """,
    "{{ceph_daemon}}",
)
_SPREAD: Final = f"max by (ceph_daemon) (cephqos_placement_cpus_used{{{DETAIL}}})"
NODES: Final = Query(
    f"""
    label_replace(
      max by (ceph_daemon, node) (cephqos_placement_threads{{{DETAIL}}}),
      "node", "node $1", "node", "(.*)"
    )
    and on (ceph_daemon) topk({ROWS}, {_SPREAD})
    """
)
CPUS: Final = (
    Query(f"topk({ROWS}, {_SPREAD})", name="used"),
    Query(
        f"max by (ceph_daemon) (cephqos_placement_cpus_allowed{{{DETAIL}}})"
        f" and on (ceph_daemon) topk({ROWS}, {_SPREAD})",
        name="allowed",
    ),
    Query(
        f"max by (ceph_daemon, cpus, nodes) (cephqos_placement_info{{{DETAIL}}})"
        f" and on (ceph_daemon) topk({ROWS}, {_SPREAD})",
        name="info",
    ),
)
STRATEGY: Final = Query(
    "count by (strategy) (max by (instance, strategy) (cephqos_placement_strategy) == 1)",
    "{{strategy}}",
)
_SHARD: Final = "ceph_daemon, shard"
REACTORS: Final = Query(
    top(f"max by ({_SHARD}) (cephqos_crimson_reactor_utilization_ratio{{{DETAIL}}})", _SHARD),
    "{{ceph_daemon}} reactor {{shard}}",
)
STOLEN: Final = Query(
    top(_rate("cephqos_crimson_reactor_steal_seconds_total", _SHARD), _SHARD),
    "{{ceph_daemon}} reactor {{shard}}",
)
SHARED: Final = Query(
    top(
        f"max by (ceph_daemon, by) (cephqos_placement_reactors_shared{{{DETAIL}}}) > 0",
        "ceph_daemon, by",
    ),
    "{{ceph_daemon}} with a {{by}}",
)
