"""The lab of the compose stack, until a signal ends it.

`lab.py --healthy`: whether all its daemons are there.
"""

import asyncio
import os
import signal
import sys

from cephqos_base.errors import CephqosError
from cephqos_base.units import GIB
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Progress

# docs/install/security.md says why these capabilities and no others.
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
    """The exporters' keys, and the pool that is probed."""
    await lab.exec(["ceph", "osd", "pool", "create", "probe", "8"])
    await lab.exec(["ceph", "osd", "pool", "application", "enable", "probe", "cephqos"])
    for user, caps in USERS.items():
        keyring = str(lab.paths.keyring(user))
        pairs = [word for pair in caps.items() for word in pair]
        await lab.exec(["ceph", "auth", "get-or-create", user, *pairs, "-o", keyring])
        await lab.exec(["chown", "ceph:ceph", keyring])
        await lab.exec(["chmod", "600", keyring])
    # `--healthy` knows by it that exporters can start.
    (lab.paths.work / "prepared").touch()


async def keep() -> int:
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    spec = LabSpec(
        osds=int(os.environ["LAB_OSDS"]),
        osd_size=8 * GIB,
        auth="cephx",
        setuser="ceph",
        fsid=os.environ["LAB_FSID"],
        timeout=170,
    )
    async with Lab(spec, Progress()) as lab:
        await prepare(lab)
        print(f"the cluster is up: {lab.state.fsid}", flush=True)
        waits = [asyncio.create_task(lab.ended()), asyncio.create_task(end.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return 0 if end.is_set() else 1


async def healthy() -> int:
    lab = RunningLab.find("lab")
    pids = await lab.pids()
    return 0 if len(pids) == lab.spec.osds + 2 and (lab.paths.work / "prepared").exists() else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(healthy() if "--healthy" in sys.argv else keep()))
    except CephqosError as error:
        sys.exit(f"lab: {error}")
