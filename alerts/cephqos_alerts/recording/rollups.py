"""Recording rules: sums of OSDs by host and cluster."""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerClass, PerCluster, PerClusterClass, PerHostClass, PerOsd
from cephqos_base.series import OSD, DaemonSeries

# The same figure per class of an OSD, of a host, of the cluster.
_FIGURES: Final = (
    (PerClass.ATTAINED_OPS, PerHostClass.ATTAINED_OPS, PerClusterClass.ATTAINED_OPS),
    (PerClass.RESERVED_OPS, PerHostClass.RESERVED_OPS, PerClusterClass.RESERVED_OPS),
    (PerClass.SHORTFALL_OPS, PerHostClass.SHORTFALL_OPS, PerClusterClass.SHORTFALL_OPS),
    (PerClass.VIOLATED, PerHostClass.VIOLATED_OSDS, PerClusterClass.VIOLATED_OSDS),
    (PerClass.DEMAND, PerHostClass.DEMAND_OSDS, PerClusterClass.DEMAND_OSDS),
)


def _of_host(record: str, figure: str) -> RecordedSeries:
    return RecordedSeries(
        record=record,
        expr=f"""
        sum by (cluster, instance, class) (
          {figure} * on ({OSD}) group_left (instance) ({PerOsd.INSTANCE} == 1)
        )
        """,
    )


ROLLUPS: Final = RuleGroup(
    name="cephqos-rollups",
    rules=(
        *(_of_host(host, figure) for figure, host, _ in _FIGURES),
        *(
            RecordedSeries(
                record=cluster,
                comment="The sum of its hosts' sums: cheaper than a second sum over all OSDs.",
                expr=f"sum by (cluster, class) ({host})",
            )
            for _, host, cluster in _FIGURES
        ),
        RecordedSeries(
            record=PerCluster.DELIVERED_OPS,
            expr=f"sum by (cluster) ({PerOsd.DELIVERED_OPS})",
        ),
        RecordedSeries(
            record=PerCluster.CAPACITY_OPS,
            expr=f"sum by (cluster) ({PerOsd.CAPACITY_OPS})",
        ),
        RecordedSeries(
            record=PerCluster.OSDS,
            comment="Of OSDs only: an exporter may read monitors and managers too.",
            expr=f"""
            count by (cluster) (max by ({OSD}) ({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}))
            """,
        ),
    ),
)
