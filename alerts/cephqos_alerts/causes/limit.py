"""Its limit holds it back."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked
from cephqos_base import causes
from cephqos_base.recorded import PerClass

LIMIT: Final = CauseEvidence(
    cause=causes.LIMIT,
    means="The scheduler's limit of the class holds it back.",
    seen="it attains 90 % of the limit, or the head of its queue waits for it by its tags",
    expr=ranked(PerClass.AT_LIMIT, causes.LIMIT.rank),
)
