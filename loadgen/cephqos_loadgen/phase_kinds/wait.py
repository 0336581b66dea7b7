"""wait: nothing is done, the cluster is watched."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.results.phase import PhaseResult, TimedResult


class WaitResult(TimedResult):
    """How long a phase `wait` took."""

    __slots__ = ()
    kind: ClassVar[str] = "wait"


@dataclass(frozen=True, slots=True)
class Wait(PhaseKind):
    """Nothing: the cluster is watched."""

    result: ClassVar[type[PhaseResult]] = WaitResult

    @classmethod
    def read(cls, value: Value) -> Self:
        value.table(())
        return cls()

    def describe(self) -> str:
        return "watch"

    def expected_seconds(self) -> float | None:
        return None

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        return iter(())

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> WaitResult:
        started = time.monotonic()
        await wait_for(end)
        return WaitResult(time.monotonic() - started)
