"""Another class takes more than its share."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, share
from cephqos_base import causes
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED
from cephqos_base.thresholds import THRESHOLDS


def _taken_from(victim: str) -> str:
    """To blame is the class with the most above its reservation, if that explains enough."""
    lacks = f'{PerClass.UNMET_OPS}{{class="{victim}"}}'
    return f"""
{lacks} * on ({OSD}) group_left (by) label_replace(
  topk by ({OSD}) (1, {PerClass.EXCESS_OPS}{{class!="{victim}"}})
    >= on ({OSD}) group_left () (@half@ * {lacks}),
  "by", "$1", "class", "(.+)"
)
"""


_TAKEN: Final = f"or on ({OSD_CLASS})".join(map(_taken_from, SCHEDULED))

OTHER_CLASS: Final = CauseEvidence(
    cause=causes.OTHER_CLASS,
    by=True,
    means="Another class, `by`, takes more than its share of the OSD.",
    seen=f"`by` gets more than its reservation, by {share(THRESHOLDS.little)} of all work, by more"
    f" than a third class does, and by {share(THRESHOLDS.half)} of what this class is short of",
    blind="scrub and trimming before 20.x",
    expr=ranked(_TAKEN, causes.OTHER_CLASS.rank),
)
