"""All causes, and which of them leads.

The series, in the order of evaluation:

EVIDENCE          each cause that is seen now; the value is its rank.
CAUSE             the most urgent of them.
LASTING_EVIDENCE  causes that were seen for long enough.
MAIN_CAUSE        the most urgent of those: alerts name it.
WAITED_FOR        how many OSDs wait for this one.

A hold is the time that a violation must last before an alert fires (rules/settings.py: 5 minutes).
"""

from typing import Final

from cephqos_alerts.causes.capacity import CAPACITY
from cephqos_alerts.causes.cause import as_by, with_value
from cephqos_alerts.causes.cpu import BUSY_RANK, CPU
from cephqos_alerts.causes.device import DEVICE
from cephqos_alerts.causes.limit import LIMIT
from cephqos_alerts.causes.network import NETWORK
from cephqos_alerts.causes.one_shard import ONE_SHARD
from cephqos_alerts.causes.other_class import OTHER_CLASS
from cephqos_alerts.causes.other_osd import OTHER_OSD, PARTLY_RANK, SICK_RANK
from cephqos_alerts.causes.replica_writes import REPLICA_WRITES
from cephqos_alerts.causes.unknown import UNKNOWN
from cephqos_alerts.recording.conditions import DELAYS_OTHERS, DEVICE_FAILING
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS

# In the order of recording, the most urgent first.
EVERY: Final = (
    *(DEVICE, CPU, LIMIT, ONE_SHARD, OTHER_CLASS),
    *(OTHER_OSD, NETWORK, REPLICA_WRITES, CAPACITY, UNKNOWN),
)

# The parts of LASTING_EVIDENCE. In PromQL `and` binds before `or`. EVIDENCE has one sample per
# evaluation while its cause holds, so a count of samples is a time.
_HALF_A_HOLD: Final = "@half@ * @hold_evaluations@"
# How often in the last hold the cause was seen with this `by`.
_TIMES_SEEN: Final = f"count_over_time({PerClass.EVIDENCE}[@hold@])"
# Causes that were seen, with whatever `by`, for half of the last hold.
_SEEN_LONG: Final = f"sum by ({OSD_CLASS}, cause) ({_TIMES_SEEN}) >= {_HALF_A_HOLD}"
# What the evaluation before this one recorded.
_BEFORE: Final = previously(PerClass.LASTING_EVIDENCE)
_MEDIAN_RANK: Final = f"quantile_over_time(0.5, {PerClass.EVIDENCE}[@hold@])"
# The highest rank of the CPU in the last three holds, if the lack of CPU hurt for half a hold in
# all. A sample of this series is causes.CPU.rank (85) where the lack hurts, else BUSY_RANK (35). So
# of N samples of which H hurt: sum - 35 * N = (85 - 35) * H.
_CPU: Final = f'{PerClass.EVIDENCE}{{cause="{causes.CPU}"}}'
_RANK_SHORT_OF_CPU: Final = f"""
  max_over_time({_CPU}[@long_hold@]) and (
    sum_over_time({_CPU}[@long_hold@])
    - {BUSY_RANK} * count_over_time({_CPU}[@long_hold@])
    >= {causes.CPU.rank - BUSY_RANK} * {_HALF_A_HOLD}
  )
""".strip()
# The value is the rank of a lasting lack of CPU, else the median of the hold if the cause was seen
# for half of it, else the rank before.
_RANK: Final = f"""
              {_RANK_SHORT_OF_CPU} and {_BEFORE}
              or ({_MEDIAN_RANK} and on ({OSD_CLASS}, cause) ({_SEEN_LONG})) or {_BEFORE}
""".strip()
# One `by` per cause: the one seen most. The `by` before counts as seen for half a hold.
_CHOICE_OF_BY: Final = f"""
topk by ({OSD_CLASS}, cause) (1,
                {_TIMES_SEEN} > {_HALF_A_HOLD}
                or {with_value(_BEFORE, _HALF_A_HOLD)} or {_TIMES_SEEN}
              )
""".strip()
# A cause that lasted before stays while it is seen at all. Another must be seen for half a hold.
_STILL_SEEN: Final = f"{_BEFORE} and on ({OSD_CLASS}, cause) {_TIMES_SEEN} or {_SEEN_LONG}"

# Clients that wait for the OSD `by`, with more evidence than a part of their time.
_WAITS_FOR_BY: Final = (
    f'({PerClass.EVIDENCE}{{class="client", cause="{causes.OTHER_OSD}", by!=""}} > {PARTLY_RANK})'
)
# OSDs that delay others and spend more than a tenth of their work on recovery.
_RECOVERS: Final = f"""
{DELAYS_OTHERS} and on ({OSD}) (
  {PerClass.ATTAINED_OPS}{{class="background_recovery"}}
  > on ({OSD}) (@little@ * {PerOsd.DELIVERED_OPS})
)
"""

CAUSE: Final = RuleGroup(
    name="cephqos-cause",
    rules=(
        *(cause.rule() for cause in EVERY),
        RecordedSeries(
            record=PerClass.CAUSE,
            comment="The most urgent of the causes that hold now.",
            expr=with_value(f"topk by ({OSD_CLASS}) (1, {PerClass.EVIDENCE})"),
        ),
        # Some engines show a series for minutes after its last sample: then two `by` are there, and
        # the newer one wins in _CHOICE_OF_BY by its count.
        RecordedSeries(
            record=PerClass.LASTING_EVIDENCE,
            comment="""
            Causes that last. They label alerts, which must not flap. A cause stays until it was not
            seen for a whole hold. Otherwise the alert of a mended fault would end as a warning with
            an unknown cause. If a host or its network has failed, `by` changes all the time. The
            cause still lasts, and `by` stays until another one was seen for half of the hold and
            more often. The rank is the median of the hold, or the one before if the cause was seen
            for less than half of it: a short moment changes nothing. The work of an OSD that lacks
            CPU goes up and down between a third and half of its best. So it keeps the rank of a
            collapsed OSD for up to three holds.
            """,
            expr=f"""
            (
              {_RANK}
            )
              and {_CHOICE_OF_BY}
              and on ({OSD_CLASS}, cause) (
                {_STILL_SEEN}
              )
            """,
        ),
        RecordedSeries(
            record=PerClass.MAIN_CAUSE,
            comment="The most urgent of the causes that last: the one that alerts name.",
            expr=with_value(f"topk by ({OSD_CLASS}) (1, {PerClass.LASTING_EVIDENCE})"),
        ),
        RecordedSeries(
            record=PerOsd.WAITED_FOR,
            comment="""
            How many OSDs wait for this one. Much recovery slows replica writes and takes the CPU.
            Then an OSD counts only if its device has failed, or if it lacks CPU and does not
            recover much itself.
            """,
            expr=f"""
            label_replace(
              count by (cluster, by) (
                (
                  {_WAITS_FOR_BY} unless on ({OSD_CLASS})
                    {PerClass.EVIDENCE}{{cause="{causes.OTHER_CLASS}"}}
                  or {_WAITS_FOR_BY} >= {SICK_RANK}
                )
                unless on (cluster, by) ({as_by(_RECOVERS.strip())})
                or {_WAITS_FOR_BY} and on (cluster, by) ({as_by(DEVICE_FAILING)})
              ),
              "ceph_daemon", "$1", "by", "(.+)"
            )
            """,
        ),
        RecordedSeries(
            record=PerClusterClass.MAIN_CAUSE,
            comment="The cause that leads on most OSDs.",
            expr=f"""
            topk by (cluster, class) (1,
              count by (cluster, class, cause, by) ({PerClass.MAIN_CAUSE})
            ) * 0 + 1
            """,
        ),
    ),
)
