"""Alerts on what reservations are made from: capacities, schedulers, profiles."""

from typing import Final

from cephqos_alerts.rules.rule import MORNING, Alert, FirstCommand, RecordedSeries
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerCluster, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, DaemonSeries, DisksSeries, QosSeries

CAPACITY: Final = (
    Alert(
        name="CephQosCapacityOverstated",
        about=("osd", "load"),
        expr=f"""
        {PerOsd.OVERSTATED}
          and on ({OSD}) (
            count_over_time({PerOsd.SATURATED_OPS}[@hold@]) >= @hold_samples@
          )
          and on ({OSD}) max by ({OSD}) ({PerClass.MAIN_CAUSE}{{cause="{causes.CAPACITY}"}})
        """,
        urgency=MORNING,
        likely="the benchmark at boot measured a cache",
        first=FirstCommand(line="ceph config dump"),
        held="hold",
        labels={"cause": causes.CAPACITY.name},
        summary='{{ $labels.ceph_daemon }} is configured for {{ $value | printf "%.1f" }} times'
        " the most it delivered in the last @day@",
        description="""
        {{ $labels.ceph_daemon }} is saturated. Its configured capacity
        (osd_mclock_max_capacity_iops_*) is {{ $value | printf "%.1f" }} times the most that it
        delivered under saturation in the last @day@. Every reservation and limit derived from it is
        too large by that factor.
        """,
    ),
)

_TOO_LOW: Final = "a benchmark at boot that was disturbed, or a default lower than this device"
_CONFIGURED: Final = FirstCommand(
    line="ceph config show-with-defaults {{ $labels.ceph_daemon }} | grep capacity_iops"
)

UNDERSTATED: Final = (
    Alert(
        name="CephQosCapacityUnderstated",
        about=("osd", "load"),
        expr=PerOsd.UNDERSTATED,
        urgency=MORNING,
        likely=_TOO_LOW,
        first=_CONFIGURED,
        within="@day@",
        labels={"seen": "delivered"},
        summary="{{ $labels.ceph_daemon }} delivered"
        ' {{ $value | printf "%.1f" }} times its configured capacity for @hold@',
        description="""
        {{ $labels.ceph_daemon }} delivered {{ $value | printf "%.1f" }} times its configured
        capacity (osd_mclock_max_capacity_iops_*) for @hold@ of the last @day@. All its reservations
        and limits are too small by that factor or more: recovery, backfill and scrub may be slow.
        """,
    ),
    Alert(
        name="CephQosCapacityUnderstated",
        about=("osd", "load"),
        expr=f"""
        min_over_time({PerOsd.AT_LIMIT_WITH_ROOM}[@hold@])
          and on ({OSD}) (
            count_over_time({PerOsd.AT_LIMIT_WITH_ROOM}[@hold@]) >= @hold_samples@
          )
          unless on ({OSD}) {PerOsd.UNDERSTATED}
        """,
        urgency=MORNING,
        likely=_TOO_LOW,
        first=_CONFIGURED,
        held="hold",
        labels={"seen": "limit"},
        summary="{{ $labels.ceph_daemon }} holds a class at its limit while its device and its CPU"
        " have room",
        description="""
        A class on {{ $labels.ceph_daemon }} has been at its limit for @hold@. The limit is
        {{ $value | printf "%.1f" }} times the share of the time for which the device and the
        busiest thread work. So the capacity (osd_mclock_max_capacity_iops_*), of which
        the limit is a share, is too low by about that factor.
        """,
    ),
)

_NO_RESTARTS: Final = f"unless on (cluster) ({PerCluster.OSD_RESTARTS} > 0)"

SETTINGS: Final = (
    Alert(
        name="CephQosCapacityNeverMeasured",
        about=(),
        expr=f"""
        max by ({OSD}, media) (
          {QosSeries.SCHEDULER_INFO}{{in_force="mclock_scheduler", capacity_origin="default"}}
        )
        unless on ({OSD}) (
          max by ({OSD}) ({DisksSeries.INFO}{{layer="osd", device=~"(loop|ram|zram|nbd).*"}})
        )
        """,
        urgency=MORNING,
        likely="the benchmark at boot was skipped, or its result was rejected",
        first=FirstCommand(line="ceph log last 1000 warn cluster"),
        hold=900,
        summary="{{ $labels.ceph_daemon }} uses a default capacity that was never measured",
        description="""
        {{ $labels.ceph_daemon }} uses Ceph's default capacity for
        {{ $labels.media }}, so its reservations and limits are guesses. Only the cluster log says
        why there is no measured capacity.
        """,
    ),
    Alert(
        name="CephQosSettingsDiffer",
        about=("load",),
        expr=f"""
        count by (cluster, media) (
          count by (cluster, media, in_force, profile) ({QosSeries.SCHEDULER_INFO}{{media!=""}})
        ) > 1
        {_NO_RESTARTS}
        """,
        urgency=MORNING,
        where="cluster",
        likely="an override for some OSDs, or ceph.conf on their hosts",
        first=FirstCommand(line="ceph config dump"),
        hold=900,
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }}: {{ $labels.media }} OSDs run {{ $value }} different"
        " schedulers or profiles",
        description="""
        The {{ $labels.media }} OSDs use {{ $value }} different
        combinations of scheduler and profile. Clients get the weakest of these settings.
        This alert is silent for @hour@ after an OSD restart, as in a rolling upgrade.
        """,
    ),
    Alert(
        name="CephQosSchedulersMixed",
        about=(),
        expr=f"""
        count by (cluster) (
          count by (cluster, in_force) ({QosSeries.SCHEDULER_INFO}{{in_force!="unknown"}})
        ) > 1
        {_NO_RESTARTS}
        """,
        urgency=MORNING,
        where="cluster",
        likely="an upgrade that has not reached all OSDs",
        first=FirstCommand(line="ceph versions"),
        hold=900,
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }} runs both WPQ and mClock",
        description="""
        Some OSDs run WPQ and others mClock. WPQ reserves
        nothing, so a client whose data is on both has no reservation.
        """,
    ),
    Alert(
        name="CephQosReservationsExceedWhole",
        about=("load",),
        expr=f"""
        sum by ({OSD}) (max by ({OSD_CLASS}) ({QosSeries.RESERVATION_RATIO})) > @oversubscribed@
          and on ({OSD}) {QosSeries.SCHEDULER_INFO}{{profile="custom"}}
        """,
        urgency=MORNING,
        likely="the values of the custom profile",
        first=FirstCommand(
            line="ceph config show {{ $labels.ceph_daemon }} osd_mclock_scheduler_client_res"
        ),
        hold=300,
        summary="{{ $labels.ceph_daemon }}: the custom profile reserves"
        " {{ $value | humanizePercentage }} of the OSD",
        description="""
        The reservations of {{ $labels.ceph_daemon }} add up to
        {{ $value | humanizePercentage }} of its capacity. Under load at least one class cannot get
        its reservation. (The built-in profiles of 20.2 exceed 100 % by design.)
        """,
    ),
)

RESTARTS: Final = RecordedSeries(
    record=PerCluster.OSD_RESTARTS,
    expr=f"""
    sum by (cluster) (
      max by ({OSD}) (
        resets({DaemonSeries.CPU_SECONDS}{{mode="user", ceph_daemon=~"osd.*"}}[@hour@])
      )
    )
    """,
)
