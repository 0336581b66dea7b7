"""Loads and faults, as the files of situations name them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.stack.conftest import Watched
from tests.waiting import until

from cephqos_exporter.procfs import parse_cgroup
from cephqos_loadgen.errors import LabError

from . import link
from .situation import Situation, StagedAction

_FRESH = count()
_LONGER = 90.0
_GRACE = 40.0  # a bench ends its last operations on a device that hardly moves any more


@dataclass
class Stage:
    """What happens to one lab during one situation, and how it is undone."""

    on: Watched
    situation: Situation
    turn: int
    pool: str
    undo: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def load_seconds(self) -> float:
        """Loads last until they are ended: one that ends while a fault is staged proves nothing."""
        return self.situation.seconds + self.situation.stay + _LONGER

    def osd(self, action: StagedAction) -> int:
        return int((int(action.options.get("osd", 1)) + self.turn) % self.situation.cluster.osds)

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def bench(self, seconds: float, *what: str, pool: str = "", name: str = "") -> None:
        """rados bench; what a fault breaks off is no failure of the situation."""
        argv = ["rados", "-p", pool or self.pool, "bench", f"{seconds:g}", *what]
        argv += ["--run-name", name or f"r{next(_FRESH)}-{os.getpid()}"]
        if what[0] == "write":
            argv += ["--no-cleanup"]
        await self.on.lab.exec(argv, within=seconds + _GRACE, check=False)

    async def close(self) -> None:
        """End faults first, then loads."""
        for step in reversed(self.undo):
            await step()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


# -- loads: seconds is how long they last --------------------------------------------------------


async def _write(stage: Stage, do: StagedAction, seconds: float) -> None:
    size, depth = str(do.options.get("bytes", 4096)), str(do.options.get("depth", 128))
    what = ["write", "-b", size, "-t", depth, *(["--write-omap"] if "omap" in do.options else [])]
    await stage.bench(seconds, *what, pool=str(do.options.get("pool", "")))


async def _read(stage: Stage, do: StagedAction, seconds: float) -> None:
    """Random reads of what `prefill` wrote."""
    await stage.bench(seconds, "rand", "-t", str(do.options.get("depth", 32)), name="prefill")


async def prefill(stage: Stage, size: int, seconds: float = 8) -> None:
    await stage.bench(seconds, "write", "-b", str(size), "-t", "64", name="prefill")


async def _rbd(stage: Stage, do: StagedAction, seconds: float) -> None:
    """fio on an image: `mib: 4` is one single object. However long it writes, no OSD is filled."""
    image = f"i{next(_FRESH)}"
    mib = do.options.get("mib", 512)
    await stage.on.lab.exec(["rbd", "create", f"{stage.pool}/{image}", "--size", f"{mib}M"])
    fio = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", f"--pool={stage.pool}"]
    fio += [f"--rbdname={image}", f"--rw={do.options.get('rw', 'randwrite')}"]
    fio += [f"--bs={do.options.get('bytes', 4096)}"]
    fio += [f"--iodepth={do.options.get('depth', 4)}", "--time_based", f"--runtime={seconds:g}"]
    if "iops" in do.options:
        fio += [f"--rate_iops={do.options['iops']}"]
    await stage.on.lab.exec(fio, within=seconds + _GRACE, check=False)


async def _bursts(stage: Stage, do: StagedAction, seconds: float) -> None:
    """A second of load in every five."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        await stage.bench(1, "write", "-b", "4096", "-t", str(do.options.get("depth", 64)))
        await asyncio.sleep(4)


LOADS = {"write": _write, "read": _read, "rbd": _rbd, "bursts": _bursts}

# -- faults, and what is none --------------------------------------------------------------------


async def _throttle(stage: Stage, do: StagedAction) -> None:
    osd = stage.osd(do)
    limits = {key: int(value) for key, value in do.options.items() if key != "osd"}
    stage.undo.append(lambda: stage.on.lab.faults.throttle(osd))
    await stage.on.lab.faults.throttle(osd, **limits)


async def _stop(stage: Stage, do: StagedAction) -> None:
    osd = stage.osd(do)
    stage.undo.append(lambda: stage.on.lab.faults.resume(osd))
    await stage.on.lab.faults.stop(osd)


async def _busy_cpu(stage: Stage, do: StagedAction) -> None:
    """All threads of the OSD on one CPU, where others compute as well."""
    pid = (await stage.on.lab.pids())[f"osd.{stage.osd(do)}"]
    cpu = max(os.sched_getaffinity(0))
    everywhere = os.sched_getaffinity(pid)
    await _strangers(stage, int(do.options.get("processes", 4)), {cpu})

    async def end() -> None:
        _pin(pid, everywhere)

    stage.undo.append(end)
    _pin(pid, {cpu})


async def _busy_host(stage: Stage, do: StagedAction) -> None:
    """Others compute on all CPUs of the host."""
    await _strangers(stage, int(do.options.get("processes", 8)), os.sched_getaffinity(0))


async def _strangers(stage: Stage, processes: int, cpus: set[int]) -> None:
    # In a session of its own each: the kernel's autogroups give two sessions half each, however
    # many processes are in them. They end with their parent.
    spin = f"import os\nos.sched_setaffinity(0, {cpus})\nwhile os.getppid() == {os.getpid()}: 0"
    others: list[asyncio.subprocess.Process] = []

    async def end() -> None:
        for other in others:
            other.send_signal(signal.SIGKILL)
            await other.wait()

    stage.undo.append(end)
    for _ in range(processes):
        argv = (sys.executable, "-c", spin)
        others.append(await asyncio.create_subprocess_exec(*argv, start_new_session=True))


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


async def _cpu_limit(stage: Stage, do: StagedAction) -> None:
    """A CPU limit for the OSD, as its container would have it; cgroup version 1."""
    osd, period = stage.osd(do), 100_000
    pid = (await stage.on.lab.pids())[f"osd.{osd}"]
    home, group = _home(pid, "cpu"), _made(stage, osd, "cpu", "cpu.cfs_quota_us")

    async def end() -> None:
        _move(pid, home)
        group.rmdir()

    stage.undo.append(end)
    (group / "cpu.cfs_period_us").write_text(str(period))
    (group / "cpu.cfs_quota_us").write_text(str(int(float(do.options["cpus"]) * period)))
    _move(pid, group)


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
    await until(lambda: clean(stage.on), f"clean after osd.{osd}", 120)


async def _run(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise LabError(f"{' '.join(argv)} failed")


def _pin(pid: int, cpus: set[int]) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - threads end meanwhile
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:
            continue


async def _more(stage: Stage, do: StagedAction) -> None:
    """Load that begins later."""
    stage.run(_write(stage, do, stage.load_seconds))


async def _config(stage: Stage, do: StagedAction) -> None:
    """Options of all OSDs, or of one."""
    who = f"osd.{stage.osd(do)}" if "osd" in do.options else "osd"
    for option, value in do.options.items():
        if option != "osd":
            await stage.on.config(option, value, who)
            stage.undo.append(_unset(stage, option, who))


def _unset(stage: Stage, option: str, who: str) -> Callable[[], Awaitable[None]]:
    return lambda: stage.on.unset(option, who)


async def _slow_messages(stage: Stage, do: StagedAction) -> None:
    """Messages that come to the OSD from other OSDs are held back, heartbeats too."""
    osd = stage.osd(do)
    wanted = {
        "ms_inject_delay_type": "osd",
        "ms_inject_delay_max": str(do.options.get("seconds", 0.4)),
        "ms_inject_delay_probability": "1",
    }
    for option, value in wanted.items():
        await stage.on.config(option, value, f"osd.{osd}")

    async def end() -> None:
        for option in wanted:
            await stage.on.unset(option, f"osd.{osd}")
        await stage.on.lab.faults.restart(osd)

    stage.undo.append(end)
    # A connection asks for its delay when it is made.
    await stage.on.lab.faults.restart(osd)


async def _slow_link(stage: Stage, do: StagedAction) -> None:
    """What other OSDs send to this one passes a slow link."""
    stage.undo.append(link.restore)
    await link.slow_down(stage.on.lab, stage.osd(do), int(do.options["kbit"]))


async def _affinity(stage: Stage, do: StagedAction) -> None:
    """The OSD holds replicas only."""
    name = f"osd.{stage.osd(do)}"

    async def to(value: str) -> None:
        await stage.on.lab.exec(["ceph", "osd", "primary-affinity", name, value])

    stage.undo.append(lambda: to("1"))
    await to("0")
    await asyncio.sleep(4)


async def _scrub(stage: Stage, do: StagedAction) -> None:
    await stage.on.lab.exec(["ceph", "osd", "pool", "deep-scrub", stage.pool])


async def _trim(stage: Stage, do: StagedAction) -> None:
    """A snapshot of the pool, work on top of it, and its removal."""
    pool = ["ceph", "osd", "pool"]
    name = f"s{next(_FRESH)}"
    await stage.on.lab.exec([*pool, "mksnap", stage.pool, name])
    await stage.bench(6, "write", "-b", "4096", "-t", "64", name="prefill")
    await stage.on.lab.exec([*pool, "rmsnap", stage.pool, name])


async def _delete(stage: Stage, do: StagedAction) -> None:
    argv = ["rados", "-p", stage.pool, "cleanup", "--run-name", "prefill"]
    await stage.on.lab.exec(argv, within=60, check=False)


async def _ceph(stage: Stage, do: StagedAction) -> None:
    """Commands of an operator; `POOL` is the pool, and `OSD` the OSD."""

    async def give(commands: Sequence[str]) -> None:
        for command in commands:
            words = {"POOL": stage.pool, "OSD": str(stage.osd(do))}
            argv = [words.get(word, word) for word in command.split()]
            await stage.on.lab.exec(["ceph", *argv])

    stage.undo.append(lambda: give(do.options.get("undo", ())))
    await give(do.options["run"])


async def _kill(stage: Stage, do: StagedAction) -> None:
    osd = stage.osd(do)
    stage.undo.append(lambda: stage.on.lab.faults.restart(osd))
    await stage.on.lab.faults.kill(osd)


async def _restart_all(stage: Stage, do: StagedAction) -> None:
    """One OSD after the other, as an upgrade does it."""
    await stage.on.lab.exec(["ceph", "osd", "set", "noout"])
    stage.undo.append(lambda: stage.on.lab.exec(["ceph", "osd", "unset", "noout"]))
    for osd in range(stage.situation.cluster.osds):
        await stage.on.lab.faults.restart(osd)
        await until(lambda: clean(stage.on), f"clean after osd.{osd}", 300)


async def _recover(stage: Stage, do: StagedAction) -> None:
    """The OSD that `degrade` ended comes back, and has a lot to take over."""
    await stage.on.lab.faults.restart(stage.osd(do))


async def degrade(stage: Stage, do: StagedAction) -> None:
    osd = stage.osd(do)
    await stage.on.lab.exec(["ceph", "osd", "set", "noout"])
    stage.undo.append(lambda: stage.on.lab.exec(["ceph", "osd", "unset", "noout"]))
    await stage.on.lab.faults.kill(osd)
    await stage.on.lab.exec(["ceph", "osd", "down", str(osd)])
    await stage.bench(float(do.options.get("fill", 8)), "write", "-b", "65536", "-t", "64")


FAULTS = {
    "throttle": _throttle,
    "stop": _stop,
    "busy-cpu": _busy_cpu,
    "busy-host": _busy_host,
    "cpu-limit": _cpu_limit,
    "memory-limit": _memory_limit,
    "more": _more,
    "config": _config,
    "slow-messages": _slow_messages,
    "slow-link": _slow_link,
    "affinity": _affinity,
    "scrub": _scrub,
    "trim": _trim,
    "delete": _delete,
    "restart-all": _restart_all,
    "recover": _recover,
    "ceph": _ceph,
    "kill": _kill,
}


async def clean(on: Watched) -> bool:
    try:
        done = await on.lab.exec(["ceph", "status", "--format", "json"])
    except LabError:
        return False
    status = json.loads(done.stdout)
    states = {entry["state_name"] for entry in status["pgmap"].get("pgs_by_state", ())}
    up = status["osdmap"]["num_up_osds"] == on.lab.spec.osds
    return bool(up) and all(state.startswith("active+clean") for state in states)
