"""Loads and faults, as the files of situations name them; what is prepared for them.

These are the demo's. `make truth` has more, in tests/truth/faults.py.
"""

import json
from collections.abc import Sequence
from typing import Final

from cephqos_stack.staged import host
from cephqos_stack.staged.situation import Situation, StagedAction
from cephqos_stack.staged.stage import FRESH, GRACE, Stage

LOW: Final = 300  # operations per second that any OSD of any machine delivers
SHARE: Final = 10  # up to it a capacity is a share of what is delivered


# -- loads: seconds is how long they last --------------------------------------------------------


async def _write(stage: Stage, do: StagedAction, seconds: float) -> None:
    size, depth = str(do.options.get("bytes", 4096)), str(do.options.get("depth", 128))
    what = ["write", "-b", size, "-t", depth, *(["--write-omap"] if "omap" in do.options else [])]
    await stage.bench(seconds, *what, pool=str(do.options.get("pool", "")))


async def prefill(stage: Stage, size: int, seconds: float = 8) -> None:
    await stage.bench(seconds, "write", "-b", str(size), "-t", "64", name="prefill")


async def _rbd(stage: Stage, do: StagedAction, seconds: float) -> None:
    """fio on an image: `mib: 4` is one single object. However long it writes, no OSD is filled."""
    image = f"i{next(FRESH)}"
    mib = do.options.get("mib", 512)
    await stage.on.lab.exec(["rbd", "create", f"{stage.pool}/{image}", "--size", f"{mib}M"])
    if do.options.get("noisy"):
        said = await stage.on.lab.exec(["rbd", "info", f"{stage.pool}/{image}", "--format", "json"])
        stage.noisy = json.loads(said.stdout)["id"]
    fio = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", f"--pool={stage.pool}"]
    fio += [f"--rbdname={image}", f"--rw={do.options.get('rw', 'randwrite')}"]
    fio += [f"--bs={do.options.get('bytes', 4096)}"]
    fio += [f"--iodepth={do.options.get('depth', 4)}", "--time_based", f"--runtime={seconds:g}"]
    if "iops" in do.options:
        fio += [f"--rate_iops={do.options['iops']}"]
    if "pause_ms" in do.options:  # after as many operations as are in flight
        fio += [f"--thinktime={1000 * do.options['pause_ms']}"]
        fio += [f"--thinktime_blocks={do.options['depth']}"]
    await stage.on.lab.exec(fio, within=seconds + GRACE, check=False)


LOADS = {"write": _write, "rbd": _rbd}

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


async def _more(stage: Stage, do: StagedAction) -> None:
    """Load that begins later."""
    stage.run(LOADS[do.options.get("load", "write")](stage, do, stage.load_seconds))


async def _slow_messages(stage: Stage, do: StagedAction) -> None:
    """Messages that come to the OSD from other OSDs are held back, heartbeats too."""
    osd = str(stage.osd(do))
    wanted = {
        "ms_inject_delay_type": "osd",
        "ms_inject_delay_max": str(do.options.get("seconds", 0.4)),
        "ms_inject_delay_probability": "1",
    }

    async def to(*changes: tuple[str, ...]) -> None:
        # An OSD gives up if it was marked down often.
        for change in (("set", "osd_max_markdown_count", "1000"), *changes):
            await stage.on.lab.exec(["ceph", "tell", f"osd.{osd}", "config", *change])
        # A connection asks for its delay when it is made. An OSD that was marked down makes all of
        # them again; a restart could take minutes.
        await stage.on.lab.exec(["ceph", "osd", "down", osd])

    stage.undo.append(lambda: to(*(("unset", option) for option in wanted)))
    await to(*(("set", option, value) for option, value in wanted.items()))


async def _scrub(stage: Stage, do: StagedAction) -> None:
    await stage.on.lab.exec(["ceph", "osd", "pool", "deep-scrub", stage.pool])


async def _ceph(stage: Stage, do: StagedAction) -> None:
    """Commands of an operator; `POOL` is the pool, and `OSD` the OSD."""

    async def give(commands: Sequence[str]) -> None:
        for command in commands:
            words = {"POOL": stage.pool, "OSD": str(stage.osd(do))}
            argv = [words.get(word, word) for word in command.split()]
            await stage.on.lab.exec(["ceph", *argv])

    stage.undo.append(lambda: give(do.options.get("undo", ())))
    await give(do.options["run"])


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
    "busy-host": host.busy_host,
    "cpu-limit": host.cpu_limit,
    "more": _more,
    "slow-messages": _slow_messages,
    "scrub": _scrub,
    "recover": _recover,
    "ceph": _ceph,
}


def capacity_option(situation: Situation) -> str:
    return f"osd_mclock_max_capacity_iops_{situation.cluster.media}"


async def prepare(stage: Stage, delivered: float = LOW) -> None:
    """The capacity, a share of what the OSDs deliver; objects to read or to remove."""
    on, situation = stage.on, stage.situation
    capacity, option = situation.capacity, capacity_option(situation)
    for name, value in situation.config.items():
        await on.config(name, value)
    if capacity is None:
        await on.unset(option)
    else:
        await on.config(option, round(capacity * delivered if capacity <= SHARE else capacity))
    kinds = {it.kind for it in (*situation.loads, *situation.faults)}
    if kinds & {"read", "trim", "delete", "scrub"}:
        reads = [it for it in situation.loads if it.kind == "read"]
        await prefill(stage, int(reads[0].options.get("bytes", 65536)) if reads else 4096)
    for fault in situation.faults:
        if fault.kind == "recover":
            await degrade(stage, fault)


async def unset(stage: Stage) -> None:
    for option in {*stage.situation.config, capacity_option(stage.situation)}:
        await stage.on.unset(option)
