"""Faults of the host: other programs that take its CPUs, and a CPU limit as of a container."""

import os
import sys
from asyncio.subprocess import Process

from cephqos_loadgen.processes import ENDS_WITH_PARENT, signal_group, start
from cephqos_stack.staged.situation import StagedAction
from cephqos_stack.staged.stage import Stage


async def busy_host(stage: Stage, action: StagedAction) -> None:
    """Programs compute on all CPUs of the host, so many that they take most from the OSDs."""
    cpus = os.sched_getaffinity(0)
    await strangers(stage, max(4 * min(len(cpus), 16), 2 * len(cpus)), cpus)


async def strangers(stage: Stage, processes: int, cpus: set[int]) -> None:
    """Start programs that do nothing but compute. They end with this process."""
    # Each in a session of its own: the kernel's autogroups give each session the same share,
    # however many processes are in it.
    spin = f"import os\nos.sched_setaffinity(0, {cpus})\nwhile 1: 0"
    others: list[Process] = []

    async def kill_all() -> None:
        for other in others:
            signal_group(other)
            await other.wait()

    stage.undo.append(kill_all)
    for _ in range(processes):
        others.append(await start([*ENDS_WITH_PARENT, sys.executable, "-I", "-c", spin]))


async def cpu_limit(stage: Stage, action: StagedAction) -> None:
    """A CPU limit for the OSD, as its container would have it."""
    osd, lab = stage.osd(action), stage.on.lab
    stage.undo.append(lambda: lab.faults.limit_cpu(osd, None))
    await lab.faults.limit_cpu(osd, float(action.options["cpus"]))
