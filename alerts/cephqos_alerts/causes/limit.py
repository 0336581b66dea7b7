"""The scheduler's limit of the class holds it back: AT_LIMIT of recording/wanting.py."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, percent, ranked
from cephqos_base import causes
from cephqos_base.judge import BOUNDS
from cephqos_base.recorded import PerClass

LIMIT: Final = CauseEvidence(
    cause=causes.LIMIT,
    means="The scheduler's limit of the class holds it back.",
    seen=f"it attains {percent(BOUNDS.reached)} of the limit, or the head of its queue"
    " waits for it by its tags",
    expr=ranked(PerClass.AT_LIMIT, causes.LIMIT.rank),
)
