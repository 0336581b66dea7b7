"""Faults of the host: its CPUs, and limits as containers have them."""

import os
import sys
from asyncio.subprocess import Process
from pathlib import Path
from typing import Final

from cephqos_exporter.procfs import parse_cgroup
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import ENDS_WITH_PARENT, run, signal_group, start
from cephqos_stack.staged.situation import StagedAction
from cephqos_stack.staged.stage import Stage, wait_until_clean

_WITHIN: Final = 60.0


async def busy_cpu(stage: Stage, do: StagedAction) -> None:
    """All threads of the OSD on one CPU, where others compute as well."""
    pid = (await stage.on.lab.pids())[f"osd.{stage.osd(do)}"]
    cpu = max(os.sched_getaffinity(0))
    everywhere = os.sched_getaffinity(pid)
    await _strangers(stage, int(do.options.get("processes", 4)), {cpu})

    async def end() -> None:
        _pin(pid, everywhere)

    stage.undo.append(end)
    _pin(pid, {cpu})


async def busy_host(stage: Stage, do: StagedAction) -> None:
    """Others compute on all CPUs of the host: enough to take most of them from the OSDs."""
    cpus = os.sched_getaffinity(0)
    await _strangers(stage, max(4 * min(len(cpus), 16), 2 * len(cpus)), cpus)


async def _strangers(stage: Stage, processes: int, cpus: set[int]) -> None:
    # In a session of its own each: the kernel's autogroups give two sessions half each, however
    # many processes are in them. They end with their parent.
    spin = f"import os\nos.sched_setaffinity(0, {cpus})\nwhile 1: 0"
    others: list[Process] = []

    async def kill_all() -> None:
        for other in others:
            signal_group(other)
            await other.wait()

    stage.undo.append(kill_all)
    for _ in range(processes):
        others.append(await start([*ENDS_WITH_PARENT, sys.executable, "-I", "-c", spin]))


_CGROUPS: Final = Path("/sys/fs/cgroup")


def _home(pid: int, controller: str) -> Path:
    """The cgroup of a process in one hierarchy of version 1, or in version 2 beside it."""
    text = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")
    paths = parse_cgroup(text)
    name = next(it for it in paths if controller in (it or "unified").split(","))
    return _CGROUPS / controller / paths[name].lstrip("/")


def _made(stage: Stage, osd: int, controller: str, file: str) -> Path:
    """A new cgroup for an OSD, in a hierarchy that has this file."""
    if not (_CGROUPS / controller / file).exists():
        raise LabError(f"no controller {controller} of cgroup version 1 is mounted here")
    group = _CGROUPS / controller / f"cephqos-{stage.on.lab.paths.name}-osd.{osd}"
    group.mkdir()
    return group


def _move(pid: int, group: Path) -> None:
    (group / "cgroup.procs").write_text(str(pid))


async def cpu_limit(stage: Stage, do: StagedAction) -> None:
    """A CPU limit for the OSD, as its container would have it."""
    osd, lab = stage.osd(do), stage.on.lab
    stage.undo.append(lambda: lab.faults.limit_cpu(osd, None))
    await lab.faults.limit_cpu(osd, float(do.options["cpus"]))


async def memory_limit(stage: Stage, do: StagedAction) -> None:
    """A memory limit for the OSD, as its container would have it; cgroup version 1.

    Memory belongs to the cgroup in which it was first used, so the OSD is started there. What it
    may not keep goes to a swap file: without one it would be killed. Version 2, mounted beside,
    counts the pressure.
    """
    osd, init, swap = stage.osd(do), stage.on.lab.state.init_pid, stage.on.lab.paths.work / "swap"
    groups = {
        "memory": "memory.limit_in_bytes",
        "unified": "cgroup.procs",
        "blkio": "blkio.throttle.read_iops_device",
    }
    homes = {name: _home(init, name) for name in groups}

    async def end() -> None:
        await stage.on.lab.faults.restart(osd)
        for name in ("memory", "unified"):  # the lab removes its group of blkio
            (_CGROUPS / name / f"cephqos-{stage.on.lab.paths.name}-osd.{osd}").rmdir()
        await _run("swapoff", str(swap))

    await _run("fallocate", "-l", "1G", str(swap))
    swap.chmod(0o600)
    await _run("mkswap", str(swap))
    await _run("swapon", str(swap))
    stage.undo.append(end)
    made = {name: _made(stage, osd, name, file) for name, file in groups.items()}
    limit = int(do.options["mib"]) << 20
    (made["memory"] / "memory.limit_in_bytes").write_text(str(limit))
    # A disk would be as slow. Swap files are read from the device that they are on.
    device = swap.stat().st_dev
    reads = f"{os.major(device)}:{os.minor(device)} {do.options['reads']}"
    (made["blkio"] / groups["blkio"]).write_text(reads)
    try:
        for group in made.values():
            _move(init, group)
        await stage.on.lab.faults.restart(osd)
    finally:
        for home in homes.values():
            _move(init, home)
    await wait_until_clean(stage.on)


async def _run(*argv: str) -> None:
    done = await run(argv, within=_WITHIN)
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip()}")


def _pin(pid: int, cpus: set[int]) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - threads end while we look
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:
            continue
