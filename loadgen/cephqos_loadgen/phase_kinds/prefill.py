"""prefill: objects written into a pool while the scenario runs."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.engines.rados_bench import prefill_argv
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.plan.action import WORK, Ending
from cephqos_loadgen.plan.estimate import objects_seconds
from cephqos_loadgen.plan.parts import Objects
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_objects, read_pool_name
from cephqos_loadgen.plan.words import objects
from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class PrefillResult(PhaseResult):
    """What was written, and in what time."""

    kind: ClassVar[str] = "prefill"

    objects: int
    seconds: float

    def headline(self) -> Mapping[str, float]:
        return {"objects": float(self.objects), "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Prefill(PhaseKind):
    """Objects written into a pool while the scenario runs."""

    result: ClassVar[type[PhaseResult]] = PrefillResult
    endings: ClassVar[tuple[Ending, ...]] = WORK

    pool: str
    content: Objects

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("pool", "objects"), ("pool", "objects"))
        return cls(read_pool_name(table["pool"]), read_objects(table["objects"]))

    def describe(self) -> str:
        return f"{objects(self.content)} into pool {self.pool}"

    def pools(self) -> tuple[str, ...]:
        return (self.pool,)

    def programs(self) -> tuple[str, ...]:
        return ("rados",)

    def expected_seconds(self) -> float | None:
        return objects_seconds(self.content) + 2

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        name, content = f"{self.pool}.0", self.content
        yield prefill_argv(
            self.pool, content.count, content.size, place, name=name, seconds=seconds
        )

    def writes(self) -> Mapping[str, Objects]:
        return {self.pool: self.content}

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> PrefillResult:
        started = time.monotonic()
        await context.pools.fill_objects(self.pool, self.content, phase.until.at_most)
        return PrefillResult(self.content.count, time.monotonic() - started)
