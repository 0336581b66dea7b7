"""Why operations of OSDs are blocked, in the text of OperationsBlocked."""

from typing import Final

from cephqos_alerts.rules.template import ITSELF, query, show, when
from cephqos_alerts.rules.text import host_of
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OpsSeries

_BLOCKED: Final = f'{PerOsd.FINDING}{{cluster=%[1]q,finding="OperationsBlocked"}}'
# The cause that most of these OSDs have.
_CAUSE: Final = query(
    f"topk(1, count by (cause, by) ({PerClass.MAIN_CAUSE}"
    f'{{cluster=%[1]q,class="client",cause!="unknown"}} and on ({OSD}) {_BLOCKED}))',
    "$labels.cluster",
)
# The OSD for which their writes wait most. One that waits alone has no cause: it has no demand.
_WAITED_FOR: Final = query(
    f"topk(1, sum by (peer) (rate({OpsSeries.SAMPLED_WAIT_SECONDS}"
    f'{{cluster=%[1]q,kind="client",event="subops",peer=~"osd.+"}}[@hold@])'
    f" and on ({OSD}) {_BLOCKED}) > @half@)",
    "$labels.cluster",
)
_PEER: Final = "(. | first).Labels.peer"
_BY: Final = when(".by", f" by {ITSELF}{host_of('.')}")

LIKELY: Final = when(
    _CAUSE,
    when("(. | first).Labels", f" Likely cause: {show('.cause')}{_BY}."),
    when(
        _WAITED_FOR,
        f" Likely cause: {show(_PEER)}{host_of(_PEER)}, for which their writes wait. Begin there.",
        " Likely cause: none that shows in the OSDs; the first command says in which step they"
        " wait.",
    ),
)
