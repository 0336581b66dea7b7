"""nbd and guest: images through QEMU's block layer, without a guest.

`nbd` has a process for each volume, like guests with one volume each. `guest` has one process for
all volumes of a phase, like one guest with all of them. There is no virtio and no kernel in it.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from cephqos_base.errors import CephqosError
from cephqos_loadgen.engines.fio_engine import Devices, FioTarget, Helper, ImageEngine, Tools

_SOCKET_SECONDS = 60.0  # until a server listens
_STORAGE_DAEMON = "qemu-storage-daemon"
# QEMU's options for these cache modes of a disk.
_CACHES = {
    "none": "cache.direct=on,cache.no-flush=off",
    "writeback": "cache.direct=off,cache.no-flush=off",
    "unsafe": "cache.direct=off,cache.no-flush=on",
}


class QemuFailed(CephqosError):
    """QEMU did not serve an image."""


class _Server(NamedTuple):
    """A process of QEMU that serves images on a socket."""

    name: str
    socket: Path
    argv: list[str]


class _Qemu(ImageEngine):
    """fio connects to sockets of servers, which are started before it."""

    __slots__ = ()
    fio_name = "nbd"

    @abstractmethod
    def servers(self, target: FioTarget, volumes: Sequence[int]) -> list[_Server]:
        """The servers of these volumes."""

    def preparing(self, target: FioTarget, volumes: Sequence[int]) -> list[list[str]]:
        return [server.argv for server in self.servers(target, volumes)]

    @asynccontextmanager
    async def prepared(
        self, target: FioTarget, volumes: Sequence[int], tools: Tools
    ) -> AsyncIterator[Devices]:
        async with AsyncExitStack() as stack:
            for name, socket, argv in self.servers(target, volumes):
                stack.callback(socket.unlink, missing_ok=True)
                server = await stack.enter_async_context(tools.start(name, argv))
                await _until_served(name, server, socket)
            yield {}


class Nbd(_Qemu):
    """One qemu-nbd per image."""

    name = "nbd"
    words = "QEMU's block layer"
    caches = ("none", "writeback", "writethrough", "directsync", "unsafe")
    programs = ("qemu-nbd",)

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        return ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={self._socket(target, volume)}"]

    def servers(self, target: FioTarget, volumes: Sequence[int]) -> list[_Server]:
        place, servers = target.place, []
        for volume in volumes:
            image = f"rbd:{target.pool}/volume.{volume}:conf={place.conf}:id={place.user}"
            if place.keyring:
                image += f":keyring={place.keyring}"
            socket = self._socket(target, volume)
            options = ["--socket", socket, "--format=raw"]
            argv = ["qemu-nbd", *options, f"--cache={target.cache}", "--persistent", image]
            servers.append(_Server(f"{target.phase}.qemu.{volume}", Path(socket), argv))
        return servers

    def _socket(self, target: FioTarget, volume: int) -> str:
        return f"{target.place.work}/{target.phase}.{volume}.nbd"


class Guest(_Qemu):
    """fio connects to one server, which exports each volume under a name."""

    name = "guest"
    words = "QEMU's block layer, one process for all volumes"
    caches = tuple(_CACHES)
    programs = (_STORAGE_DAEMON,)

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        uri = f"nbd+unix:///volume.{volume}?socket={self._socket(target)}"
        return ["--ioengine=nbd", f"--uri={uri}"]

    def servers(self, target: FioTarget, volumes: Sequence[int]) -> list[_Server]:
        # The keyring, where there is one, is named in the conf file.
        place, socket = target.place, self._socket(target)
        common = f"conf={place.conf},user={place.user},{_CACHES[target.cache]}"
        argv = [_STORAGE_DAEMON]
        for volume in volumes:
            image = f"pool={target.pool},image=volume.{volume}"
            argv += ["--blockdev", f"driver=rbd,node-name=volume{volume},{image},{common}"]
        argv += ["--nbd-server", f"addr.type=unix,addr.path={socket},max-connections=0"]
        for volume in volumes:
            export = f"type=nbd,id=export{volume},node-name=volume{volume},name=volume.{volume}"
            argv += ["--export", f"{export},writable=on"]
        return [_Server(f"{target.phase}.qemu.guest", Path(socket), argv)]

    def _socket(self, target: FioTarget) -> str:
        return f"{target.place.work}/{target.phase}.guest.nbd"


async def _until_served(name: str, server: Helper, path: Path) -> None:
    """Wait until the server listens; QemuFailed if it ends, or does not listen in time."""
    try:
        async with asyncio.timeout(_SOCKET_SECONDS):
            while not path.exists():  # noqa: ASYNC240 - there is no event for it
                if not server.running:
                    await asyncio.sleep(0.2)  # until its last words are read
                    raise QemuFailed(f"{name} ended at once: {server.last_words}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise QemuFailed(f"{name}: no socket within {_SOCKET_SECONDS:g} s") from None
