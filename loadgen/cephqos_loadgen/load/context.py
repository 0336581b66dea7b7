"""What the phases of one repeat share."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cephqos_base.errors import UsageError
from cephqos_loadgen.cluster import affinity, this_host
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView
from cephqos_loadgen.cluster.settings import ClusterSettings, SettingsReader
from cephqos_loadgen.cluster.steps.host import ImageMapped, cpus_step, mapped
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.live.state import Live
from cephqos_loadgen.load.cluster_watch import ClusterWatch
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase, Point
from cephqos_loadgen.pools.pools import Pools
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder


@dataclass(slots=True)
class Marks:
    """When a phase started and ended: other phases wait for these."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    start_time: float = 0.0
    succeeded: bool = False  # it ended without an error


class Sightings:
    """When something, such as a scrub, was last seen under way. Other phases wait until it is seen
    after a certain time."""

    def __init__(self) -> None:
        self._last = 0.0
        self._changed = asyncio.Condition()

    async def seen(self) -> None:
        self._last = time.time()
        async with self._changed:
            self._changed.notify_all()

    async def after(self, since: float) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._last > since)


# Writes down that this host's kernel maps an image of a pool; `Hands.will_map` is one.
WillMap = Callable[[str, str], Awaitable[None]]
# Gives daemons of this host their CPUs, by the daemon's name; `Hands.pin` is one.
Pin = Callable[[Mapping[str, affinity.Cpus]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Hands:
    """All that can change the cluster. Only the phase runner has it: a phase declares its changes
    and is given a `Context`, which can change nothing but what is pinned."""

    cluster: ClusterConnection
    journal: Journal
    settings: ClusterSettings

    async def pin(self, plan: Mapping[str, affinity.Cpus]) -> None:
        """Pin daemons to CPUs; the journal gets how to undo each first."""
        pids = await self.cluster.pids()
        for daemon, cpus in plan.items():
            if daemon not in pids:
                raise UsageError(f"{daemon} is not a process of this host: it cannot be pinned")
            pid = pids[daemon]
            threads = affinity.read_threads(pid)
            before = affinity.ProcessCpus.of(pid, threads)
            await self.journal.push(cpus_step(before, cpus))
            affinity.pin(daemon, pid, threads, cpus)

    async def will_map(self, pool: str, image: str) -> None:
        """The journal gets how to unmap an image, before the kernel maps it."""
        pools = (await self.cluster.command("osd dump"))["pools"]
        number = next(int(entry["pool"]) for entry in pools if entry["pool_name"] == pool)
        present = tuple(mapped(self.cluster.fsid, number, image))
        host, boot = this_host.name(), this_host.boot()
        step = ImageMapped(host, boot, pool=pool, pool_id=number, image=image, present=present)
        if step not in self.journal.entries:
            await self.journal.push(step)


@dataclass(slots=True)
class Context:
    """One repeat of one point. Through it a phase can look at the cluster, and not change it."""

    cluster: ClusterView
    place: ProgramPaths
    point: Point
    settings: SettingsReader
    pin: Pin
    will_map: WillMap
    pools: Pools
    recorder: RepeatRecorder
    live: Live
    watcher: ClusterWatch
    started: float = field(default_factory=time.time)
    marks: dict[str, Marks] = field(default_factory=dict)
    scrubs: Sightings = field(default_factory=Sightings)
    # by phase: (time, IOPS of all its clients) per interval, for steady states
    rates: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    # by step of a curve: what the host used during it
    steps: dict[str, HostUse] = field(default_factory=dict)
    # disks below the OSDs of this host; None until they are looked for
    osd_disks: list[str] | None = None
    # when a phase that moves data last started: recovery is looked for from then on
    data_moved: float = 0.0

    def __post_init__(self) -> None:
        self.marks = {phase.name: Marks() for phase in self.point.phases}

    def phase_before(self, phase: Phase) -> Phase:
        """The phase that the scenario has before this one."""
        place = self.point.phases.index(phase)
        if place == 0:  # `_read_start` refuses a first phase that waits for an event
            raise ValueError(f"no phase is before {phase.name}")
        return self.point.phases[place - 1]


@asynccontextmanager
async def beside(*work: asyncio.Task[None]) -> AsyncIterator[None]:
    """Cancel these tasks when the block ends. If one failed by itself, the block fails with it."""
    try:
        yield
    finally:
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work)
    for task in work:
        if not task.cancelled():
            task.result()
