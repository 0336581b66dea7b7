"""Alerts on what reservations are made from: capacities, schedulers, profiles."""

from typing import Final

from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.rule import MORNING, Alert, FirstCommand
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, DaemonSeries, DisksSeries, QosSeries

OVERSTATED: Final = OsdFinding(
    name="CephQosCapacityOverstated",
    about=("load",),
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
    figure='VALUE | printf "%.1f times"',
    summary="capacity is configured too high",
    description="""
    These OSDs are saturated. The figure is the configured capacity
    (osd_mclock_max_capacity_iops_*), divided by the most that the OSD delivered under saturation in
    the last @day@. Every reservation and limit derived from it is too large by that factor.
    """,
)

# What an OSD did throughout a hold of the last day, in multiples of its capacity, if it is far
# more.
_DID_MORE: Final = (
    f'{PerOsd.DELIVERED_OPS_MAX1D}{{when="sustained"}} / on ({OSD}) {PerOsd.CAPACITY_OPS} > @more@'
)
_LIKELY_TOO_LOW: Final = (
    "a benchmark at boot that was disturbed, or a default lower than these devices"
)
_SHOW_CAPACITY: Final = FirstCommand(
    line="ceph config show-with-defaults {{ $labels.ceph_daemon }} | grep capacity_iops"
)

UNDERSTATED: Final = (
    OsdFinding(
        name="CephQosCapacityUnderstated",
        about=("load",),
        expr=_DID_MORE,
        urgency=MORNING,
        likely=_LIKELY_TOO_LOW,
        first=_SHOW_CAPACITY,
        within="@day@",
        labels={"seen": "delivered"},
        figure='VALUE | printf "%.1f times"',
        summary="capacity is configured far below what was delivered for @hold@",
        description="""
        The figure is what the OSD delivered for @hold@ of the last @day@, divided by its configured
        capacity (osd_mclock_max_capacity_iops_*). All its reservations and limits are too small by
        that factor or more: recovery, backfill and scrub may be slow.
        """,
    ),
    # Its series is recorded once a minute: more than 4 of its samples span 4 minutes.
    OsdFinding(
        name="CephQosCapacityUnderstated",
        about=("load",),
        expr=f"""
        min_over_time({PerOsd.AT_LIMIT_WITH_ROOM}[@hold@])
          and on ({OSD}) (
            count_over_time({PerOsd.AT_LIMIT_WITH_ROOM}[@hold@:@slow_interval@]) > @hold_minutes@
          )
          unless on ({OSD}) ({_DID_MORE})
        """,
        urgency=MORNING,
        likely=_LIKELY_TOO_LOW,
        first=_SHOW_CAPACITY,
        held="hold",
        labels={"seen": "limit"},
        figure='VALUE | printf "%.1f times"',
        summary="a class is at its limit while device and CPU have room",
        description="""
        A class has been at its limit for @hold@, although the device and the busiest thread are
        idle for much of the time. The limit is a share of the capacity
        (osd_mclock_max_capacity_iops_*), so the capacity is too low: by about the factor that the
        figure says.
        """,
    ),
)

NEVER_MEASURED: Final = OsdFinding(
    name="CephQosCapacityNeverMeasured",
    expr=f"""
    max by ({OSD}, media) (
      {QosSeries.SCHEDULER_INFO}{{in_force="mclock_scheduler", capacity_origin="default"}}
    )
    unless on ({OSD}) (
      max by ({OSD}) ({DisksSeries.INFO}{{layer="osd", device=~"(loop|ram|zram|nbd).*"}})
    )
    """,
    by=("media",),
    urgency=MORNING,
    likely="the benchmark at boot was skipped, or its result was rejected",
    first=FirstCommand(line="ceph log last 1000 warn cluster"),
    window="long_hold",
    summary="{{ $labels.media }} capacity is a default that was never measured",
    description="""
    These OSDs use Ceph's default capacity for {{ $labels.media }}, so their reservations and limits
    are guesses. Only the cluster log says why there is no measured capacity.
    """,
)

# OSDs that restarted within the hour may be in a rolling upgrade, in which settings differ.
_NO_RESTARTS: Final = f"""unless on (cluster) (
          resets({DaemonSeries.CPU_SECONDS}{{mode="user", ceph_daemon=~"osd.*"}}[@hour@]) > 0
        )"""

SETTINGS: Final = (
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
        summary="cluster {{ $labels.cluster }} runs both WPQ and mClock",
        description="""
        Some OSDs run WPQ and others mClock. WPQ reserves
        nothing, so a client whose data is on both has no reservation.
        """,
    ),
)

EXCEED_WHOLE: Final = OsdFinding(
    name="CephQosReservationsExceedWhole",
    about=("load",),
    expr=f"""
    round(sum by ({OSD}) (max by ({OSD_CLASS}) ({QosSeries.RESERVATION_RATIO})), 0.01) > 1
      and on ({OSD}) {QosSeries.SCHEDULER_INFO}{{profile="custom"}}
    """,
    urgency=MORNING,
    likely="the values of the custom profile",
    first=FirstCommand(
        line="ceph config show {{ $labels.ceph_daemon }} osd_mclock_scheduler_client_res"
    ),
    window="hold",
    figure="VALUE | humanizePercentage",
    summary="the custom profile reserves more than the whole OSD",
    description="""
    The reservations of these OSDs add up to more than their capacity: the figure is the sum. Under
    load at least one class cannot get its reservation. (The built-in profiles of 20.2 exceed 100 %
    by design.)
    """,
)
