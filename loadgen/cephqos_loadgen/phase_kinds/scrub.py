"""scrub: every placement group of a pool is asked to scrub."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster.connection import Query
from cephqos_loadgen.live.state import LiveScrub
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.plan.action import WORK, Action, Ending
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_pool_name
from cephqos_loadgen.results.phase import PhaseResult

_LOOK_SECONDS = 1.0
# A request can be lost, if a placement group is not active just then. After this time it is sent
# again for groups that have not been scrubbed: the others would be scrubbed again, before them.
_ASK_AGAIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ScrubResult(PhaseResult):
    """The whole scrub. `scrubbing_at_once`: the most placement groups that were seen scrubbing at
    the same time."""

    kind: ClassVar[str] = "scrub"

    placement_groups: int
    objects: int
    bytes: int
    seconds: float
    scrubbing_at_once: int

    def headline(self) -> Mapping[str, float]:
        return {"objects_scrubbed": float(self.objects), "seconds": self.seconds}

    @property
    def objects_per_second(self) -> float:
        return self.objects / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds


@dataclass(frozen=True, slots=True)
class Scrub(PhaseKind):
    """Every placement group of a pool is asked to scrub."""

    result: ClassVar[type[PhaseResult]] = ScrubResult
    scrubs: ClassVar[bool] = True
    endings: ClassVar[tuple[Ending, ...]] = (*WORK, "scrub_done")

    pool: str
    deep: bool = True

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("pool", "deep"), ("pool",))
        deep = table["deep"].boolean() if "deep" in table else True
        return cls(read_pool_name(table["pool"]), deep)

    @property
    def _command(self) -> Query:
        return "osd pool deep-scrub" if self.deep else "osd pool scrub"

    def describe(self) -> str:
        return f"{'deep scrub' if self.deep else 'scrub'} of pool {self.pool}"

    def pools(self) -> tuple[str, ...]:
        return (self.pool,)

    def missing(self, before: Sequence[Action], pools: Mapping[str, PlannedPool]) -> str:
        pool = pools[self.pool]
        written_to = (name for action in before if not action.scrubs for name in action.pools())
        filled = pool.images or pool.objects or self.pool in written_to
        return "" if filled else f"images or objects in pool {self.pool}"

    def expected_seconds(self) -> float | None:
        return 15.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["ceph", *self._command.split(), self.pool]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> ScrubResult:
        """Ask for a scrub, and follow it until every placement group has a new stamp."""
        stamp = "last_deep_scrub_stamp" if self.deep else "last_scrub_stamp"
        before = {pg["pgid"]: pg[stamp] for pg in await self._groups(context)}
        started = last_asked = time.time()
        began = time.monotonic()  # for the length, which a change of the clock must not alter
        await self._ask(context)
        most_at_once = 0
        while True:
            groups = await self._groups(context)
            done = [pg for pg in groups if pg[stamp] != before.get(pg["pgid"])]
            under_way = [pg for pg in groups if "scrubbing" in pg["state"]]
            most_at_once = max(most_at_once, len(under_way))
            if done or under_way:
                await context.scrubs.seen()
            partly = sum(int(pg.get("objects_scrubbed", 0)) for pg in under_way if pg not in done)
            scrubbed, total = sum(map(_objects, done)) + partly, sum(map(_objects, groups))
            context.live.scrub = LiveScrub(phase.name, scrubbed, total - scrubbed, started)
            remaining = [pg["pgid"] for pg in groups if pg not in done]
            if not remaining:
                break
            if time.time() - last_asked > _ASK_AGAIN_SECONDS and not under_way:
                context.recorder.event("scrub_asked_again", left=remaining)
                await self._ask_again(context, remaining)
                last_asked = time.time()
            await asyncio.sleep(_LOOK_SECONDS)
        stored = sum(int(pg["stat_sum"]["num_bytes"]) for pg in groups)
        return ScrubResult(len(groups), total, stored, time.monotonic() - began, most_at_once)

    async def _groups(self, context: Context) -> list[dict[str, Any]]:
        reply = await context.cluster.command("pg ls-by-pool", target="mgr", poolstr=self.pool)
        stats: list[dict[str, Any]] = reply["pg_stats"]
        return stats

    async def _ask(self, context: Context) -> None:
        await context.cluster.command(self._command, target="mgr", who=[self.pool])

    async def _ask_again(self, context: Context, groups: list[str]) -> None:
        command: Query = "pg deep-scrub" if self.deep else "pg scrub"
        for pgid in groups:
            await context.cluster.command(command, target="mgr", pgid=pgid)


def _objects(pg: dict[str, Any]) -> int:
    return int(pg["stat_sum"]["num_objects"])
