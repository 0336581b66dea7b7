"""Where CPU time goes and where OSDs run."""

from functools import partial
from typing import Final

from cephqos_base.recorded import PerHost, PerOsd
from cephqos_base.series import (
    CgroupSeries,
    CrimsonSeries,
    DaemonSeries,
    HostSeries,
    PlacementSeries,
    ThreadsSeries,
)
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import (
    DETAIL,
    ROWS,
    SLOW_WINDOW,
    TOP,
    highest,
    or_say,
    rate_once,
)

_rate: Final = partial(rate_once, DETAIL)
GROUPS: Final = highest(
    f"sum by (group) ({_rate(ThreadsSeries.CPU_SECONDS, 'ceph_daemon, group, mode')})", "group"
)
BUSIEST: Final = highest(
    _rate(ThreadsSeries.BUSIEST_CPU_SECONDS, "ceph_daemon, group", ', group!~"other|reactor"'),
    "ceph_daemon, group",
)
CEILING: Final = highest(
    f'max by (ceph_daemon) ({PerOsd.CPUS}{{{DETAIL}, state="busiest_thread"}})', "ceph_daemon"
)
WAITING: Final = highest(
    f'max by (ceph_daemon) ({PerOsd.CPUS}{{{DETAIL}, state="waiting"}})', "ceph_daemon"
)
# The exporter reads context switches every 30 s, however often it is scraped: a shorter window
# would show pulses and zeros.
_SWITCHES: Final = _rate(ThreadsSeries.SWITCHES, "ceph_daemon, group, kind").replace(
    "[$__rate_interval]", f"[{SLOW_WINDOW}]"
)
SWITCHES: Final = highest(f"sum by (group, kind) ({_SWITCHES})", "group, kind")
_CPU: Final = _rate(ThreadsSeries.CPU_SECONDS, "ceph_daemon, group, mode")
PER_OP: Final = PanelQuery(
    f"""
    sum by (ceph_daemon) ({_CPU})
    / (max by (ceph_daemon) ({PerOsd.DELIVERED_OPS}{{{DETAIL}}}) > 1)
    and on (ceph_daemon) topk({TOP}, sum by (ceph_daemon)
      ({_CPU.replace("[$__rate_interval]", "[$__range] @ end()")}))
    """,
    "{{ceph_daemon}}",
)
# CPUs on which threads of an OSD last ran: OSDs that spread most come first.
_SPREAD: Final = f"max by (ceph_daemon) ({PlacementSeries.CPUS_USED}{{{DETAIL}}})"
NODES: Final = PanelQuery(
    f"""
    label_replace(
      max by (ceph_daemon, node) ({PlacementSeries.THREADS}{{{DETAIL}}}),
      "node", "node $1", "node", "(.*)"
    )
    and on (ceph_daemon) topk({ROWS}, {_SPREAD})
    """
)
CPUS: Final = (
    PanelQuery(
        or_say(f"topk({ROWS}, {_SPREAD})", "cpus", "The collector placement is off."), name="used"
    ),
    PanelQuery(
        f"max by (ceph_daemon) ({PlacementSeries.CPUS_ALLOWED}{{{DETAIL}}})"
        f" and on (ceph_daemon) topk({ROWS}, {_SPREAD})",
        name="allowed",
    ),
    PanelQuery(
        f"max by (ceph_daemon, cpus, nodes) ({PlacementSeries.INFO}{{{DETAIL}}})"
        f" and on (ceph_daemon) topk({ROWS}, {_SPREAD})",
        name="info",
    ),
)
STRATEGY: Final = PanelQuery(
    f"count by (strategy) (max by (instance, strategy) ({PlacementSeries.STRATEGY}) == 1)",
    "{{strategy}}",
)
THROTTLED: Final = highest(
    f"{_rate(CgroupSeries.CPU_THROTTLED_PERIODS, 'ceph_daemon')}"
    f" / {_rate(CgroupSeries.CPU_PERIODS, 'ceph_daemon')}",
    "ceph_daemon",
)
MEMORY: Final = highest(
    f"max by (ceph_daemon) ({CgroupSeries.MEMORY_USED_BYTES}{{{DETAIL}}})"
    f" / max by (ceph_daemon) ({CgroupSeries.MEMORY_LIMIT_BYTES}{{{DETAIL}}})",
    "ceph_daemon",
)
PRESSURE: Final = highest(
    _rate(CgroupSeries.PRESSURE_SECONDS, "ceph_daemon, resource"), "ceph_daemon, resource"
)
# Series of hosts have no label of a cluster. So they are those of exporters with an OSD of it.
_ITS_OSDS: Final = f'{DaemonSeries.UP}{{{DETAIL}, ceph_daemon=~"osd.*"}}'
_ITS_HOSTS: Final = f"and on (instance) group by (instance) ({_ITS_OSDS})"
HOSTS: Final = PanelQuery(
    f"""
    sum by (instance) (rate({HostSeries.CPU_SECONDS}[$__rate_interval]))
    / on (instance) max by (instance) ({HostSeries.CPUS}) {_ITS_HOSTS}
    and on (instance) topk({TOP}, sum by (instance)
      (rate({HostSeries.CPU_SECONDS}[$__range] @ end())))
    """,
    "{{instance}}",
)
TAKEN: Final = PanelQuery(
    f"""
    max by (instance, by) ({PerHost.CPUS_TAKEN}) {_ITS_HOSTS}
    and on (instance, by) topk({TOP}, max by (instance, by)
      (max_over_time({PerHost.CPUS_TAKEN}[$__range] @ end())))
    """,
    "{{instance}} by {{by}}",
)


def _of_hosts(expr: str, by: str) -> PanelQuery:
    """The lines that are highest over the whole time, of hosts with OSDs of the cluster."""
    whole = expr.replace("[$__rate_interval]", "[$__range] @ end()")
    return PanelQuery(
        f"{expr} {_ITS_HOSTS} and on ({by}) topk({TOP}, {whole})",
        " ".join(f"{{{{{label}}}}}" for label in by.split(", ")),
    )


def _host_rate(series: str, by: str) -> str:
    return f"max by ({by}) (rate({series}[$__rate_interval]))"


HOST_PRESSURE: Final = _of_hosts(
    _host_rate(HostSeries.PRESSURE_SECONDS, "instance, resource"), "instance, resource"
)
_LINK: Final = "instance, device, direction"
LINKS: Final = _of_hosts(
    f"{_host_rate(HostSeries.LINK_BYTES, _LINK)} / on (instance, device) group_left ()"
    f" max by (instance, device) ({HostSeries.LINK_SPEED})",
    _LINK,
)
LINKS_LOST: Final = _of_hosts(
    f"sum by (instance, device) ({_host_rate(HostSeries.LINK_LOST, f'{_LINK}, reason')})",
    "instance, device",
)
_AGAIN, _SENT = (
    _host_rate(f'{HostSeries.TCP_SEGMENTS}{{kind="{kind}"}}', "instance")
    for kind in ("retransmitted", "sent")
)
SENT_AGAIN: Final = _of_hosts(f"{_AGAIN} / on (instance) {_SENT}", "instance")
_SHARD: Final = "ceph_daemon, shard"
REACTORS: Final = highest(
    f"max by ({_SHARD}) ({CrimsonSeries.REACTOR_UTILIZATION_RATIO}{{{DETAIL}}})",
    _SHARD,
    "{{ceph_daemon}} reactor {{shard}}",
)
STOLEN: Final = highest(
    _rate(CrimsonSeries.REACTOR_STEAL_SECONDS, _SHARD), _SHARD, "{{ceph_daemon}} reactor {{shard}}"
)
SHARED: Final = highest(
    f"max by (ceph_daemon, by) ({PlacementSeries.REACTORS_SHARED}{{{DETAIL}}}) > 0",
    "ceph_daemon, by",
    "{{ceph_daemon}} with a {{by}}",
)
