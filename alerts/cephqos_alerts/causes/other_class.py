"""Another class takes more than its share."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked
from cephqos_base import causes
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED


def _takes_its_work(victim: str, culprit: str) -> str:
    """`culprit` has more than its reservation, most of all others, and enough to explain it."""
    others = "|".join(cls for cls in SCHEDULED if cls not in (victim, culprit))
    excess = f'{PerClass.EXCESS_OPS}{{class="{culprit}"}}'
    other = f'{PerClass.EXCESS_OPS}{{class="{others}"}}'
    lacks = f'{PerClass.UNMET_OPS}{{class="{victim}"}}'
    return f"""
label_replace(
  {lacks}
    and on ({OSD}) ({excess} >= on ({OSD}) ({other} or on ({OSD}) {excess} * 0))
    and on ({OSD}) ({excess} >= on ({OSD}) (@half@ * {lacks})),
  "by", "{culprit}", "", ""
)
"""


_TAKEN: Final = f"or on ({OSD_CLASS})".join(
    _takes_its_work(victim, culprit)
    for victim in SCHEDULED
    for culprit in SCHEDULED
    if victim != culprit
)

OTHER_CLASS: Final = CauseEvidence(
    cause=causes.OTHER_CLASS,
    by=True,
    means="Another class, `by`, takes more than its share of the OSD.",
    seen="`by` gets more than its reservation, by a tenth of all work, by more than a third"
    " class does, and by half of what this class is short of",
    blind="scrub and trimming before 20.x",
    expr=ranked(_TAKEN, causes.OTHER_CLASS.rank),
)
