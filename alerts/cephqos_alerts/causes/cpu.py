"""Its threads have no CPU left."""

from typing import Final

from cephqos_alerts.causes.cause import COUNTED, CauseEvidence, ranked, wanting
from cephqos_alerts.causes.other_osd import SICK_RANK
from cephqos_alerts.recording.conditions import COLLAPSED, CPU_SHORT, SLOW_FOR_RECOVERY
from cephqos_alerts.rules.rule import previously
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS

# Threads are short of CPU, but the OSD still does its usual work.
BUSY_RANK: Final = 35

# Too little CPU hurts if the OSD does far less than before. It also hurts if other OSDs wait for
# this one, unless recovery explains that.
_HURTS: Final = f"""
{CPU_SHORT} and on ({OSD}) (
  {COLLAPSED}
  or on ({OSD}) ({previously(PerOsd.WAITED_FOR)} unless on ({OSD}) {SLOW_FOR_RECOVERY})
)
"""
# A busy CPU explains too little work only if all work is counted. If the time is spent on another
# OSD whose device or CPU has failed, the OSD's own CPU is not the cause.
_CPU_DENIED: Final = f"{PerClass.HAS_DEMAND} * on ({OSD}) group_left (by) {PerOsd.CPU_DENIED}"
_EXPR: Final = f"""
(
  {ranked(_CPU_DENIED, causes.CPU.rank)}
  or on ({OSD_CLASS}) {ranked(wanting(_HURTS), causes.CPU.rank)}
  or on ({OSD_CLASS}) {ranked(f"{wanting(CPU_SHORT)} {COUNTED}", BUSY_RANK)}
)
unless on ({OSD_CLASS}) (
  {previously(PerClass.EVIDENCE)}{{cause="{causes.OTHER_OSD}", by!=""}} >= {SICK_RANK}
)
"""

CPU: Final = CauseEvidence(
    cause=causes.CPU,
    means="The OSD's threads have no CPU left, or wait for one, or are stopped by a limit.",
    by=True,
    seen="one of these, as `by`: `cpu_limit`, used up in 20 % of its periods; `memory_limit`, a"
    " thread waits for memory in 20 % of the time (PSI); `other_programs`, no CPU is idle, they use"
    " half of them, more than one of the OSD's threads waits at a time, and they wait three times"
    " as long as they run; `other_vms`, no CPU is idle, they take 20 % of them, and more than one"
    " thread waits. Or a thread at 95 % of a CPU (a Crimson reactor's own figure counts),"
    " or two threads ready to run and waiting for one. Without `by`, it leads only if the OSD also"
    " does less than 40 % of its best day, or clients of other OSDs wait for it; otherwise it ranks"
    f" below {causes.CAPACITY}",
    other_ranks=f"{BUSY_RANK} where the OSD does its usual work and no OSD waits for it",
    expr=_EXPR,
)
