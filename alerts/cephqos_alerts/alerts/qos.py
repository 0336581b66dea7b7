"""Alerts on reservations and limits.

- CephQosReservationViolated: one OSD and class. Critical for clients, if an operator can end it at
  night; else a warning. `_CRITICAL` and `_WARNING` divide the causes.
- CephQosReplicaSlow: other OSDs wait for this one.
- CephQosReservationViolatedRepeatedly: many violations, each too short for the first alert.
- CephQosReservationViolatedWidely: the first one on many OSDs of a cluster, as one alert.
- CephQosAtLimitWhileIdle: a limit holds a class back although the OSD has room.

Alerts on policy targets are in targets.py, and those on a whole host in host.py.
"""

from collections.abc import Sequence
from typing import Final

from cephqos_alerts.alerts.host import HOST_CPU_TAKEN, LIMITED_BY
from cephqos_alerts.alerts.known import (
    LIKELY_AND_ALSO,
    MOSTLY,
    MOSTLY_OF_OSD,
    OF_OSD,
    also_of_many,
    if_found,
    known,
    likely_cause_on_osd,
    of_many,
)
from cephqos_alerts.alerts.replica_writes import WHAT_CAN_BE_KEPT
from cephqos_alerts.alerts.targets import TARGETS, lasting
from cephqos_alerts.alerts.waiting import (
    CLIENTS_WAIT,
    OTHERS_WAIT,
    WAITED_FOR_FIRING,
    WAITERS_TOO,
    waiters,
)
from cephqos_alerts.causes.cause import COUNTED, with_value
from cephqos_alerts.recording.conditions import DELAYS_OTHERS, DEVICE_FAILING, SLOW_FOR_RECOVERY
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
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED, QosSeries

# Selectors of MAIN_CAUSE, by what the alert becomes.
# Causes that an operator can end at night. All others can wait until morning.
_CAN_BE_ENDED: Final = (
    f"{causes.OTHER_CLASS}|{causes.LIMIT}|{causes.ONE_SHARD}"
    f"|{causes.DEVICE}|{causes.CPU}|{causes.NETWORK}"
)
# Other programs take the CPU of all OSDs of a host: CephQosHostCpuTaken is about the host.
_NOT_OF_HOST: Final = f'by!~"{OF_HOST}"'
_CRITICAL: Final = (f'class="client", cause=~"{_CAN_BE_ENDED}", {_NOT_OF_HOST}',)
_WARNING: Final = (
    f'class="client", cause!~"{_CAN_BE_ENDED}|{causes.OTHER_OSD}|{causes.REPLICA_WRITES}"',
    f'class=~"background_.*", cause!~"{causes.OTHER_OSD}|{causes.REPLICA_WRITES}", {_NOT_OF_HOST}',
)
# No setting of an OSD leaves a class more beside replica writes: one warning for the cluster.
_REPLICA_WRITES: Final = f'cause="{causes.REPLICA_WRITES}"'
# It may take a while until the OSD is found that others wait for. So a warning about one that waits
# comes two holds later.
_OTHER_OSD: Final = f'cause="{causes.OTHER_OSD}"'
_LASTING_LONGER: Final = (
    f"{PerClass.VIOLATED_LASTING} and count_over_time({PerClass.VIOLATED_LASTING}[@long_hold@])"
    " > @long_hold_evaluations@ - @hold_evaluations@"
)


def _main_cause(selectors: Sequence[str]) -> str:
    return " or ".join(f"{PerClass.MAIN_CAUSE}{{{selector}}}" for selector in selectors)


def _violated(cause: str, lasting: str = PerClass.VIOLATED_LASTING) -> str:
    """The shortfall of each violated OSD and class with such a cause; 0 if it has no figure."""
    return f"""
    (
      ({PerClass.SHORTFALL_OPS} or {PerClass.VIOLATED_LASTING} * 0)
        and on ({OSD_CLASS}) ({lasting})
        unless on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force="wpq"}}
    )
    and on ({OSD_CLASS}) ({cause})
    """


_SUMMARY: Final = (
    "{{ $labels.ceph_daemon }}: {{ $labels.class }} does not get its reservation" + OF_OSD.brief
)
# The value is 0 if the class gets its reservation too late, or if its shortfall has no figure.
_SHORTFALL: Final = (
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
_CLIENTS_WAIT: Final = only_if('eq $labels.class "client"', CLIENTS_WAIT + WAITERS_TOO)
_DESCRIPTION: Final = f"""
{LIMITED_BY}{{{{ $labels.class }}}} on {{{{ $labels.ceph_daemon }}}} has unmet demand and does not
get its reservation{_SHORTFALL}.{_GETS}{_VIOLATED_FOR}{_CLIENTS_WAIT}
"""


def _reservation_violated(urgency: Urgency, expr: str) -> Alert:
    return Alert(
        name="CephQosReservationViolated",
        about=("osd", "load"),
        expr=expr,
        urgency=urgency,
        likely=f"{LIKELY_AND_ALSO}{MOSTLY}",
        first=FirstCommand(line="ceph osd perf"),
        held="hold",
        summary=_SUMMARY,
        description=_DESCRIPTION,
    )


_LIKELY_OF_SLOW_OSD: Final = likely_cause_on_osd(
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

# That the OSD delays others shows all the time, so it must be seen in 80 % of the hold. Those that
# wait for it have little to do, and their demand comes and goes: half of the hold is enough. There
# is no alert if recovery explains it, or if a full host does and the device is well.
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
    likely=f"{_LIKELY_OF_SLOW_OSD}{MOSTLY_OF_OSD}",
    first=FirstCommand(line="ceph tell {{ $labels.ceph_daemon }} dump_ops_in_flight"),
    held="hold",
    summary=f"{{{{ $labels.ceph_daemon }}}}: clients of {counted('other OSD')} wait for it",
    description=f"""
    Writes of {counted("other OSD")}{waiters("$value")} have waited for
    {{{{ $labels.ceph_daemon }}}} for @hold@, whether it has clients of its own or
    not.{OTHERS_WAIT}{_REPLICA_WRITE_TAKES}
    """,
)

# For half of the time of its violations it waited for another OSD that was violated for more than
# 15 minutes of the hour itself: the finding is on that OSD.
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

# Without mClock nothing is reserved, and RESERVED_OPS is the target of a policy file.
_ONLY_A_TARGET: Final = f"""
({TARGET_OPS} == {PerClass.RESERVED_OPS})
  and on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force!="mclock_scheduler"}}
"""

REPEATED: Final = OsdFinding(
    name="CephQosReservationViolatedRepeatedly",
    about=("load",),
    expr=f"""
    {PerClass.VIOLATED_SECONDS} > @long_hold_seconds@
      and on ({OSD_CLASS})
        last_over_time({PerClass.MAIN_CAUSE}{{cause!="{causes.OTHER_OSD}", {_NOT_OF_HOST}}}[@hold@])
      unless on ({OSD_CLASS}) last_over_time({PerClass.MAIN_CAUSE}{{{_REPLICA_WRITES}}}[@hold@])
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


def _counted(*selectors: str) -> str:
    """The OSDs and classes that are violated for such a cause."""
    return (
        f"({_main_cause(selectors)}) and on ({OSD_CLASS}) {PerClass.VIOLATED_LASTING}"
        f' unless on ({OSD}) {QosSeries.SCHEDULER_INFO}{{in_force="wpq"}}'
    )


def _widely(*selectors: str, at_least: str = "@many@") -> str:
    """The number of these OSDs, if they are many."""
    return f"count by (cluster, class) ({_counted(*selectors)}) >= {at_least}"


def _violated_widely(urgency: Urgency, *selectors: str, expr: str = "", cause: str = "") -> Alert:
    violated = _counted(*selectors)
    worst = worst_of(
        f"{PerClass.SHORTFALL_OPS}{{SELECTOR}} and on ({OSD_CLASS}) ({violated})",
        ("cluster", "class"),
    )
    causes_now = of_many(violated)
    return Alert(
        name="CephQosReservationViolatedWidely",
        about=("load",),
        expr=expr or _widely(*selectors),
        urgency=urgency,
        where="cluster",
        labels={"cause": cause} if cause else {},
        likely=f"{causes_now.likely}{also_of_many(violated)}",
        first=FirstCommand(line="ceph -s"),
        held="hold",
        # Load that comes and goes is one warning. A critical one ends when clients get theirs.
        keep=0 if urgency is NOW else KEPT,
        summary=f"{{{{ $labels.class }}}} does not get its reservation {ON_SO_MANY}"
        f"{worst_is(worst)}{causes_now.brief}",
        description=f"""
        {{{{ $labels.class }}}} has had less than its reservation for @hold@ on these OSDs. The
        figure is the shortfall of the OSD. This alert silences those of the single
        OSDs.{WHAT_CAN_BE_KEPT if cause else ""}
        Worst first: {worst_first(worst, 'VALUE | printf "%.0f normalised ops/s"')}.
        """,
    )


# One warning, about clients if they lack something, else about the next class that does.
_REPLICA_WRITES_SOMEWHERE: Final = ") or on (cluster) (".join(
    _widely(f'class="{name}", {_REPLICA_WRITES}', at_least="1") for name in SCHEDULED
)

# At the limit, while the OSD delivers less than half of its capacity and has no request queued at
# its device. Where the depth of the queue is not known, the first is enough.
_AT_LIMIT_WHILE_IDLE: Final = RecordedSeries(
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
_AT_LIMIT_LASTING: Final = lasting(
    PerClass.AT_LIMIT_WHILE_IDLE,
    already=f'{previously(PerOsd.FINDING)}{{finding="AtLimitWhileIdle"}} and on ({OSD_CLASS})',
)
AT_LIMIT: Final = OsdFinding(
    name="CephQosAtLimitWhileIdle",
    about=("load",),
    expr=f"""
    {PerClass.ATTAINED_OPS}
      and on ({OSD_CLASS}) ({_AT_LIMIT_LASTING})
    """,
    by=("class",),
    urgency=MORNING,
    likely="the limit of this class is low: a custom profile",
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

# An OSD that waits for another one is in the text of that one's critical alert: CephQosReplicaSlow,
# or CephQosReservationViolated of the OSD in `by`.
_WAITS_WITHOUT_ALERT: Final = f"""
{_main_cause([_OTHER_OSD])}
  unless on (cluster) {WAITED_FOR_FIRING}
  unless on (cluster, by) label_replace(
    {_counted(*_CRITICAL)}, "by", "$1", "ceph_daemon", "(.+)"
  )
""".strip()

QOS: Final = RuleGroup(
    name="cephqos-qos-alerts",
    rules=(
        RecordedSeries(
            record=PerClass.VIOLATED_LASTING,
            expr=lasting(PerClass.VIOLATED, already=f"{previously(PerClass.VIOLATED_LASTING)} and"),
        ),
        _reservation_violated(NOW, _violated(_main_cause(_CRITICAL))),
        _reservation_violated(
            NOT_TONIGHT,
            f"({_violated(_main_cause(_WARNING))})"
            f" or ({_violated(_WAITS_WITHOUT_ALERT, lasting=_LASTING_LONGER)})",
        ),
        HOST_CPU_TAKEN,
        _REPLICA_SLOW,
        _violated_widely(NOW, *_CRITICAL),
        _violated_widely(NOT_TONIGHT, *_WARNING),
        _violated_widely(
            NOT_TONIGHT,
            _REPLICA_WRITES,
            expr=f"({_REPLICA_WRITES_SOMEWHERE})",
            cause=causes.REPLICA_WRITES.name,
        ),
        *TARGETS,
        _AT_LIMIT_WHILE_IDLE,
    ),
)
