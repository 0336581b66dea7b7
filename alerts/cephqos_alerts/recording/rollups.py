"""Recording rules: sums of OSDs by host."""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerClass, PerCluster, PerHostClass, PerOsd
from cephqos_base.series import OSD, DaemonSeries

# Record, label `figure`, and the series per OSD and class that is summed. A sum over a cluster then
# reads few series: those of its hosts.
_FIGURES: Final = (
    (PerHostClass.OPS, "attained", PerClass.ATTAINED_OPS),
    (PerHostClass.OPS, "reserved", PerClass.RESERVED_OPS),
    (PerHostClass.OPS, "shortfall", PerClass.SHORTFALL_OPS),
    (PerHostClass.OSDS, "violated", PerClass.VIOLATED),
    (PerHostClass.OSDS, "demand", PerClass.DEMAND),
)


def _of_host(record: str, figure: str, series: str) -> RecordedSeries:
    return RecordedSeries(
        record=record,
        labels={"figure": figure},
        expr=f"""
        sum by (cluster, instance, class) (
          {series} * on ({OSD}) group_left (instance) ({PerOsd.INSTANCE} == 1)
        )
        """,
    )


ROLLUPS: Final = RuleGroup(
    name="cephqos-rollups",
    rules=(
        *(_of_host(*figure) for figure in _FIGURES),
        RecordedSeries(
            record=PerCluster.CAPACITY_OPS, expr=f"sum by (cluster) ({PerOsd.CAPACITY_OPS})"
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
