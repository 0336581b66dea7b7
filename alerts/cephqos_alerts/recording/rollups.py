"""Recording rules: sums of OSDs by host."""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerClass, PerCluster, PerHostClass, PerOsd
from cephqos_base.series import OSD, DaemonSeries

# The same figure per class of an OSD and of a host. A sum over a cluster reads those of its hosts.
_FIGURES: Final = (
    (PerClass.ATTAINED_OPS, PerHostClass.ATTAINED_OPS),
    (PerClass.RESERVED_OPS, PerHostClass.RESERVED_OPS),
    (PerClass.VIOLATED, PerHostClass.VIOLATED_OSDS),
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
        *(_of_host(host, figure) for figure, host in _FIGURES),
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
