"""The class has demand, and no other cause is seen. The lowest rank: any other cause leads."""

from typing import Final

from cephqos_alerts.causes.cause import COUNTED, CauseEvidence, ranked
from cephqos_base import causes
from cephqos_base.recorded import PerClass

UNKNOWN: Final = CauseEvidence(
    cause=causes.UNKNOWN,
    means="The class has unmet demand, and none of the evidence says why.",
    seen="none of these",
    expr=ranked(f"{PerClass.HAS_DEMAND} {COUNTED}", causes.UNKNOWN.rank),
)
