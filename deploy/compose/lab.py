"""The lab of the compose stack, until a signal ends it.

LAB_FAULTS=yes: faults can be provoked, as in the demo, by `lab.py --provoke NAME`; again ends it.
`lab.py --healthy`: whether all its daemons are there.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from functools import partial
from typing import Any

from cephqos_base.errors import CephqosError
from cephqos_base.prometheus import query
from cephqos_base.units import GIB
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Progress
from cephqos_stack.demo.provoke import Provoker, listen
from cephqos_stack.demo.remote import ask, listening
from cephqos_stack.demo.story import CAPACITY_OPTION, AlertWatch

# The exporters' keys. docs/install/security.md says why these capabilities and no others.
MAPS = "allow service mon r, allow service osd r"
USERS = {
    "client.cephqos": {
        "mon": f'{MAPS}, allow command "config get"',
        "mgr": ", ".join(
            f'allow command "{command}"' for command in ("pg dump", "pg ls", "pg ls-by-primary")
        ),
    },
    "client.cephqos-probe": {"mon": MAPS, "osd": "allow rw pool=probe namespace=cephqos-probe"},
}


async def prepare(lab: Lab) -> None:
    """Make the exporters' keys and the pool that is probed."""
    await lab.exec(["ceph", "osd", "pool", "create", "probe", "8"])
    await lab.exec(["ceph", "osd", "pool", "application", "enable", "probe", "cephqos"])
    for user, caps in USERS.items():
        keyring = str(lab.paths.keyring(user))
        pairs = [word for pair in caps.items() for word in pair]
        await lab.exec(["ceph", "auth", "get-or-create", user, *pairs, "-o", keyring])
        await lab.exec(["chown", "ceph:ceph", keyring])
        await lab.exec(["chmod", "600", keyring])
    # `--healthy` looks for this file: exporters can start now.
    (lab.paths.work / "prepared").touch()


PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9090", "http://127.0.0.1:9093"
PACE = 30.0  # the rules have their usual windows here, 30 times as long as in the demo
BENCH = ("write", "-b", "4096", "-t", "128", "--format", "json", "--no-cleanup")


async def measure(lab: RunningLab) -> int:
    """Measure what an OSD delivers under full load, replica writes included, and set it."""
    copies = min(3, lab.spec.osds)
    pool = ["measured", "32", "32", f"--size={copies}"]
    await lab.exec(["ceph", "osd", "pool", "create", *pool])
    bench_run = await lab.exec(["rados", "-p", "measured", "bench", "12", *BENCH], within=60)
    output = bench_run.stdout
    bench = json.loads(output[output.index("{") :])  # a line of text comes first
    delivered = round(float(bench["average_iops"]) * copies / lab.spec.osds)
    await lab.exec(["ceph", "config", "set", "osd", CAPACITY_OPTION, str(delivered)])
    return delivered


async def provoke_faults(lab: RunningLab) -> None:
    tell = partial(print, flush=True)
    provoker = Provoker(lab, partial(measure, lab), tell, PACE)
    provoker.closed = ""
    async with listening(lab.paths.sockets, provoker.toggle):
        await listen(provoker, AlertWatch(ALERTMANAGER, tell), partial(query, PROMETHEUS))


async def keep() -> int:
    """Run the lab until a signal ends it (status 0), or until it ends by itself (1)."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    faults = os.environ.get("LAB_FAULTS") == "yes"
    spec = LabSpec(
        osds=int(os.environ["LAB_OSDS"]),
        osd_size=8 * GIB,
        # A fault of one device needs a device for each OSD.
        backing="loop" if faults else "file",
        rotational=False if faults else None,
        auth="cephx",
        setuser="ceph",
        fsid=os.environ["LAB_FSID"],
        timeout=170,
    )
    async with Lab(spec, Progress()) as lab:
        await prepare(lab)
        print(f"the cluster is up: {lab.state.fsid}", flush=True)
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(lab.ended()),
            asyncio.create_task(ended.wait()),
        ]
        provoking = asyncio.create_task(provoke_faults(lab)) if faults else None
        if provoking:
            waits.append(provoking)
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if provoking:
            provoking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await provoking
        return 0 if ended.is_set() else 1


async def healthy() -> int:
    lab = RunningLab.find("lab")
    pids = await lab.pids()
    return 0 if len(pids) == lab.spec.osds + 2 and (lab.paths.work / "prepared").exists() else 1


async def provoke(name: str) -> int:
    print(await ask(name))
    return 0


async def main(arguments: list[str]) -> int:
    match arguments:
        case ["--healthy"]:
            return await healthy()
        case ["--provoke", name]:
            return await provoke(name)
    return await keep()


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except CephqosError as error:
        sys.exit(f"lab: {error}")
