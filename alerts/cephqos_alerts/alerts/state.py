"""Alerts on scrub, recovery and saturation."""

from typing import Final

from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.rule import MORNING, NOW, Alert, FirstCommand, RuleGroup
from cephqos_alerts.rules.text import COUNT, counted
from cephqos_base.recorded import PerOsd, PerOsdPlace
from cephqos_base.series import (
    OSD,
    CrimsonSeries,
    PlacementSeries,
    RecoverySeries,
    ScrubSeries,
    ThreadsSeries,
)

SCRUB: Final = RuleGroup(
    name="cephqos-scrub-alerts",
    rules=(
        Alert(
            name="CephQosScrubStalled",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool, level) ({ScrubSeries.POOL_RUNNING_PGS}) > 0
              and on (cluster, pool) (
                max by (cluster, pool)
                  (increase({ScrubSeries.POOL_OBJECTS}[@long_hold@])) == 0
              )
            """,
            urgency=MORNING,
            where="pool",
            likely="an OSD of this pool is stuck or very busy",
            first=FirstCommand(line="ceph pg ls scrubbing"),
            hold=900,
            summary="pool {{ $labels.pool }}: scrubs are running but make no progress",
            description=f"""
            Pool {{{{ $labels.pool }}}} has {counted("{{ $labels.level }} scrub")} running, and no
            object was scrubbed in @long_hold@.
            """,
        ),
        Alert(
            name="CephQosDeepScrubCannotKeepUp",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool) ({ScrubSeries.POOL_BACKLOG_ETA_SECONDS}{{level="deep"}})
            > on (cluster, pool)
            max by (cluster, pool) ({ScrubSeries.POOL_INTERVAL_SECONDS}{{level="deep"}})
            """,
            urgency=MORNING,
            where="pool",
            likely="too few scrubs at a time, too few hours, or busy OSDs",
            first=FirstCommand(line="ceph pg ls scrubbing"),
            hold=900,
            summary="pool {{ $labels.pool }}: deep scrubs cannot keep up with their schedule",
            description="""
            At the rate of the last minutes, the deep scrubs that are due in pool
            {{ $labels.pool }} take
            {{ $value | humanizeDuration }}. That is longer than the deep scrub interval.
            """,
        ),
        Alert(
            name="CephQosScrubsOverdueGrowing",
            about=("load", "scrub"),
            duplicates=("CephPGNotScrubbed", "CephPGNotDeepScrubbed"),
            expr=f"""
            max by (cluster, pool, level) ({ScrubSeries.POOL_SCHEDULE_PGS}{{state="overdue"}})
            - max by (cluster, pool, level)
              ({ScrubSeries.POOL_SCHEDULE_PGS}{{state="overdue"}} offset @day@)
            > @scrub_growth@ * sum by (cluster, pool, level) (
              max by (cluster, pool, level, state) ({ScrubSeries.POOL_SCHEDULE_PGS})
            )
            """,
            urgency=MORNING,
            where="pool",
            likely="scrubs are switched off, or too few run at a time",
            first=FirstCommand(line="ceph osd dump"),
            hold=900,
            summary="pool {{ $labels.pool }}: {{ $value }} more placement groups overdue for a"
            " {{ $labels.level }} scrub than a day ago",
            description="""
            In pool {{ $labels.pool }} {{ $value }} more
            placement groups than @day@ ago are so late with their {{ $labels.level }} scrub that
            Ceph warns about them.
            """,
        ),
    ),
)

_LEFT: Final = f"""
max by (cluster, pool) ({RecoverySeries.POOL_DEGRADED_OBJECTS})
+ max by (cluster, pool) ({RecoverySeries.POOL_MISPLACED_OBJECTS})
"""

RECOVERY: Final = RuleGroup(
    name="cephqos-recovery-alerts",
    rules=(
        Alert(
            name="CephQosRecoveryStalled",
            about=("load", "recovery"),
            expr=f"""
            ({_LEFT.strip()}) > 0
              and on (cluster) (
                sum by (cluster) (
                  max by (cluster, pool) (increase({RecoverySeries.POOL_OBJECTS}[@hold@]))
                ) == 0
              )
            """,
            urgency=MORNING,
            where="pool",
            likely="a flag such as norecover, a full OSD, or an OSD that is down",
            first=FirstCommand(line="ceph health detail"),
            hold=600,
            summary=f"pool {{{{ $labels.pool }}}}: recovery has stopped with {COUNT} object copies"
            " left",
            description=f"""
            {COUNT} copies of objects of pool {{{{ $labels.pool }}}} are degraded or misplaced, and
            none was recovered in @hold@.
            """,
        ),
        Alert(
            name="CephQosRecoveryTooSlow",
            about=("load", "recovery"),
            expr=f"max by (cluster, pool) ({RecoverySeries.POOL_ETA_SECONDS}) > @day_seconds@",
            urgency=MORNING,
            where="pool",
            likely="the limits of recovery, or clients that have most of the work",
            first=FirstCommand(line="ceph -s"),
            hold=900,
            summary="pool {{ $labels.pool }}: recovery will take another"
            " {{ $value | humanizeDuration }}",
            description="""
            At the rate of the last minutes, pool {{ $labels.pool }} needs another
            {{ $value | humanizeDuration }} to recover. Until then the pool tolerates fewer
            failures.
            """,
        ),
        Alert(
            name="CephQosObjectsUnfound",
            duplicates=("CephObjectMissing",),
            expr=f"max by (cluster, pool) ({RecoverySeries.POOL_UNFOUND_OBJECTS}) > 0",
            urgency=NOW,
            where="pool",
            likely="the OSDs that have these objects are down",
            first=FirstCommand(line="ceph health detail"),
            hold=300,
            summary=f"pool {{{{ $labels.pool }}}}: {counted('object')} unfound",
            description=f"""
            No OSD that is up has the newest version of {counted("object")} of pool
            {{{{ $labels.pool }}}}. Clients that access them wait.
            """,
        ),
    ),
)

THREAD_AT_CEILING: Final = OsdFinding(
    name="CephQosThreadAtCeiling",
    about=("load",),
    expr=f"""
    max by ({OSD}, group) (
      rate({ThreadsSeries.BUSIEST_CPU_SECONDS}{{group!~"other|reactor"}}[@rate@])
      > @reached@
      or label_replace(
        avg_over_time({CrimsonSeries.REACTOR_UTILIZATION_RATIO}[@rate@]) > @reached@,
        "group", "reactor", "", ""
      )
    )
    """,
    by=("group",),
    urgency=MORNING,
    likely="more operations than one thread can do",
    first=FirstCommand(line="ceph tell {{ $labels.ceph_daemon }} dump_historic_ops"),
    window="long_hold",
    figure="VALUE | humanizePercentage",
    summary="a {{ $labels.group }} thread uses a whole CPU",
    description="""
    The figure is how much of the time the busiest {{ $labels.group }} thread of the OSD is busy.
    One thread cannot do more, so the OSD gets no faster even if its device could.
    """,
)
DEVICE_SATURATED: Final = OsdFinding(
    name="CephQosDeviceSaturated",
    about=("load",),
    expr=f"""
    ({PerOsdPlace.SECONDS}{{at="device"}} > @device_floor@)
      > on ({OSD}) (@far_above@ * {PerOsdPlace.SECONDS_MEDIAN1D}{{at="device"}})
      and on ({OSD}) ({PerOsd.DEVICE_DEPTH} > 1)
    """,
    urgency=MORNING,
    likely="the device fails, or other work uses it",
    first=FirstCommand(line="dmesg | tail -50", on="host"),
    window="long_hold",
    figure="VALUE | humanizeDuration",
    summary="the device is much slower than usual",
    description="""
    The figure is the time of a request to the device. It is @far_above@ times its median of
    the last @day@ or more, with requests queued.
    """,
)
REACTOR_SHARED: Final = OsdFinding(
    name="CephQosReactorShared",
    expr=f"max by ({OSD}, by) ({PlacementSeries.REACTORS_SHARED}) > 0",
    by=("by",),
    urgency=MORNING,
    likely="cores that were given twice, or other programs on them",
    first=FirstCommand(line="ps -eLo psr,pid,comm --sort psr", on="host"),
    window="hold",
    figure='VALUE | printf "%.0f"',
    summary="the CPU of reactors is shared{{ with $labels.by }} ({{ . }}){{ end }}",
    description="""
    Something else uses the CPU of reactors as well{{ with $labels.by }} ({{ . }}){{ end }}: the
    figure is of how many. A reactor polls all the time, so whatever shares its CPU slows down every
    operation.
    """,
)
