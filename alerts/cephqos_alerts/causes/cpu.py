"""The OSD's threads have no CPU left, or may not use one.

Strongest evidence first: a limit or another program takes the CPU (CPU_DENIED, which names it in
`by`); threads lack CPU and this hurts; threads lack CPU, but the OSD does its usual work.
"""

from typing import Final

from cephqos_alerts.causes.cause import (
    COUNTED,
    CauseEvidence,
    percent,
    ranked,
    share,
    times,
    wanting,
)
from cephqos_alerts.causes.other_osd import SICK_RANK
from cephqos_alerts.recording.conditions import COLLAPSED, CPU_SHORT, SLOW_FOR_RECOVERY
from cephqos_alerts.rules.rule import previously
from cephqos_base import causes
from cephqos_base.judge import BOUNDS
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS

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
# The OSD's own CPU is not the cause if its time is spent on another OSD whose device or CPU has
# failed (the last lines). A busy CPU explains too little work only if all work is COUNTED.
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
    seen=f"`cpu_limit`, used up in {share(THRESHOLDS.part)} of its periods; `memory_limit`, threads"
    f" wait for memory {share(THRESHOLDS.part)} of the time; `other_programs` use"
    f" {share(THRESHOLDS.half)} of a full host, and threads wait {times(THRESHOLDS.slower)} times"
    f" as long as they run; `other_vms` use {share(THRESHOLDS.part)}, and threads wait. Or a thread"
    f" is at {percent(BOUNDS.reached)} of a CPU, or {times(THRESHOLDS.twice)} wait for one, while"
    f" the OSD does less than {percent(THRESHOLDS.far_less)} of its best day or others wait for it",
    other_ranks=f"{BUSY_RANK} where the OSD does its usual work and none waits for it",
    expr=_EXPR,
)
