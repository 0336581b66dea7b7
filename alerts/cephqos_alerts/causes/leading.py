"""All causes, and which of them leads."""

from typing import Final

from cephqos_alerts.causes.capacity import CAPACITY
from cephqos_alerts.causes.cause import as_by
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

_CPU_SEEN: Final = f'{PerClass.EVIDENCE}{{cause="{causes.CPU}"}}'
_SEEN: Final = f"count_over_time({PerClass.EVIDENCE}[@hold@])"
_LASTED: Final = previously(PerClass.LASTING_EVIDENCE)
_SEEN_LONG: Final = f"sum by ({OSD_CLASS}, cause) ({_SEEN}) >= @half@ * @hold_evaluations@"
_RANKED: Final = f"quantile_over_time(0.5, {PerClass.EVIDENCE}[@hold@])"
# In the last three holds, too little CPU hurt for half a hold in all.
_SHORT_OF_CPU: Final = f"""
  max_over_time({_CPU_SEEN}[@long_hold@]) and (
    sum_over_time({_CPU_SEEN}[@long_hold@])
    - {BUSY_RANK} * count_over_time({_CPU_SEEN}[@long_hold@])
    >= {causes.CPU.rank - BUSY_RANK} * @half@ * @hold_evaluations@
  )
"""

_NAMED: Final = (
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
            expr=f"topk by ({OSD_CLASS}) (1, {PerClass.EVIDENCE}) * 0 + 1",
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
              {_SHORT_OF_CPU.strip()} and {_LASTED}
              or ({_RANKED} and on ({OSD_CLASS}, cause) ({_SEEN_LONG})) or {_LASTED}
            )
              and topk by ({OSD_CLASS}, cause) (1,
                {_SEEN} > @half@ * @hold_evaluations@
                or {_LASTED} * 0 + @half@ * @hold_evaluations@ or {_SEEN}
              )
              and on ({OSD_CLASS}, cause) (
                {_LASTED} and on ({OSD_CLASS}, cause) {_SEEN} or {_SEEN_LONG}
              )
            """,
        ),
        RecordedSeries(
            record=PerClass.MAIN_CAUSE,
            comment="The most urgent of the causes that last: the one that alerts name.",
            expr=f"topk by ({OSD_CLASS}) (1, {PerClass.LASTING_EVIDENCE}) * 0 + 1",
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
                  {_NAMED} unless on ({OSD_CLASS})
                    {PerClass.EVIDENCE}{{cause="{causes.OTHER_CLASS}"}}
                  or {_NAMED} >= {SICK_RANK}
                )
                unless on (cluster, by) ({as_by(_RECOVERS.strip())})
                or {_NAMED} and on (cluster, by) ({as_by(DEVICE_FAILING)})
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
