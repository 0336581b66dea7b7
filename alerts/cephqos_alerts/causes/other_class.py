"""Another class takes more than its share."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, share
from cephqos_base import causes
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED
from cephqos_base.thresholds import THRESHOLDS


def _taken_from(victim: str) -> str:
    """To blame is the other class with the largest excess, if that is half of what is missing.

    EXCESS_OPS (recording/reservations.py): work above the reservation; none below a tenth of all
    work. UNMET_OPS (recording/wanting.py): what a class with demand lacks of its reservation.
    """
    unmet = f'{PerClass.UNMET_OPS}{{class="{victim}"}}'
    largest_excess = f'topk by ({OSD}) (1, {PerClass.EXCESS_OPS}{{class!="{victim}"}})'
    return f"""
{unmet} * on ({OSD}) group_left (by) label_replace(
  {largest_excess}
    >= on ({OSD}) group_left () (@half@ * {unmet}),
  "by", "$1", "class", "(.+)"
)
"""


_TAKEN: Final = f"or on ({OSD_CLASS})".join(_taken_from(victim) for victim in SCHEDULED)

OTHER_CLASS: Final = CauseEvidence(
    cause=causes.OTHER_CLASS,
    by=True,
    means="Another class, `by`, takes more than its share of the OSD.",
    seen=f"`by` gets more than its reservation, by {share(THRESHOLDS.little)} of all work, by more"
    f" than a third class does, and by {share(THRESHOLDS.half)} of what this class is short of",
    blind="scrub and trimming before 20.x",
    expr=ranked(_TAKEN, causes.OTHER_CLASS.rank),
)
