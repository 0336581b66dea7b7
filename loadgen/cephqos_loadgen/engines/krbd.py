"""krbd: images as block devices of the kernel."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from cephqos_base.errors import CephqosError
from cephqos_loadgen.engines.fio_engine import Devices, FioTarget, ImageEngine, Tools


class Krbd(ImageEngine):
    """Maps the images before fio starts, and unmaps them after it."""

    name = "krbd"
    fio_name = "libaio"
    words = "the kernel's RBD"
    programs = ("rbd",)
    maps_images = True

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        device = devices.get(volume, f"/dev/rbd/{target.pool}/volume.{volume}")
        return ["--ioengine=libaio", "--direct=1", f"--filename={device}"]

    def preparing(self, target: FioTarget, volumes: Sequence[int]) -> list[list[str]]:
        return [_map_argv(target, volume) for volume in volumes]

    @asynccontextmanager
    async def prepared(
        self, target: FioTarget, volumes: Sequence[int], tools: Tools
    ) -> AsyncIterator[Devices]:
        devices: dict[int, str] = {}
        async with AsyncExitStack() as stack:
            for volume in volumes:
                await tools.will_map(target.pool, f"volume.{volume}")
                device = devices[volume] = (await tools.output(_map_argv(target, volume))).strip()
                stack.push_async_exit(partial(_unmap, tools, device))
            yield devices

    def host_lacks(self) -> str:
        kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
        modules = Path("/lib/modules") / kernel
        if Path("/sys/bus/rbd").exists() or any(modules.rglob("rbd.ko*")):
            return ""
        return f"kernel {kernel} has no rbd module; use rbd (librbd) or nbd (QEMU)"


async def _unmap(tools: Tools, device: str, failure: object, *_: object) -> None:
    """Unmap a device. If that fails, the phase fails, unless it has failed already."""
    try:
        await tools.output(["rbd", "device", "unmap", device])
    except CephqosError:
        if failure is None:
            raise


def _map_argv(target: FioTarget, volume: int) -> list[str]:
    image = f"{target.pool}/volume.{volume}"
    return ["rbd", *target.place.identity, "device", "map", image]
