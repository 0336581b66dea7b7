"""A raw device or file of this host, without the page cache: libaio and io_uring."""

from collections.abc import Mapping
from typing import ClassVar

from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget


class Libaio(FioEngine):
    """The kernel's older asynchronous interface."""

    name = "libaio"
    fio_name = "libaio"
    words = "libaio"
    needs: ClassVar[Mapping[str, str]] = {"path": "the device or file"}
    on_images = False

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        return [f"--ioengine={self.fio_name}", "--direct=1", f"--filename={target.path}"]


class IoUring(Libaio):
    """The kernel's newer asynchronous interface."""

    name = "io_uring"
    fio_name = "io_uring"
    words = "io_uring"
