"""Its limit holds it back."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked
from cephqos_base import causes
from cephqos_base.recorded import PerClass

LIMIT: Final = CauseEvidence(
    cause=causes.LIMIT,
    means="The scheduler's limit of the class holds it back.",
    seen="attained is 90 % of the limit, or dmClock's tags say that the head of the queue waits for"
    " it",
    expr=ranked(PerClass.AT_LIMIT, causes.LIMIT.rank),
)
