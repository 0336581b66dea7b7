"""The engines of fio that scenarios can use. To add one: a file, and a line here."""

from cephqos_loadgen.engines.fio_engine import FioEngine
from cephqos_loadgen.engines.krbd import Krbd
from cephqos_loadgen.engines.qemu import Guest, Nbd
from cephqos_loadgen.engines.raw_device import IoUring, Libaio
from cephqos_loadgen.engines.rbd import Rados, Rbd

_ENGINES: tuple[FioEngine, ...] = (Rbd(), Rados(), Krbd(), Nbd(), Guest(), Libaio(), IoUring())
ENGINES = {engine.name: engine for engine in _ENGINES}
