"""guest: all volumes of a phase in one process of QEMU's block layer, as one guest has them.

There is no guest in it: no virtio, no kernel. `nbd` has a process for each volume, as guests with
one volume each have.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget, Tools
from cephqos_loadgen.engines.nbd import until_served

_PROGRAM = "qemu-storage-daemon"
# What QEMU calls these caches of a guest's disk.
_CACHES = {
    "none": "cache.direct=on,cache.no-flush=off",
    "writeback": "cache.direct=off,cache.no-flush=off",
    "unsafe": "cache.direct=off,cache.no-flush=on",
}


class Guest(FioEngine):
    """fio talks to one server, by the names of its exports."""

    name = "guest"
    fio_name = "nbd"
    words = "QEMU's block layer, one process for all volumes"
    caches = tuple(_CACHES)
    programs = (_PROGRAM,)
    needs: ClassVar[Mapping[str, str]] = {"pool": "the pool of the images"}
    on_images = True

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        uri = f"nbd+unix:///volume.{volume}?socket={_socket(target)}"
        return ["--ioengine=nbd", f"--uri={uri}"]

    def preparing(self, target: FioTarget, volumes: Sequence[int]) -> list[list[str]]:
        return [_server_argv(target, volumes)]

    @asynccontextmanager
    async def prepared(
        self, target: FioTarget, volumes: Sequence[int], tools: Tools
    ) -> AsyncIterator[Devices]:
        name, path = f"{target.phase}.qemu.guest", Path(_socket(target))
        async with AsyncExitStack() as stack:
            stack.callback(path.unlink, missing_ok=True)
            argv = _server_argv(target, volumes)
            server = await stack.enter_async_context(tools.start(name, argv))
            await until_served(name, server, path)
            yield {}


def _socket(target: FioTarget) -> str:
    return f"{target.place.work}/{target.phase}.guest.nbd"


def _server_argv(target: FioTarget, volumes: Sequence[int]) -> list[str]:
    # The keyring, where there is one, is named in the conf file.
    place = target.place
    common = f"conf={place.conf},user={place.user},{_CACHES[target.cache]}"
    argv = [_PROGRAM]
    for volume in volumes:
        image = f"pool={target.pool},image=volume.{volume}"
        argv += ["--blockdev", f"driver=rbd,node-name=volume{volume},{image},{common}"]
    argv += ["--nbd-server", f"addr.type=unix,addr.path={_socket(target)},max-connections=0"]
    for volume in volumes:
        export = f"type=nbd,id=export{volume},node-name=volume{volume},name=volume.{volume}"
        argv += ["--export", f"{export},writable=on"]
    return argv
