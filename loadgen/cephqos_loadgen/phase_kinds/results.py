"""The result of every kind of phase, for whoever reads archives."""

from cephqos_loadgen.phase_kinds.change import ChangeResult
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.flags import FlagsResult
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchResult
from cephqos_loadgen.phase_kinds.osd_in import OsdInResult
from cephqos_loadgen.phase_kinds.osd_out import OsdOutResult
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.phase_kinds.prefill import PrefillResult
from cephqos_loadgen.phase_kinds.rados_bench import RadosBenchResult
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.phase_kinds.settle import SettleResult
from cephqos_loadgen.phase_kinds.wait import WaitResult
from cephqos_loadgen.results.phase import PhaseResult

_RESULTS: tuple[type[PhaseResult], ...] = (
    FioResult,
    RadosBenchResult,
    PrefillResult,
    ScrubResult,
    OsdOutResult,
    OsdInResult,
    FlagsResult,
    SettleResult,
    ChangeResult,
    OsdBenchResult,
    PinResult,
    WaitResult,
)
RESULTS: dict[str, type[PhaseResult]] = {result.kind: result for result in _RESULTS}
