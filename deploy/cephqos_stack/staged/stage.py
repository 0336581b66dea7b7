"""A stage: one lab during one situation, and how what happened there is undone."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.staged.situation import Situation, StagedAction

FRESH: Final = count()  # numbers for names that must not repeat
GRACE: Final = 120.0  # seconds for the last operations of a bench on a very slow or busy device
_LONGER = 600.0  # seconds that loads last beyond the situation: staging may take minutes
_CLEAN_WITHIN = 300.0  # seconds until all placement groups are clean


class StagedLab:
    """A lab, and its options."""

    def __init__(self, lab: RunningLab) -> None:
        self.lab = lab

    async def config(self, option: str, value: object, who: str = "osd") -> None:
        await self.lab.exec(["ceph", "config", "set", who, option, str(value)])

    async def unset(self, option: str, who: str = "osd") -> None:
        await self.lab.exec(["ceph", "config", "rm", who, option])


@dataclass
class Stage:
    """What happens to one lab during one situation, and how it is undone."""

    on: StagedLab
    situation: Situation
    turn: int  # is added to the numbers of OSDs, so that each of them fails once
    pool: str
    staged: float = 0.0  # time of the last fault
    noisy: str = ""  # id of the image that has to be named as the one with most of the work
    undo: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)  # the last comes first
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)  # the loads

    @property
    def load_seconds(self) -> float:
        """So long that `close` ends the loads: a load that ends before would spoil the verdict."""
        return self.situation.seconds + self.situation.stay + _LONGER

    def osd(self, action: StagedAction) -> int:
        """The OSD of a fault; 1 if its file names none."""
        return int((int(action.options.get("osd", 1)) + self.turn) % self.situation.cluster.osds)

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def bench(self, seconds: float, *what: str, pool: str = "", name: str = "") -> None:
        """Run rados bench."""
        argv = ["rados", "-p", pool or self.pool, "bench", f"{seconds:g}", *what]
        argv += ["--run-name", name or f"r{next(FRESH)}-{os.getpid()}"]
        if what[0] == "write":
            argv += ["--no-cleanup"]
        await self.client(argv, seconds + GRACE)

    async def client(self, argv: Sequence[str], within: float) -> None:
        """Run a program of a load. A fault may break it off: the situation does not fail by it."""
        await self.on.lab.exec(argv, within=within, check=False)

    async def close(self) -> None:
        """End faults first, then loads. If one step fails, the others are still done."""
        failed: Exception | None = None
        for step in reversed(self.undo):
            try:
                await step()
            except (CephqosError, OSError, TimeoutError) as error:
                failed = failed or error
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if failed is not None:
            raise failed


async def clean(on: StagedLab) -> bool:
    """Whether all OSDs are up and all placement groups active+clean."""
    try:
        done = await on.lab.exec(["ceph", "status", "--format", "json"])
    except LabError:
        return False
    status = json.loads(done.stdout)
    states = {entry["state_name"] for entry in status["pgmap"].get("pgs_by_state", ())}
    up = status["osdmap"]["num_up_osds"] == on.lab.spec.osds
    return bool(up) and all(state.startswith("active+clean") for state in states)


async def wait_until_clean(on: StagedLab) -> None:
    async with asyncio.timeout(_CLEAN_WITHIN):
        while not await clean(on):  # noqa: ASYNC110 - only Ceph knows when
            await asyncio.sleep(0.2)
