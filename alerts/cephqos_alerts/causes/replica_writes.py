"""Replica writes fill the OSD: the class `immediate`, which mClock charges to no class."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, share
from cephqos_alerts.recording.limited import OF_HOST
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import IMMEDIATE, OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS

# A class with demand and no shortfall lacks nothing of its reservation.
_LACKS: Final = f"""
        {PerClass.SHORTFALL_OPS} and on ({OSD_CLASS}) {PerClass.HAS_DEMAND}
        or {PerClass.HAS_DEMAND} * 0
"""
# Without replica writes the class would have had its effective reservation.
_REPLICA_WRITES_EXPLAIN_IT: Final = f"""
      (
        {_LACKS.strip()}
      )
      <= on ({OSD}) group_left () sum by ({OSD})
        ({PerClass.ATTAINED_OPS}{{class="{IMMEDIATE}"}})
"""
_MANY: Final = f"""
      sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="{IMMEDIATE}"}})
      > @part@ * {PerOsd.DELIVERED_OPS}
"""
_FULL: Final = f"@more@ * {PerOsd.DELIVERED_OPS} > {PerOsd.CAPACITY_OPS}"
_HOST_TAKES_CPU: Final = f'max_over_time({PerOsd.CPU_DENIED}{{by=~"{OF_HOST}"}}[@sustained@])'
# A class that waits for another OSD is left out: it would still wait.
_SEEN: Final = f"""
label_replace(
  {PerClass.HAS_DEMAND}
    and on ({OSD_CLASS}) (
      {_REPLICA_WRITES_EXPLAIN_IT.strip()}
    )
    and on ({OSD}) (
      {_MANY.strip()}
    )
    and on ({OSD}) ({_FULL})
    unless on ({OSD_CLASS}) {PerClass.AWAY}
    unless on ({OSD}) {_HOST_TAKES_CPU},
  "by", "{IMMEDIATE}", "", ""
)
"""

REPLICA_WRITES: Final = CauseEvidence(
    cause=causes.REPLICA_WRITES,
    means="Replica writes fill the OSD. The scheduler lets them go first.",
    seen=f"the OSD delivers {share(1 / THRESHOLDS.more)} of its capacity, replica writes are"
    f" {share(THRESHOLDS.part)} of that and all that the class is short of, and neither another"
    " OSD nor a full host explains it",
    blind="WPQ, which has no capacity",
    expr=ranked(_SEEN, causes.REPLICA_WRITES.rank),
)
