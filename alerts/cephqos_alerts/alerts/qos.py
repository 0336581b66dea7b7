"""Alerts on reservations and limits."""

from typing import Final

from cephqos_alerts.alerts.host import HOST_CPU_TAKEN, LIMITED_BY
from cephqos_alerts.alerts.known import (
    ALSO,
    CLIENTS_WAIT,
    MOSTLY,
    OF_MANY,
    OF_OSD,
    OTHERS_WAIT,
    if_found,
    known,
    seen_of_it,
)
from cephqos_alerts.alerts.targets import TARGETS, lasting
from cephqos_alerts.causes.cause import COUNTED, with_value
from cephqos_alerts.recording.conditions import (
    DELAYS_OTHERS,
    DEVICE_FAILING,
    SLOW_FOR_RECOVERY,
)
from cephqos_alerts.recording.limited import OF_HOST
from cephqos_alerts.recording.reservations import TARGET_OPS
from cephqos_alerts.rules.findings import KEPT, OsdFinding
from cephqos_alerts.rules.rule import (
    MORNING,
    NOT_TONIGHT,
    NOW,
    Alert,
    FirstCommand,
    RecordedSeries,
    RuleGroup,
    Urgency,
    previously,
)
from cephqos_alerts.rules.template import only_if
from cephqos_alerts.rules.text import ON_SO_MANY, counted, worst_first, worst_is, worst_of
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd, PerOsdPlace
from cephqos_base.series import IMMEDIATE, OSD, OSD_CLASS, QosSeries

# Causes that an operator can end at night. All others can wait until morning.
_ENDED_AT_NIGHT: Final = (
    f"{causes.OTHER_CLASS}|{causes.LIMIT}|{causes.ONE_SHARD}"
    f"|{causes.DEVICE}|{causes.CPU}|{causes.NETWORK}"
)
# What happens to all OSDs of a host has one alert, about the host.
_OWN: Final = f'by!~"{OF_HOST}"'
_CRITICAL: Final = (f'class="client", cause=~"{_ENDED_AT_NIGHT}", {_OWN}',)
_WARNING: Final = (
    f'class="client", cause!~"{_ENDED_AT_NIGHT}|{causes.OTHER_OSD}|{causes.REPLICA_WRITES}"',
    f'class=~"background_.*", cause!="{causes.OTHER_OSD}", {_OWN}',
)
# No setting of an OSD leaves its clients more beside replica writes: one warning for the cluster.
_OF_CLUSTER: Final = f'class="client", cause="{causes.REPLICA_WRITES}"'
# If the time is spent on another OSD, that OSD has a critical alert, which silences these. It may
# take a while until that OSD is found.
_AWAY: Final = f'cause="{causes.OTHER_OSD}"'


# An OSD that waits for another one has its alert later: that OSD's critical alert comes first.
_LASTING_LONGER: Final = (
    f"{PerClass.VIOLATED_LASTING} and count_over_time({PerClass.VIOLATED_LASTING}[@long_hold@])"
    " > @long_hold_evaluations@ - @hold_evaluations@"
)


# WPQ has no reservations: there a policy's target takes their place.
_ONLY_A_TARGET: Final = f"""
({TARGET_OPS} == {PerClass.RESERVED_OPS})
  and on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force!="mclock_scheduler"}}
"""


def _violated(*selectors: str, lasting: str = PerClass.VIOLATED_LASTING) -> str:
    chosen = " or ".join(f"{PerClass.MAIN_CAUSE}{{{it}}}" for it in selectors)
    return f"""
    (
      ({PerClass.SHORTFALL_OPS} or {PerClass.VIOLATED_LASTING} * 0)
        and on ({OSD_CLASS}) ({lasting})
        unless on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force="wpq"}}
    )
    * on ({OSD_CLASS}) group_left (cause) ({chosen})
    """


_SHORT_SUMMARY: Final = (
    "{{ $labels.ceph_daemon }}: {{ $labels.class }} does not get its reservation" + OF_OSD.brief
)
# 0 where it is late, or what it is short of has no figure.
_SHORT: Final = (
    '{{ if gt $value 0.0 }}: it is {{ $value | printf "%.0f" }} normalised ops/s short{{ end }}'
)
_GETS: Final = if_found(
    f"{PerClass.ATTAINED_OPS}SELECTOR / on (class) ({PerClass.RESERVED_OPS}SELECTOR > 0)",
    ("cluster", "ceph_daemon", "class"),
    " It gets {{ . | first | value | humanizePercentage }} of its reservation.",
)
_VIOLATED_FOR: Final = known(
    PerClass.VIOLATED_SECONDS, " Violated for {{ FIGURE | humanizeDuration }} of the last @hour@."
)
_LOST: Final = only_if('eq $labels.class "client"', CLIENTS_WAIT)
_SHORT_DESCRIPTION: Final = f"""
{LIMITED_BY}{{{{ $labels.class }}}} on {{{{ $labels.ceph_daemon }}}} has unmet demand and does not
get its reservation{_SHORT}.{_GETS}{_VIOLATED_FOR}{_LOST}
"""


def _reservation(urgency: Urgency, expr: str) -> Alert:
    return Alert(
        name="CephQosReservationViolated",
        about=("osd", "load"),
        expr=expr,
        urgency=urgency,
        likely=f"{OF_OSD.likely}{ALSO}{MOSTLY}",
        first=FirstCommand(line="ceph osd perf"),
        held="hold",
        summary=_SHORT_SUMMARY,
        description=_SHORT_DESCRIPTION,
    )


_SEEN_OF_IT: Final = seen_of_it(
    "the network. Neither its device nor its CPU shows why: look at its log and its network."
)

_SLOWNESS: Final = known(
    PerOsd.REPLICA_SLOWNESS,
    ', {{ FIGURE | printf "%.0f" }} times the median of its peers',
    of_class=False,
)
_REPLICA_WRITE_TAKES: Final = known(
    PerOsdPlace.SECONDS,
    f" A replica write takes {{{{ FIGURE | humanizeDuration }}}} on it{_SLOWNESS}.",
    of_class=False,
    at="replica_write",
)

# The slow OSD is seen all the time. Those that wait for it have little to do, so their demand comes
# and goes.
_REPLICA_SLOW: Final = Alert(
    name="CephQosReplicaSlow",
    about=("osd", "load"),
    expr=f"""
    max by ({OSD}) (max_over_time({PerOsd.WAITED_FOR}[@hold@]))
      and on ({OSD}) (
        count_over_time({PerOsd.WAITED_FOR}[@hold@]) >= @half@ * @hold_evaluations@
      )
      and on ({OSD}) (
        count_over_time({DELAYS_OTHERS}[@hold@]) >= @hold_samples@
      )
      unless on ({OSD}) (
        count_over_time({SLOW_FOR_RECOVERY}[@hold@]) >= @half@ * @hold_evaluations@
      )
      unless on ({OSD}) (
        count_over_time({PerOsd.CPU_DENIED}{{by=~"{OF_HOST}"}}[@hold@])
        >= @half@ * @hold_evaluations@
        unless on ({OSD}) max_over_time({DEVICE_FAILING}[@hold@])
      )
    """,
    urgency=NOW,
    likely=_SEEN_OF_IT,
    first=FirstCommand(line="ceph tell {{ $labels.ceph_daemon }} dump_ops_in_flight"),
    held="hold",
    labels={"cause": causes.OTHER_OSD.name},
    summary=f"{{{{ $labels.ceph_daemon }}}}: clients of {counted('other OSD')} wait for it",
    description=f"""
    Writes of {counted("other OSD")} have waited for {{{{ $labels.ceph_daemon }}}} for @hold@,
    whether it has clients of its own or not.{OTHERS_WAIT}{_REPLICA_WRITE_TAKES}
    """,
)

# Most of the time it waited for another OSD that was violated as often itself: alerted there.
_REPEATED_ELSEWHERE: Final = f"""
max by ({OSD_CLASS}, by) (
  count_over_time({PerClass.EVIDENCE}{{class="client", cause="{causes.OTHER_OSD}", by!=""}}[@hour@])
) * @interval_seconds@
>= on ({OSD_CLASS}) group_left () (@half@ * {PerClass.VIOLATED_SECONDS})
and on (cluster, by) label_replace(
  {PerClass.VIOLATED_SECONDS}{{class="client"}} > @long_hold_seconds@,
  "by", "$1", "ceph_daemon", "(.+)"
)
"""

REPEATED: Final = OsdFinding(
    name="CephQosReservationViolatedRepeatedly",
    about=("load",),
    expr=f"""
    {PerClass.VIOLATED_SECONDS} > @long_hold_seconds@
      and on ({OSD_CLASS})
        last_over_time({PerClass.MAIN_CAUSE}{{cause!="{causes.OTHER_OSD}", {_OWN}}}[@hold@])
      unless on ({OSD_CLASS}) last_over_time({PerClass.MAIN_CAUSE}{{{_OF_CLUSTER}}}[@hold@])
      unless on ({OSD_CLASS}) max by ({OSD_CLASS}) (
        count_over_time(
          ALERTS{{alertname="CephQosReservationViolated", alertstate="firing"}}[@hour@]
        )
      )
      unless on ({OSD_CLASS}) ({_REPEATED_ELSEWHERE.strip()})
      unless on ({OSD_CLASS}) ({_ONLY_A_TARGET.strip()})
    """,
    by=("class",),
    urgency=MORNING,
    likely="short bursts of other work, such as scrub",
    first=FirstCommand(line="ceph pg ls scrubbing"),
    within="@hour@",
    figure="VALUE | humanizeDuration",
    summary="the reservation of {{ $labels.class }} is violated again and again",
    description="""
    The reservation of {{ $labels.class }} was violated several times, each for less than @hold@.
    The figure is the sum of these times in the last @hour@.
    """,
)

_HELD: Final = lasting(
    PerClass.AT_LIMIT_WHILE_IDLE,
    f'{previously(PerOsd.FINDING)}{{finding="AtLimitWhileIdle"}} and on ({OSD_CLASS})',
)


def _wide(*selectors: str, at_least: str = "@many@") -> str:
    chosen = " or ".join(f"{PerClass.MAIN_CAUSE}{{{it}}}" for it in selectors)
    return f"""
    count by (cluster, class, cause) (
      ({chosen}) and on ({OSD_CLASS}) {PerClass.VIOLATED_LASTING}
        unless on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force="wpq"}}
    )
    >= {at_least}
    """


# What these OSDs do, of their capacity: below 100 % they do not sustain it. And what they do for
# others than replica writes: the most that clients can have.
_FULL_OF_REPLICAS: Final = (
    f'and on ({OSD}) {PerClass.MAIN_CAUSE}{{cluster="%[1]s",class="client"'
    f',cause="{causes.REPLICA_WRITES}"}}'
)
_CAPACITY: Final = f"sum({PerOsd.CAPACITY_OPS} {_FULL_OF_REPLICAS})"
_DELIVERED: Final = f"sum({PerOsd.DELIVERED_OPS} {_FULL_OF_REPLICAS}) / {_CAPACITY}"
_LEFT: Final = (
    f"sum(({PerOsd.DELIVERED_OPS} - on ({OSD})"
    f' sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="{IMMEDIATE}"}})) {_FULL_OF_REPLICAS})'
    f" / {_CAPACITY}"
)
_SHARE: Final = "{{ . | first | value | humanizePercentage }}"
_LEAVE: Final = (
    f" Replica writes leave {_SHARE} of it: no larger reservation can be kept under this load."
)
_CAN_BE_KEPT: Final = only_if(
    f'eq $labels.cause "{causes.REPLICA_WRITES}"',
    " Replica writes have no class and go first."
    + if_found(_DELIVERED, ("cluster",), f" These OSDs deliver {_SHARE} of their capacity.")
    + if_found(_LEFT, ("cluster",), _LEAVE),
)
_WORST: Final = worst_of(
    f"{PerClass.SHORTFALL_OPS} and on ({OSD_CLASS}) {PerClass.VIOLATED_LASTING}"
    f" and on ({OSD_CLASS}) {PerClass.MAIN_CAUSE}{{SELECTOR}}",
    ("cluster", "class", "cause"),
)


def _widely(urgency: Urgency, expr: str) -> Alert:
    return Alert(
        name="CephQosReservationViolatedWidely",
        about=("load",),
        expr=expr,
        urgency=urgency,
        where="cluster",
        likely=OF_MANY.likely,
        first=FirstCommand(line="ceph -s"),
        held="hold",
        # Load that comes and goes is one warning. A critical one ends when clients get theirs.
        keep=0 if urgency is NOW else KEPT,
        dashboard="cluster",
        summary=f"{{{{ $labels.class }}}} does not get its reservation {ON_SO_MANY}"
        f"{worst_is(_WORST)}{OF_MANY.brief}",
        description=f"""
        {{{{ $labels.class }}}} has had less than its reservation for @hold@ on these OSDs. The
        figure is the shortfall of the OSD. This alert silences those of the single
        OSDs.{_CAN_BE_KEPT}
        Worst first: {worst_first(_WORST, 'VALUE | printf "%.0f normalised ops/s"')}.
        """,
    )


_LIMIT: Final = RecordedSeries(
    # Best effort is meant to be slow: removing a pool stays at its limit until it is done.
    record=PerClass.AT_LIMIT_WHILE_IDLE,
    expr=f"""
    {PerClass.CAUSE}{{cause="{causes.LIMIT}", class!="background_best_effort"}}
    * on ({OSD}) group_left () (
      (
        {PerOsd.DELIVERED_OPS} < bool on ({OSD}) (@half@ * {PerOsd.CAPACITY_OPS})
        {COUNTED.strip()}
      )
      * on ({OSD}) (
        ({PerOsd.DEVICE_DEPTH} < bool 1) or {with_value(PerOsd.DELIVERED_OPS)}
      )
    )
    """,
)
AT_LIMIT: Final = OsdFinding(
    name="CephQosAtLimitWhileIdle",
    about=("load",),
    expr=f"""
    {PerClass.ATTAINED_OPS}
      and on ({OSD_CLASS}) ({_HELD})
    """,
    by=("class",),
    urgency=MORNING,
    likely="the limit of this class is low: a custom profile, or the built-in ones of 16.2",
    first=FirstCommand(line="ceph config show {{ $labels.ceph_daemon }} osd_mclock_profile"),
    held="hold",
    labels={"cause": causes.LIMIT.name},
    figure='VALUE | printf "%.0f normalised ops/s"',
    summary="{{ $labels.class }} waits for its limit while the OSD is idle",
    description="""
    {{ $labels.class }} has waited for its limit for @hold@. The figure is what it gets. The OSD
    delivers less than half of its capacity and its device has no queue.
    """,
)

QOS: Final = RuleGroup(
    name="cephqos-qos-alerts",
    rules=(
        RecordedSeries(
            record=PerClass.VIOLATED_LASTING,
            expr=lasting(PerClass.VIOLATED, f"{previously(PerClass.VIOLATED_LASTING)} and"),
        ),
        _reservation(NOW, _violated(*_CRITICAL)),
        _reservation(
            NOT_TONIGHT,
            f"({_violated(*_WARNING)}) or ({_violated(_AWAY, lasting=_LASTING_LONGER)})",
        ),
        HOST_CPU_TAKEN,
        _REPLICA_SLOW,
        _widely(NOW, _wide(*_CRITICAL)),
        _widely(NOT_TONIGHT, f"({_wide(*_WARNING)}) or ({_wide(_OF_CLUSTER, at_least='1')})"),
        *TARGETS,
        _LIMIT,
    ),
)
