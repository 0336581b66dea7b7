"""Replica writes fill the OSD: the class `immediate`, which mClock charges to no class."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked
from cephqos_alerts.recording.limited import OF_HOST
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import IMMEDIATE, OSD, OSD_CLASS

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
      > @immediate_share@ * {PerOsd.DELIVERED_OPS}
"""
_FULL: Final = f"{PerOsd.DELIVERED_OPS} > @full@ * {PerOsd.CAPACITY_OPS}"
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
    seen="the OSD delivers more than two thirds of its capacity, replica writes are more than 30 %"
    " of it, and without them the class would have got its effective reservation; its"
    " clients do not wait elsewhere, and no other programs take the host's CPUs",
    blind="never given under WPQ, which has no capacity; pushes of recovery are immediate too in"
    " the early model",
    expr=ranked(_SEEN, causes.REPLICA_WRITES.rank),
)
