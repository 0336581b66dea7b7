"""Loads and faults, by the kinds that the files of situations name: LOADS and FAULTS.

Each gets the stage and its StagedAction, and puts what it changes on `stage.undo`. `prepare` does
what has to be there before. These are the demo's; `make truth` has more, in tests/truth/faults.py.
"""

import json
from collections.abc import Sequence
from typing import Final

from cephqos_base.profiles import CAPACITY_OPTION
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.staged import host
from cephqos_stack.staged.situation import Situation, StagedAction
from cephqos_stack.staged.stage import FRESH, GRACE, Stage

LOW: Final = 300  # operations per second that any OSD of any machine delivers
SHARE: Final = 10  # up to this, a situation's capacity is a share of what OSDs deliver


# -- loads: seconds is how long they last --------------------------------------------------------


async def _write(stage: Stage, action: StagedAction, seconds: float) -> None:
    size, depth = str(action.options.get("bytes", 4096)), str(action.options.get("depth", 128))
    omap = ["--write-omap"] if "omap" in action.options else []
    pool = str(action.options.get("pool", ""))
    await stage.bench(seconds, "write", "-b", size, "-t", depth, *omap, pool=pool)


async def prefill(stage: Stage, size: int, seconds: float = 8) -> None:
    await stage.bench(seconds, "write", "-b", str(size), "-t", "64", name="prefill")


async def create_image(lab: RunningLab, image: str, size: str) -> None:
    """Create an RBD image, POOL/NAME, that librbd does not cache.

    Its cache answers a write before any OSD has it, and sends more writes at a time than a client.
    """
    await lab.exec(["rbd", "create", image, "--size", size])
    await lab.exec(["rbd", "config", "image", "set", image, "rbd_cache", "false"])


async def _rbd(stage: Stage, action: StagedAction, seconds: float) -> None:
    """fio on an image of `mib` MiB; 4 are one object. It never fills an OSD."""
    image = f"i{next(FRESH)}"
    await create_image(stage.on.lab, f"{stage.pool}/{image}", f"{action.options.get('mib', 512)}M")
    if action.options.get("noisy"):
        info = await stage.on.lab.exec(["rbd", "info", f"{stage.pool}/{image}", "--format", "json"])
        stage.noisy = json.loads(info.stdout)["id"]
    fio = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", f"--pool={stage.pool}"]
    fio += [f"--rbdname={image}", f"--rw={action.options.get('rw', 'randwrite')}"]
    fio += [f"--bs={action.options.get('bytes', 4096)}"]
    fio += [f"--iodepth={action.options.get('depth', 4)}", "--time_based", f"--runtime={seconds:g}"]
    if "iops" in action.options:
        fio += [f"--rate_iops={action.options['iops']}"]
    if "pause_ms" in action.options:  # after as many operations as are in flight
        fio += [f"--thinktime={1000 * action.options['pause_ms']}"]
        fio += [f"--thinktime_blocks={action.options['depth']}"]
    await stage.client(fio, seconds + GRACE)


LOADS = {"write": _write, "rbd": _rbd}

# -- faults, and actions that are none -----------------------------------------------------------


async def _throttle(stage: Stage, action: StagedAction) -> None:
    osd = stage.osd(action)
    limits = {key: int(value) for key, value in action.options.items() if key != "osd"}
    stage.undo.append(lambda: stage.on.lab.faults.throttle(osd))
    await stage.on.lab.faults.throttle(osd, **limits)


async def _stop(stage: Stage, action: StagedAction) -> None:
    osd = stage.osd(action)
    stage.undo.append(lambda: stage.on.lab.faults.resume(osd))
    await stage.on.lab.faults.stop(osd)


async def _more(stage: Stage, action: StagedAction) -> None:
    """Load that begins later."""
    stage.run(LOADS[action.options.get("load", "write")](stage, action, stage.load_seconds))


async def _slow_messages(stage: Stage, action: StagedAction) -> None:
    """Messages that come to the OSD from other OSDs are held back, heartbeats too."""
    osd = str(stage.osd(action))
    wanted = {
        "ms_inject_delay_type": "osd",
        "ms_inject_delay_max": str(action.options.get("seconds", 0.4)),
        "ms_inject_delay_probability": "1",
    }

    async def apply(*changes: tuple[str, ...]) -> None:
        # An OSD gives up if it was marked down often.
        for change in (("set", "osd_max_markdown_count", "1000"), *changes):
            await stage.on.lab.exec(["ceph", "tell", f"osd.{osd}", "config", *change])
        # A connection asks for its delay when it is made. An OSD that was marked down makes all of
        # them again; a restart could take minutes.
        await stage.on.lab.exec(["ceph", "osd", "down", osd])

    stage.undo.append(lambda: apply(*(("unset", option) for option in wanted)))
    await apply(*(("set", option, value) for option, value in wanted.items()))


async def _scrub(stage: Stage, action: StagedAction) -> None:
    await stage.on.lab.exec(["ceph", "osd", "pool", "deep-scrub", stage.pool])


async def _ceph(stage: Stage, action: StagedAction) -> None:
    """Commands of an operator. `POOL` in them stands for the pool, and `OSD` for the OSD."""

    async def run_all(commands: Sequence[str]) -> None:
        for command in commands:
            words = {"POOL": stage.pool, "OSD": str(stage.osd(action))}
            argv = [words.get(word, word) for word in command.split()]
            await stage.on.lab.exec(["ceph", *argv])

    stage.undo.append(lambda: run_all(action.options.get("undo", ())))
    await run_all(action.options["run"])


async def _recover(stage: Stage, action: StagedAction) -> None:
    """Start the OSD that `degrade` killed: it has to recover what was written since."""
    await stage.on.lab.faults.restart(stage.osd(action))


async def degrade(stage: Stage, action: StagedAction) -> None:
    """Kill an OSD and write objects without it, so that they are degraded."""
    osd = stage.osd(action)
    await stage.on.lab.exec(["ceph", "osd", "set", "noout"])
    stage.undo.append(lambda: stage.on.lab.exec(["ceph", "osd", "unset", "noout"]))
    await stage.on.lab.faults.kill(osd)
    await stage.on.lab.exec(["ceph", "osd", "down", str(osd)])
    await stage.bench(float(action.options.get("fill", 8)), "write", "-b", "65536", "-t", "64")


FAULTS = {
    "throttle": _throttle,
    "stop": _stop,
    "busy-host": host.busy_host,
    "cpu-limit": host.cpu_limit,
    "more": _more,
    "slow-messages": _slow_messages,
    "scrub": _scrub,
    "recover": _recover,
    "ceph": _ceph,
}


def capacity_option(situation: Situation) -> str:
    return f"{CAPACITY_OPTION}{situation.cluster.media}"


async def prepare(stage: Stage, delivered: float = LOW) -> None:
    """Set options and the capacity of a situation, and write objects to read or to remove."""
    on, situation = stage.on, stage.situation
    capacity, option = situation.capacity, capacity_option(situation)
    for name, value in situation.config.items():
        await on.config(name, value)
    if capacity is None:
        await on.unset(option)
    else:
        ops = capacity * delivered if capacity <= SHARE else capacity
        await on.config(option, round(ops))
    kinds = {action.kind for action in (*situation.loads, *situation.faults)}
    if kinds & {"read", "trim", "delete", "scrub"}:
        reads = [load for load in situation.loads if load.kind == "read"]
        await prefill(stage, int(reads[0].options.get("bytes", 65536)) if reads else 4096)
    for fault in situation.faults:
        if fault.kind == "recover":
            await degrade(stage, fault)


async def unset(stage: Stage) -> None:
    for option in {*stage.situation.config, capacity_option(stage.situation)}:
        await stage.on.unset(option)
