"""What an engine of fio must say about itself. One file per engine; `fio_engines` lists them."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from cephqos_loadgen.plan.place import ProgramPaths

Devices = Mapping[int, str]  # by volume: the block device, for engines that make one


@dataclass(frozen=True, slots=True)
class FioTarget:
    """What one phase loads, and where its programs find the cluster."""

    phase: str
    place: ProgramPaths
    pool: str = ""
    path: str = ""  # of a device or file, for engines that load one
    cache: str = "none"  # one of the engine's `caches`


class Helper(Protocol):
    """A process that runs as long as fio."""

    @property
    def running(self) -> bool: ...
    @property
    def last_words(self) -> str: ...


class Tools(Protocol):
    """What an engine may use on the host of the run."""

    def start(self, name: str, argv: Sequence[str]) -> AbstractAsyncContextManager[Helper]:
        """Run a process until the block ends. Its output is kept under the name."""

    async def output(self, argv: Sequence[str]) -> str:
        """What a command prints; RunError if it fails."""

    async def will_map(self, pool: str, image: str) -> None:
        """Write down that this host's kernel maps an image, which is undone in any case."""


class FioEngine(ABC):
    """One engine. It has no state: all it needs is in the target."""

    __slots__ = ()
    name: ClassVar[str]  # what scenarios call it
    fio_name: ClassVar[str]  # what fio calls the engine that it uses
    words: ClassVar[str]  # the path that I/O takes, as plans show it
    # The keys of a scenario that it needs, each with what it is.
    needs: ClassVar[Mapping[str, str]]
    # Whether it loads the images of a pool, which are divided between its clients.
    on_images: ClassVar[bool]
    # QEMU's cache modes that it can use; engines without QEMU have no cache.
    caches: ClassVar[tuple[str, ...]] = ("none",)
    # Whether the kernel of this host maps the images as block devices, which outlive a process.
    maps_images: ClassVar[bool] = False
    # Programs that it starts in addition to fio.
    programs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def options(self, target: FioTarget, client: str, volume: int, devices: Devices) -> list[str]:
        """The options of fio that name the engine and what it loads."""

    def preparing(self, target: FioTarget, volumes: Sequence[int]) -> list[list[str]]:
        """The commands to run before fio starts, as a plan shows them."""
        return []

    @asynccontextmanager
    async def prepared(
        self, target: FioTarget, volumes: Sequence[int], tools: Tools
    ) -> AsyncIterator[Devices]:
        """Run these commands, and undo them at the end of the block."""
        yield {}

    def host_lacks(self) -> str:
        """Why this host cannot run the engine; empty if it can."""
        return ""


class ImageEngine(FioEngine):
    """An engine that loads the images of a pool."""

    __slots__ = ()
    needs: ClassVar[Mapping[str, str]] = {"pool": "the pool of the images"}
    on_images = True
