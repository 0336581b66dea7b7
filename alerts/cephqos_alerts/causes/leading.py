"""All causes, and which of them leads."""

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

# In the order in which they are recorded, the most urgent first.
EVERY: Final = (
    *(DEVICE, CPU, LIMIT, ONE_SHARD, OTHER_CLASS),
    *(OTHER_OSD, NETWORK, REPLICA_WRITES, CAPACITY, UNKNOWN),
)

# The parts of LASTING_EVIDENCE. In PromQL `and` binds before `or`. EVIDENCE has one sample per
# evaluation while its cause holds, so a count of samples is a time.
_HALF_A_HOLD: Final = "@half@ * @hold_evaluations@"
# How often in the last hold the cause was seen with this `by`; and with any `by`, if long enough.
_TIMES_SEEN: Final = f"count_over_time({PerClass.EVIDENCE}[@hold@])"
_SEEN_LONG: Final = f"sum by ({OSD_CLASS}, cause) ({_TIMES_SEEN}) >= {_HALF_A_HOLD}"
# What the evaluation before this one recorded.
_BEFORE: Final = previously(PerClass.LASTING_EVIDENCE)
_MEDIAN_RANK: Final = f"quantile_over_time(0.5, {PerClass.EVIDENCE}[@hold@])"
# The highest rank of the CPU in the last three holds, if it hurt for half a hold in all. Each
# sample is BUSY_RANK or, where it hurts, the cause's own rank. So of N samples of which H hurt,
# sum - BUSY_RANK * N = (own rank - BUSY_RANK) * H.
_CPU: Final = f'{PerClass.EVIDENCE}{{cause="{causes.CPU}"}}'
_RANK_SHORT_OF_CPU: Final = f"""
  max_over_time({_CPU}[@long_hold@]) and (
    sum_over_time({_CPU}[@long_hold@])
    - {BUSY_RANK} * count_over_time({_CPU}[@long_hold@])
    >= {causes.CPU.rank - BUSY_RANK} * {_HALF_A_HOLD}
  )
""".strip()
# The value: the rank of a lasting lack of CPU, else the median if seen long, else the one before.
_RANK: Final = f"""
              {_RANK_SHORT_OF_CPU} and {_BEFORE}
              or ({_MEDIAN_RANK} and on ({OSD_CLASS}, cause) ({_SEEN_LONG})) or {_BEFORE}
""".strip()
# One `by` per cause, the one seen most. The one before counts as seen for half a hold.
_CHOICE_OF_BY: Final = f"""
topk by ({OSD_CLASS}, cause) (1,
                {_TIMES_SEEN} > {_HALF_A_HOLD}
                or {with_value(_BEFORE, _HALF_A_HOLD)} or {_TIMES_SEEN}
              )
""".strip()
# A cause stays while it is seen at all, and comes when it was seen long.
_STILL_SEEN: Final = f"{_BEFORE} and on ({OSD_CLASS}, cause) {_TIMES_SEEN} or {_SEEN_LONG}"

_WAITS_FOR_BY: Final = (
    f'({PerClass.EVIDENCE}{{class="client", cause="{causes.OTHER_OSD}", by!=""}} > {PARTLY_RANK})'
)
# OSDs that delay others because they recover much.
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
        # Some engines go on to show a series after its last sample. There the new one wins by its
        # count.
        RecordedSeries(
            record=PerClass.LASTING_EVIDENCE,
            comment="""
            Causes that last. They label alerts, which must not flap. A cause stays until it was not
            seen for a whole hold. Otherwise the alert of a mended fault would end as a warning with
            an unknown cause. If a host or its network has failed, `by` changes all the time. The
            cause still lasts, and `by` stays until another one was seen for half of the hold and
            more often. The rank is the median of the hold, or the one before if the cause was seen
            for less than half of it: a short moment changes nothing. An OSD without CPU delivers
            now a third of its best, now half. So it keeps the rank of a collapsed OSD for up to
            three holds.
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
