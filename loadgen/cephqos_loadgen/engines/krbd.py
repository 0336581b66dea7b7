"""krbd: images as block devices of the kernel."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget, Tools


class Krbd(FioEngine):
    """The images are mapped before fio starts, and unmapped after it."""

    name = "krbd"
    fio_name = "libaio"
    words = "the kernel's RBD"
    programs = ("rbd",)
    needs: ClassVar[Mapping[str, str]] = {"pool": "the pool of the images"}
    on_images = True

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
        try:
            for volume in volumes:
                devices[volume] = (await tools.output(_map_argv(target, volume))).strip()
            yield devices
        finally:
            for device in devices.values():
                with contextlib.suppress(Exception):
                    await tools.output(["rbd", "device", "unmap", device])

    def host_lacks(self) -> str:
        kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
        modules = Path("/lib/modules") / kernel
        if Path("/sys/bus/rbd").exists() or any(modules.rglob("rbd.ko*")):
            return ""
        return f"kernel {kernel} has no rbd module; use rbd (librbd) or nbd (QEMU)"


def _map_argv(target: FioTarget, volume: int) -> list[str]:
    image = f"{target.pool}/volume.{volume}"
    return ["rbd", *target.place.identity, "device", "map", image]
