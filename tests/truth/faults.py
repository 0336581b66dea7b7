"""Loads and faults that only `make truth` stages, beside those of the demo."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from cephqos_exporter.procfs import parse_cgroup
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.isolation import cgroups
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.processes import run
from cephqos_stack.staged import faults
from cephqos_stack.staged.host import strangers
from cephqos_stack.staged.situation import StagedAction
from cephqos_stack.staged.stage import FRESH, Stage, wait_until_clean

from . import link

_WITHIN: Final = 60.0


async def _read(stage: Stage, do: StagedAction, seconds: float) -> None:
    """Random reads of what `prefill` wrote."""
    await stage.bench(seconds, "rand", "-t", str(do.options.get("depth", 32)), name="prefill")


async def _bursts(stage: Stage, do: StagedAction, seconds: float) -> None:
    """A second of load in every five."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        await stage.bench(1, "write", "-b", "4096", "-t", str(do.options.get("depth", 64)))
        await asyncio.sleep(4)


async def _config(stage: Stage, do: StagedAction) -> None:
    """Options of all OSDs, or of one."""
    who = f"osd.{stage.osd(do)}" if "osd" in do.options else "osd"
    for option, value in do.options.items():
        if option != "osd":
            await stage.on.config(option, value, who)
            stage.undo.append(_unset(stage, option, who))


def _unset(stage: Stage, option: str, who: str) -> Callable[[], Awaitable[None]]:
    return lambda: stage.on.unset(option, who)


async def _slow_link(stage: Stage, do: StagedAction) -> None:
    """What other OSDs send to this one passes a slow link."""
    stage.undo.append(link.restore)
    await link.slow_down(stage.on.lab, stage.osd(do), int(do.options["kbit"]))


async def _own_link(stage: Stage, do: StagedAction) -> None:
    """What the OSD exchanges with other OSDs passes a link of its own."""
    stage.undo.append(lambda: link.give_back(stage.on.lab))
    await link.give(stage.on.lab, stage.osd(do))
    await stage.on.lab.faults.restart(stage.osd(do))
    await wait_until_clean(stage.on)


async def _flaps(stage: Stage, do: StagedAction) -> None:
    """The link that `own-link` made goes down for a second in every four."""
    stage.run(link.flap())


async def _affinity(stage: Stage, do: StagedAction) -> None:
    """The OSD holds replicas only."""
    name = f"osd.{stage.osd(do)}"

    async def to(value: str) -> None:
        await stage.on.lab.exec(["ceph", "osd", "primary-affinity", name, value])

    stage.undo.append(lambda: to("1"))
    await to("0")
    await asyncio.sleep(4)


async def _trim(stage: Stage, do: StagedAction) -> None:
    """A snapshot of the pool, work on top of it, and its removal."""
    pool = ["ceph", "osd", "pool"]
    name = f"s{next(FRESH)}"
    await stage.on.lab.exec([*pool, "mksnap", stage.pool, name])
    await stage.bench(6, "write", "-b", "4096", "-t", "64", name="prefill")
    await stage.on.lab.exec([*pool, "rmsnap", stage.pool, name])


async def _delete(stage: Stage, do: StagedAction) -> None:
    argv = ["rados", "-p", stage.pool, "cleanup", "--run-name", "prefill"]
    await stage.client(argv, 60)


async def _kill(stage: Stage, do: StagedAction) -> None:
    osd = stage.osd(do)
    stage.undo.append(lambda: stage.on.lab.faults.restart(osd))
    await stage.on.lab.faults.kill(osd)


async def _pauses(stage: Stage, do: StagedAction) -> None:
    """The OSD is stopped for half of the time, two seconds each."""
    osd, on = stage.osd(do), stage.on.lab.faults

    async def again_and_again() -> None:
        try:
            while True:
                await on.stop(osd)
                await asyncio.sleep(2)
                await on.resume(osd)
                await asyncio.sleep(2)
        finally:
            await on.resume(osd)

    stage.run(again_and_again())


async def _restart_all(stage: Stage, do: StagedAction) -> None:
    """One OSD after the other, as an upgrade does it."""
    await stage.on.lab.exec(["ceph", "osd", "set", "noout"])
    stage.undo.append(lambda: stage.on.lab.exec(["ceph", "osd", "unset", "noout"]))
    for osd in range(stage.situation.cluster.osds):
        await stage.on.lab.faults.restart(osd)
        await wait_until_clean(stage.on)


async def _busy_cpu(stage: Stage, do: StagedAction) -> None:
    """All threads of the OSD on one CPU, where others compute as well."""
    pid = (await stage.on.lab.pids())[f"osd.{stage.osd(do)}"]
    cpu = max(os.sched_getaffinity(0))
    everywhere = os.sched_getaffinity(pid)
    await strangers(stage, int(do.options.get("processes", 4)), {cpu})

    async def end() -> None:
        _pin(pid, everywhere)

    stage.undo.append(end)
    _pin(pid, {cpu})


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


async def _memory_limit(stage: Stage, do: StagedAction) -> None:
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
        for name in groups:
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


async def _memory_room(stage: Stage, do: StagedAction) -> None:
    """The OSD may use `mib` more memory than now; cgroup version 1. Beyond, the kernel kills it.

    File cache does not count: it is given up first. Without `mib` the OSD is restarted in a group
    without a limit.
    """
    osd, lab = stage.osd(do), stage.on.lab
    group = _memory_group(lab.paths, osd)
    limit = group / "memory.limit_in_bytes"
    if "mib" in do.options:
        used = int((group / "memory.usage_in_bytes").read_text())
        stat = (group / "memory.stat").read_text().splitlines()
        cache = next(int(it.split()[1]) for it in stat if it.startswith("total_cache "))
        limit.write_text(str(used - cache + (int(do.options["mib"]) << 20)))
        return

    async def end() -> None:
        limit.write_text("-1")
        await lab.faults.restart(osd)

    stage.undo.append(end)
    (group / "memory.swappiness").write_text("0")  # the host may have swap
    await lab.faults.restart(osd)
    await wait_until_clean(stage.on)


def _memory_group(lab: LabPaths, osd: int) -> Path:
    """A group of version 1 for an OSD's memory, without a limit; it is removed with the lab.

    Memory belongs to the group in which it was first used: restart the OSD, and the lab takes it
    in at once.
    """
    base = cgroups._V1_MEMORY
    if not (base / "memory.limit_in_bytes").exists():
        raise LabError("no controller memory of cgroup version 1 is mounted here")
    group = cgroups._group(base, lab, osd)
    cgroups._make(lab, group)
    return group


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


LOADS: Final = faults.LOADS | {"read": _read, "bursts": _bursts}
FAULTS: Final = faults.FAULTS | {
    "affinity": _affinity,
    "busy-cpu": _busy_cpu,
    "config": _config,
    "delete": _delete,
    "flaps": _flaps,
    "kill": _kill,
    "memory-limit": _memory_limit,
    "memory-room": _memory_room,
    "own-link": _own_link,
    "pauses": _pauses,
    "restart-all": _restart_all,
    "slow-link": _slow_link,
    "trim": _trim,
}
