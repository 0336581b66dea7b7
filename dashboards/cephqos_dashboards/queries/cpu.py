"""Where CPU time goes and where OSDs run."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import DETAIL, ROWS, TOP


def _rate(series: str, by: str, more: str = "") -> str:
    return f"max by ({by}) (rate({series}{{{DETAIL}{more}}}[$__rate_interval]))"


GROUPS: Final = Query(
    f"topk({TOP}, sum by (group)"
    f" ({_rate('cephqos_threads_cpu_seconds_total', 'ceph_daemon, group, mode')}))",
    "{{group}}",
)
BUSIEST: Final = Query(
    f"topk({TOP}, "
    + _rate(
        "cephqos_threads_busiest_cpu_seconds_total",
        "ceph_daemon, group",
        ', group!~"other|reactor"',
    )
    + ")",
    "{{ceph_daemon}} {{group}}",
)
CEILING: Final = Query(
    f"topk({TOP}, max by (ceph_daemon) (osd:cephqos_thread_ceiling:max{{{DETAIL}}}))",
    "{{ceph_daemon}}",
)
WAITING: Final = Query(
    f"topk({TOP}, max by (ceph_daemon) (osd:cephqos_cpu_waiting:rate{{{DETAIL}}}))",
    "{{ceph_daemon}}",
)
SWITCHES: Final = Query(
    "sum by (group, kind) (topk by (kind) (5, sum by (group, kind)"
    f" ({_rate('cephqos_threads_switches_total', 'ceph_daemon, group, kind')})))",
    "{{group}} {{kind}}",
)
PER_OP: Final = Query(
    f"""
    topk({TOP},
      sum by (ceph_daemon)
        ({_rate("cephqos_threads_cpu_seconds_total", "ceph_daemon, group, mode")})
      / (max by (ceph_daemon) (osd:cephqos_delivered_ops:rate{{{DETAIL}}}) > 1)
    )
    """,
    "{{ceph_daemon}}",
)
_SPREAD: Final = f"max by (ceph_daemon) (cephqos_placement_cpus_used{{{DETAIL}}})"
NODES: Final = Query(
    f"""
    max by (ceph_daemon, node) (cephqos_placement_threads{{{DETAIL}}})
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
REACTORS: Final = Query(
    f"""
    topk({TOP},
      max by (ceph_daemon, shard) (cephqos_crimson_reactor_utilization_ratio{{{DETAIL}}})
    )
    """,
    "{{ceph_daemon}} reactor {{shard}}",
)
STOLEN: Final = Query(
    f"topk({TOP}, {_rate('cephqos_crimson_reactor_steal_seconds_total', 'ceph_daemon, shard')})",
    "{{ceph_daemon}} reactor {{shard}}",
)
SHARED: Final = Query(
    f"""
    topk({TOP},
      max by (ceph_daemon, by) (cephqos_placement_reactors_shared{{{DETAIL}}}) > 0
    )
    """,
    "{{ceph_daemon}} with a {{by}}",
)
