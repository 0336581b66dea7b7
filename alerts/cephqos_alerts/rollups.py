"""Recording rules: sums of OSDs by host and cluster."""

from typing import Final

from cephqos_alerts.rules import Group, Recording
from cephqos_base.recorded import PerClass, PerCluster, PerOsd
from cephqos_base.series import OSD, Daemon


def _sums(level: str, labels: str, join: str = "") -> list[Recording]:
    """The figures of OSDs summed to a level above."""
    found = []
    for figure in ("attained_ops:rate", "reserved_ops", "shortfall_ops:rate", "violated:bool"):
        name = figure.replace(":rate", "").replace(":bool", "_osds")
        found.append(
            Recording(
                record=f"{level}:cephqos_{name}:sum",
                expr=f"sum by ({labels}, class) (osd_class:cephqos_{figure}{join})",
            )
        )
    found.append(
        Recording(
            record=f"{level}:cephqos_demand_osds:sum",
            expr=f"sum by ({labels}, class) ({PerClass.DEMAND}{join})",
        )
    )
    return found


def _sums_of_hosts() -> list[Recording]:
    """A cluster's figures from those of its hosts: no third pass over all OSDs."""
    return [
        Recording(
            record=found.record,
            expr=f"sum by (cluster, class) ({found.record.replace('cluster_', 'instance_', 1)})",
        )
        for found in _sums("cluster_class", "cluster")
    ]


def _joined(label: str, info: str) -> str:
    return f" * on ({OSD}) group_left ({label}) {info}"


ROLLUPS: Final = Group(
    name="cephqos-rollups",
    rules=(
        *_sums(
            "media_class",
            "cluster, media",
            _joined("media", PerOsd.MEDIA),
        ),
        *_sums(
            "instance_class",
            "cluster, instance",
            _joined("instance", f"({PerOsd.INSTANCE} == 1)"),
        ),
        *_sums_of_hosts(),
        Recording(
            record=PerCluster.DELIVERED_OPS,
            expr=f"sum by (cluster) ({PerOsd.DELIVERED_OPS})",
        ),
        Recording(
            record=PerCluster.CAPACITY_OPS,
            expr=f"sum by (cluster) ({PerOsd.CAPACITY_OPS})",
        ),
        Recording(
            record=PerCluster.OSDS,
            expr=f"count by (cluster) (max by ({OSD}) ({Daemon.UP}))",
        ),
    ),
)
