"""Its clients' writes wait for another OSD."""

from typing import Final

from cephqos_alerts.causes.cause import (
    COUNTED,
    CauseEvidence,
    as_by,
    percent,
    ranked,
    share,
    with_value,
)
from cephqos_alerts.recording.conditions import (
    CPU_SHORT,
    DELAYS_OTHERS,
    DELAYS_REPLICA_WRITES,
    DEVICE_FAILING,
)
from cephqos_alerts.rules.rule import previously
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, OpsSeries
from cephqos_base.thresholds import THRESHOLDS

# A failed device of another OSD slows this OSD more than anything on itself. It ranks above a lack
# of CPU on another OSD, which much work can cause.
_FAILED_RANK: Final = 72
SICK_RANK: Final = 68
# More time spent on other OSDs than if all are well, while an OSD delays others.
PARTLY_RANK: Final = 61
# Time spent on another OSD that is not known.
_UNNAMED_RANK: Final = 45

# An OSD that completes nothing has no ratio. One that does not answer comes last: it may be dead,
# and then no OSD waits for it. If several are about as slow, the one named before stays.
_WORST: Final = f"""
2 * {PerOsd.REPLICA_SLOWNESS}
  and on ({OSD}) {DELAYS_REPLICA_WRITES}
  and on ({OSD}) {previously(PerOsd.WAITED_FOR)}
or on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} and on ({OSD}) {DELAYS_REPLICA_WRITES})
or on (cluster) {DEVICE_FAILING}
or on (cluster) {DELAYS_REPLICA_WRITES}
"""
_BY_THE_WORST: Final = with_value(f"topk by (cluster) (1, {as_by(_WORST)})")

# The other OSD for which operations of an OSD's clients waited most, by sampling.
_WAITED_FOR: Final = f"""
    topk by ({OSD}) (1,
      label_replace(
        max by ({OSD}, peer) (
          rate({OpsSeries.SAMPLED_WAIT_SECONDS}{{
            kind="client", event="subops", peer=~"osd.+"}}[@hold@])
        ) > 0,
        "by", "$1", "peer", "(.+)"
      )
    )
"""
# Classes that wait for another OSD. `by` is the OSD that they were seen to wait for, or the worst.
# Recovery and scrub need other OSDs, too, but no figure shows how long they wait there.
_AWAY_BECAUSE_OF: Final = f"""
(
  {PerClass.AWAY} * on ({OSD}) group_left (by) (
    {with_value(_WAITED_FOR.strip())}
      and on (cluster, by) {as_by(DELAYS_OTHERS)}
  )
  or on ({OSD_CLASS})
  ({PerClass.AWAY} or {PerClass.HAS_DEMAND}{{class=~"background_.*"}})
  * on (cluster) group_left (by) ({_BY_THE_WORST})
)
unless on ({OSD}) {DELAYS_OTHERS}
"""
# Every OSD that delays others, with the rank of the cause on the OSDs that wait for it.
_HOLDERS_RANKED: Final = as_by(
    f"{ranked(f'{DELAYS_OTHERS} and on ({OSD}) {DEVICE_FAILING}', _FAILED_RANK)}"
    f" or {ranked(f'{DELAYS_OTHERS} and on ({OSD}) {CPU_SHORT}', SICK_RANK)}"
    f" or {with_value(DELAYS_OTHERS, causes.OTHER_OSD.rank)}"
)
_PARTLY_AWAY: Final = f"""
(
  {PerClass.HAS_DEMAND}{{class="client"}}
    and on ({OSD}) ({PerOsd.OWN_STORE} < @far_less@)
    unless on ({OSD}) {PerClass.AWAY}
    unless on ({OSD}) {DELAYS_OTHERS}
)
* on (cluster) group_left (by) ({_BY_THE_WORST})
"""
# An erasure-coded write takes most of its time on other OSDs even if all of them are well. So the
# last one, without `by`, needs all work to be counted.
_EXPR: Final = f"""
group by ({OSD_CLASS}, by) ({_AWAY_BECAUSE_OF}) * on (cluster, by) group_left () ({_HOLDERS_RANKED})
or on ({OSD_CLASS}) {ranked(_PARTLY_AWAY, PARTLY_RANK)}
or on ({OSD_CLASS}) {ranked(f"{PerClass.AWAY} {COUNTED}", _UNNAMED_RANK)}
"""

OTHER_OSD: Final = CauseEvidence(
    cause=causes.OTHER_OSD,
    by=True,
    means="Writes wait for another OSD, `by`, that is slow; the finding belongs there.",
    seen=f"client writes spend less than {percent(1 - THRESHOLDS.part)} of their time in the queue,"
    f" and less than {share(THRESHOLDS.part)} of the rest in the own store"
    f" ({percent(THRESHOLDS.far_less)} while an OSD delays others). `by` is the OSD that sampled"
    " operations waited for, if it delays others; else the worst that does. Also background classes"
    " with demand, while an OSD delays others. The warning comes after 15 minutes, if the alert of"
    " `by` did not",
    blind="clients that read; two OSDs; with erasure-coded pools, unless the device of `by`"
    " fails or it hangs",
    other_ranks=f"{_FAILED_RANK} where the device of `by` failed, {SICK_RANK} where it lacks CPU,"
    f" {PARTLY_RANK} where it is {percent(THRESHOLDS.far_less)}, {_UNNAMED_RANK} without `by`",
    expr=_EXPR,
)
