"""All kinds of phases. To add one: a file in this folder, and a line here."""

from cephqos_loadgen.load.kind import PhaseKind
from cephqos_loadgen.phase_kinds.change import ChangeSettings
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.phase_kinds.flags import Flags
from cephqos_loadgen.phase_kinds.osd_bench import OsdBench
from cephqos_loadgen.phase_kinds.osd_out_in import OsdIn, OsdOut
from cephqos_loadgen.phase_kinds.pin import Pin
from cephqos_loadgen.phase_kinds.prefill import Prefill
from cephqos_loadgen.phase_kinds.rados_bench import RadosBench
from cephqos_loadgen.phase_kinds.scrub import Scrub
from cephqos_loadgen.phase_kinds.settle import Settle
from cephqos_loadgen.phase_kinds.wait import Wait
from cephqos_loadgen.results.phase import PhaseResult


def _by_name(*kinds: type[PhaseKind]) -> dict[str, type[PhaseKind]]:
    """A kind that lacks a part is a type error here."""
    return {str(kind.__dict__["result"].kind): kind for kind in kinds}


KINDS = _by_name(
    Fio,
    RadosBench,
    Prefill,
    Scrub,
    OsdOut,
    OsdIn,
    Flags,
    Settle,
    ChangeSettings,
    OsdBench,
    Wait,
    Pin,
)
RESULTS: dict[str, type[PhaseResult]] = {
    name: kind.__dict__["result"] for name, kind in KINDS.items()
}
