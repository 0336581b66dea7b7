"""Replica writes fill the OSD: the class `immediate`, which mClock charges to no class."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, share
from cephqos_alerts.recording.limited import OF_HOST
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import IMMEDIATE, OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS

# What a class with demand lacks of its effective reservation; 0 if it has all of it.
_SHORTFALL: Final = f"""
        {PerClass.SHORTFALL_OPS} and on ({OSD_CLASS}) {PerClass.HAS_DEMAND}
        or {PerClass.HAS_DEMAND} * 0
"""
# The class would have its effective reservation if replica writes took nothing.
_REPLICA_WRITES_EXPLAIN_IT: Final = f"""
      (
        {_SHORTFALL.strip()}
      )
      <= on ({OSD}) group_left () sum by ({OSD})
        ({PerClass.ATTAINED_OPS}{{class="{IMMEDIATE}"}})
"""
# Replica writes are a quarter of all that the OSD does.
_MANY_REPLICA_WRITES: Final = f"""
      sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="{IMMEDIATE}"}})
      > @part@ * {PerOsd.DELIVERED_OPS}
"""
# The OSD delivers two thirds of its capacity or more.
OSD_IS_FULL: Final = f"@more@ * {PerOsd.DELIVERED_OPS} > {PerOsd.CAPACITY_OPS}"
# Other programs or virtual machines take the host's CPU: that is the cause.
_HOST_TAKES_CPU: Final = f'max_over_time({PerOsd.CPU_DENIED}{{by=~"{OF_HOST}"}}[@sustained@])'
# A class that waits for another OSD (AWAY) is left out: it would still wait without replica writes.
_EVIDENCE: Final = f"""
label_replace(
  {PerClass.HAS_DEMAND}
    and on ({OSD_CLASS}) (
      {_REPLICA_WRITES_EXPLAIN_IT.strip()}
    )
    and on ({OSD}) (
      {_MANY_REPLICA_WRITES.strip()}
    )
    and on ({OSD}) ({OSD_IS_FULL})
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
    expr=ranked(_EVIDENCE, causes.REPLICA_WRITES.rank),
)
