"""librbd: images through Ceph's own library."""

from cephqos_loadgen.engines.fio_engine import Devices, FioTarget, ImageEngine
from cephqos_loadgen.plan.place import ProgramPaths


class Rbd(ImageEngine):
    """fio links librbd itself."""

    name = "rbd"
    fio_name = "rbd"
    words = "librbd"

    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        image = [f"--pool={target.pool}", f"--rbdname=volume.{volume}"]
        return ["--ioengine=rbd", f"--clientname={target.place.user}", *image]


def write_through_argv(pool: str, volume: int, place: ProgramPaths) -> list[str]:
    """Write an image once from its start to its end, so that every block exists."""
    options = Rbd().options(FioTarget("", place, pool), "", volume, {})
    job = [f"--name=volume.{volume}", *options, "--rw=write", "--bs=4M", "--iodepth=8"]
    return ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", *job]
