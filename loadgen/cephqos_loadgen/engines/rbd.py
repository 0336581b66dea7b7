"""librbd and librados: images and objects through Ceph's own libraries, which fio links."""

from collections.abc import Mapping
from typing import ClassVar

from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget, ImageEngine
from cephqos_loadgen.plan.place import ProgramPaths


class Rbd(ImageEngine):
    """fio links librbd itself."""

    name = "rbd"
    fio_name = "rbd"
    words = "librbd"

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        image = [f"--pool={target.pool}", f"--rbdname=volume.{volume}"]
        return ["--ioengine=rbd", f"--clientname={target.place.user}", *image]


class Rados(FioEngine):
    """Each client writes and reads objects of its own."""

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


def write_through_argv(pool: str, volume: int, place: ProgramPaths) -> list[str]:
    """Write an image once from its start to its end, so that every block exists."""
    options = Rbd().options(FioTarget("", place, pool), "", volume, {})
    job = [f"--name=volume.{volume}", *options, "--rw=write", "--bs=4M", "--iodepth=8"]
    return ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", *job]
