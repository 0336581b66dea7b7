"""settle: wait until placement groups are active, and clean too unless the scenario says
otherwise."""

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


class SettleResult(TimedResult):
    """How long a phase `settle` took."""

    __slots__ = ()
    kind: ClassVar[str] = "settle"


@dataclass(frozen=True, slots=True)
class Settle(PhaseKind):
    """Wait until every placement group is active (and clean, unless `clean` is false)."""

    result: ClassVar[type[PhaseResult]] = SettleResult

    clean: bool = True

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("clean",))
        return cls(table["clean"].boolean() if "clean" in table else True)

    def describe(self) -> str:
        return f"wait until all is active{' and clean' if self.clean else ''}"

    def expected_seconds(self) -> float | None:
        return 15.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["ceph", "pg", "stat"]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> SettleResult:
        # Of its own pools only: with an OSD out, others may have too few OSDs left to be clean.
        started = time.monotonic()
        pools = [pool.name for pool in context.point.pools]
        within = phase.until.at_most
        await context.cluster.wait_for_pgs(clean=self.clean, within=within, pools=pools)
        settled = time.monotonic() - started
        await wait_for(end)
        return SettleResult(settled)
