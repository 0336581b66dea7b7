"""librados: objects of a pool, without images."""

from collections.abc import Mapping
from typing import ClassVar

from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget


class Rados(FioEngine):
    """Each client writes and reads one object set of its own."""

    name = "rados"
    fio_name = "rados"
    words = "librados"
    needs: ClassVar[Mapping[str, str]] = {
        "pool": "the pool of the objects",
        "size": "bytes per client",
    }
    on_images = False

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        # Object names come from the job's name and number: clients must not share them.
        names = f"--filename={target.phase}.{client}"
        user = f"--clientname={target.place.user}"
        return ["--ioengine=rados", user, f"--pool={target.pool}", names]
