"""Alerts on the targets of a policy file, of OSDs and of clusters. And `lasting`: when a state has
lasted long enough for an alert, here and in qos.py.
"""

from typing import Final

from cephqos_alerts.alerts.known import OF_CLUSTER, OF_OSD
from cephqos_alerts.alerts.waiting import WAITED_FOR_FIRING
from cephqos_alerts.recording.reservations import CLUSTER_TARGET_OPS, TARGET_OPS
from cephqos_alerts.rules.rule import MORNING, Alert, FirstCommand, RecordedSeries
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerCluster, PerClusterClass, PerHostClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, ClusterSeries


def lasting(series: str, *, already: str) -> str:
    """Where a series of 0 and 1 has lasted for a hold (5 minutes).

    To begin: 1 in every sample of the hold, and samples in most of it. To go on: 1 in half of the
    hold, as the effects of a fault come and go, and must not end the alert again and again.
    `already` is the start of an expression: "series for which it has begun, and".

    The hold is in the expression and not in `for`: a change of the severity would restart `for`.
    """
    return (
        f"min_over_time({series}[@hold@]) == 1"
        f" and count_over_time({series}[@hold@]) >= @hold_samples@"
        f" or {already} (sum_over_time({series}[@hold@]) >= @half@ * @hold_evaluations@)"
    )


_ALERT: Final = "CephQosPolicyTargetViolated"


def _already_firing(by: str, *, scope: str) -> str:
    """For `lasting`: where the alert of this scope fires already."""
    firing = f'ALERTS{{alertname="{_ALERT}", scope="{scope}", alertstate="firing"}}'
    return f"max by ({by}) ({firing}) and"


_OSD_TARGET_VIOLATED: Final = lasting(
    PerClass.TARGET_VIOLATED, already=_already_firing(OSD_CLASS, scope="osd")
)
_CLUSTER_TARGET_VIOLATED: Final = lasting(
    PerClusterClass.TARGET_VIOLATED, already=_already_firing("cluster, class", scope="cluster")
)

CLUSTER_ATTAINED_OPS: Final = f'sum by (cluster, class) ({PerHostClass.OPS}{{figure="attained"}})'
# 1 if all OSDs of the cluster are scraped, else 0: the sum of a part of them proves nothing. All
# are those that are up in the map or, if no exporter reads the map, the most of the last hour.
_ALL_SCRAPED: Final = f"""
        {PerCluster.OSDS} >= bool on (cluster) (
            count by (cluster) (max by ({OSD}) ({ClusterSeries.OSD_UP}) == 1)
            or max_over_time({PerCluster.OSDS}[@hour@])
          )
""".strip()
# Causes that say only that an OSD does all it can for its own clients, with their replica writes.
_OWN_LOAD: Final = f"{causes.CAPACITY}|{causes.REPLICA_WRITES}|{causes.ONE_SHARD}|{causes.UNKNOWN}"
# 1 if clients have demand on the cluster: on half of its OSDs (the last lines), or on a few OSDs
# that hold up half of all operations in progress. The second is also true for one hot object, which
# violates no target. So a cause that is not their own load must hold those few back, and the target
# would have been met if they did as much as in their best minute of the day.
_CLUSTER_DEMAND: Final = f"""
        0 * (
          sum by (cluster, class) (
            {PerClass.HAS_DEMAND}{{class="client"}}
            * on ({OSD}) group_left () {PerOsd.CLIENT_PRESENT_LOW}
            and on ({OSD_CLASS}) {PerClass.MAIN_CAUSE}{{cause!~"{_OWN_LOAD}"}}
          )
          > on (cluster) group_left () (
            @half@ * sum by (cluster) ({PerOsd.CLIENT_PRESENT_LOW})
          )
          and on (cluster, class) (
            sum by (cluster, class) (
              {PerClass.HAS_DEMAND}{{class="client"}}
              * on ({OSD}) group_left () {PerOsd.DELIVERED_OPS_MAX1D}{{when="ever"}}
              or {PerClass.ATTAINED_OPS}{{class="client"}}
            )
            >= {CLUSTER_TARGET_OPS}
          )
        ) + 1
        or on (cluster, class) (
          sum by (cluster, class) ({PerHostClass.OSDS}{{figure="demand"}})
          >= bool on (cluster) group_left () (@half@ * {PerCluster.OSDS})
        )
"""

TARGETS: Final = (
    RecordedSeries(
        record=PerClass.TARGET_VIOLATED,
        expr=f"""
        {PerClass.DEMAND}
        * on ({OSD_CLASS}) (
          {PerClass.ATTAINED_OPS}
          < bool on ({OSD_CLASS}) (@reached@ * ({TARGET_OPS} > 0))
        )
        """,
    ),
    RecordedSeries(
        record=PerClusterClass.TARGET_VIOLATED,
        expr=f"""
        (
          {_CLUSTER_DEMAND.strip()}
        )
        * on (cluster) group_left () ({_ALL_SCRAPED})
        * (
          {CLUSTER_ATTAINED_OPS} < bool (@reached@ * ({CLUSTER_TARGET_OPS} > 0))
        )
        """,
    ),
    Alert(
        name=_ALERT,
        about=("osd", "load"),
        expr=f"""
        (
          ({PerClass.ATTAINED_OPS} / {TARGET_OPS})
            and on ({OSD_CLASS}) ({_OSD_TARGET_VIOLATED})
        )
        unless on ({OSD_CLASS}) (
          {PerClass.MAIN_CAUSE}{{cause="{causes.OTHER_OSD}"}}
            and on (cluster) {WAITED_FOR_FIRING}
        )
        """,
        urgency=MORNING,
        likely=OF_OSD.likely,
        first=FirstCommand(line="ceph -s"),
        held="hold",
        labels={"scope": "osd"},
        summary="{{ $labels.ceph_daemon }}: {{ $labels.class }} is below its policy target"
        f"{OF_OSD.brief}",
        description="""
        {{ $labels.class }} on {{ $labels.ceph_daemon }} has unmet demand and has had only
        {{ $value | humanizePercentage }} of its policy target for @hold@.
        """,
    ),
    Alert(
        name=_ALERT,
        about=("osd", "load"),
        expr=f"""
        (
          ({CLUSTER_ATTAINED_OPS} / {CLUSTER_TARGET_OPS})
            and on (cluster, class) ({_CLUSTER_TARGET_VIOLATED})
        )
        unless on (cluster, class) (
          {PerClusterClass.MAIN_CAUSE}{{cause="{causes.OTHER_OSD}"}}
            and on (cluster) {WAITED_FOR_FIRING}
        )
        """,
        urgency=MORNING,
        where="cluster",
        likely=OF_CLUSTER.likely,
        first=FirstCommand(line="ceph -s"),
        held="hold",
        labels={"scope": "cluster"},
        summary="cluster {{ $labels.cluster }}: {{ $labels.class }} is below its policy target"
        f"{OF_CLUSTER.brief}",
        description="""
        {{ $labels.class }} has unmet demand and has had only {{ $value | humanizePercentage }} of
        the policy target for the whole cluster for @hold@.
        """,
    ),
)
