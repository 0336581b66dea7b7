"""An OSD's clients wait for another OSD, mostly for a replica write there.

There are three kinds of evidence, the strongest first:

1. The time is spent on an OSD that delays others. `by` is the one that samples show, or the worst.
2. A part of the time is spent on other OSDs, while one delays others. `by` is the worst.
3. The time is spent on other OSDs, and it is not known on which. There is no `by`.

AWAY (recording/wanting.py): a class whose writes spend their time neither in the queue of this OSD
nor in its store.
"""

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

# Ranks, by what is seen. causes.OTHER_OSD.rank (65) is for an OSD that delays others for no reason
# that shows. Ranks of other causes are in cephqos_base/causes.py.
# The device of `by` has failed: that slows this OSD more than anything on itself.
_FAILED_RANK: Final = 72
# `by` lacks CPU, which much work can cause, too.
SICK_RANK: Final = 68
# Only a part of the time is spent on other OSDs, but more than if all are well.
PARTLY_RANK: Final = 61
# It is not known which OSD is waited for.
_UNNAMED_RANK: Final = 45

# OSDs that delay others; the highest value is the worst. It is how many times longer a replica
# write takes than on peers, twice that for the OSD that was named before: so `by` does not change
# between OSDs that are about as slow. An OSD that completes nothing has no such figure. So if no
# OSD of the cluster has one, a failing device counts, and last an OSD that only does not answer: it
# may be dead, and then no OSD waits for it.
_SLOWNESS: Final = f"""
2 * {PerOsd.REPLICA_SLOWNESS}
  and on ({OSD}) {DELAYS_REPLICA_WRITES}
  and on ({OSD}) {previously(PerOsd.WAITED_FOR)}
or on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} and on ({OSD}) {DELAYS_REPLICA_WRITES})
or on (cluster) {DEVICE_FAILING}
or on (cluster) {DELAYS_REPLICA_WRITES}
"""
# The worst OSD of each cluster, in the label `by`.
_BY_THE_WORST: Final = with_value(f"topk by (cluster) (1, {as_by(_SLOWNESS)})")

# For each OSD, the peer for which its clients' operations waited most, by samples of operations.
_MOST_WAITED_FOR: Final = f"""
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
# Recovery and scrub need other OSDs, too, but no figure shows how long they wait there: demand is
# enough. An OSD that delays others itself has its cause on itself.
_AWAY_BECAUSE_OF: Final = f"""
(
  {PerClass.AWAY} * on ({OSD}) group_left (by) (
    {with_value(_MOST_WAITED_FOR.strip())}
      and on (cluster, by) {as_by(DELAYS_OTHERS)}
  )
  or on ({OSD_CLASS})
  ({PerClass.AWAY} or {PerClass.HAS_DEMAND}{{class=~"background_.*"}})
  * on (cluster) group_left (by) ({_BY_THE_WORST})
)
unless on ({OSD}) {DELAYS_OTHERS}
"""
# Every OSD that delays others, in the label `by`, with the rank of the cause on those that wait.
_DELAYERS: Final = as_by(
    f"{ranked(f'{DELAYS_OTHERS} and on ({OSD}) {DEVICE_FAILING}', _FAILED_RANK)}"
    f" or {ranked(f'{DELAYS_OTHERS} and on ({OSD}) {CPU_SHORT}', SICK_RANK)}"
    f" or {with_value(DELAYS_OTHERS, causes.OTHER_OSD.rank)}"
)
# Clients of an OSD whose own store takes less than 0.4 of a write's time outside the queue (0.46 to
# 0.71 if all OSDs are well), while an OSD of the cluster delays others.
_PARTLY_AWAY: Final = f"""
(
  {PerClass.HAS_DEMAND}{{class="client"}}
    and on ({OSD}) ({PerOsd.OWN_STORE} < @far_less@)
    unless on ({OSD}) {PerClass.AWAY}
    unless on ({OSD}) {DELAYS_OTHERS}
)
* on (cluster) group_left (by) ({_BY_THE_WORST})
"""
# The last line has no `by`. It needs COUNTED: an erasure-coded write takes most of its time on
# other OSDs even if all of them are well, and such pools leave work uncounted.
_EXPR: Final = f"""
group by ({OSD_CLASS}, by) ({_AWAY_BECAUSE_OF}) * on (cluster, by) group_left () ({_DELAYERS})
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
    " with demand, while an OSD delays others. The warning comes after 15 minutes, if no alert"
    " says for whom others wait",
    blind="clients that read; two OSDs; above `--collector.ops.sample-at-most` operations"
    f" `{OpsSeries.SAMPLED_WAIT_SECONDS}` stands still, and `by` is the worst; with erasure-coded"
    " pools, unless the device of `by` fails or it hangs",
    other_ranks=f"{_FAILED_RANK} where the device of `by` failed, {SICK_RANK} where it lacks CPU,"
    f" {PARTLY_RANK} where it is {percent(THRESHOLDS.far_less)}, {_UNNAMED_RANK} without `by`",
    expr=_EXPR,
)
