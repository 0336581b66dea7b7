"""nbd: images through QEMU's block layer, without a guest. One qemu-nbd per image."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from cephqos_base.errors import CephqosError
from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget, Helper, Tools

_SOCKET_SECONDS = 15.0


class QemuFailed(CephqosError):
    """qemu-nbd did not serve an image."""


class Nbd(FioEngine):
    """fio talks to the sockets of the servers."""

    name = "nbd"
    fio_name = "nbd"
    words = "QEMU's block layer"
    caches = ("none", "writeback", "writethrough", "directsync", "unsafe")
    programs = ("qemu-nbd",)
    needs: ClassVar[Mapping[str, str]] = {"pool": "the pool of the images"}
    on_images = True

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        return ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={_socket(target, volume)}"]

    def preparing(self, target: FioTarget, volumes: Sequence[int]) -> list[list[str]]:
        return [_server_argv(target, volume) for volume in volumes]

    @asynccontextmanager
    async def prepared(
        self, target: FioTarget, volumes: Sequence[int], tools: Tools
    ) -> AsyncIterator[Devices]:
        async with AsyncExitStack() as stack:
            for volume in volumes:
                name = f"{target.phase}.qemu.{volume}"
                argv = _server_argv(target, volume)
                server = await stack.enter_async_context(tools.start(name, argv))
                path = Path(_socket(target, volume))
                await until_served(name, server, path)
                stack.callback(path.unlink, missing_ok=True)
            yield {}


def _socket(target: FioTarget, volume: int) -> str:
    return f"{target.place.work}/{target.phase}.{volume}.nbd"


def _server_argv(target: FioTarget, volume: int) -> list[str]:
    place = target.place
    image = f"rbd:{target.pool}/volume.{volume}:conf={place.conf}:id={place.user}"
    if place.keyring:
        image += f":keyring={place.keyring}"
    options = ["--socket", _socket(target, volume), "--format=raw"]
    return ["qemu-nbd", *options, f"--cache={target.cache}", "--persistent", image]


async def until_served(name: str, server: Helper, path: Path) -> None:
    """Wait until the server listens; QemuFailed where it ends or does not."""
    try:
        async with asyncio.timeout(_SOCKET_SECONDS):
            while not path.exists():  # noqa: ASYNC240 - there is no event for it
                if not server.running:
                    await asyncio.sleep(0.2)  # until its last words are read
                    raise QemuFailed(f"{name} ended at once: {server.said}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise QemuFailed(f"{name}: no socket within {_SOCKET_SECONDS:g} s") from None
