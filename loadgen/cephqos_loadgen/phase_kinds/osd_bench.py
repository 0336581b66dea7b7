"""osd_bench: `ceph tell osd.N bench` on every OSD, one after the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster.capacity_bench import OBJECT_SIZE, OBJECTS, bench
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.plan.action import WORK, Ending
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.results.phase import PhaseResult
from cephqos_loadgen.results.repeat import BenchFigures


@dataclass(frozen=True, slots=True)
class OsdBenchResult(PhaseResult):
    """Figures by OSD."""

    kind: ClassVar[str] = "osd_bench"

    osds: Mapping[str, BenchFigures]

    def headline(self) -> Mapping[str, float]:
        return {f"{osd}_iops": figures.iops for osd, figures in self.osds.items()}


@dataclass(frozen=True, slots=True)
class OsdBench(PhaseKind):
    """Every OSD writes and removes data of its own, one OSD after the other."""

    result: ClassVar[type[PhaseResult]] = OsdBenchResult
    endings: ClassVar[tuple[Ending, ...]] = WORK

    total: int
    block_size: int

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("total", "bs"), ("total", "bs"))
        block_size = table["bs"].size(512)
        return cls(table["total"].size(block_size), block_size)

    def describe(self) -> str:
        return f"bench of each OSD, {size(self.total)} in writes of {size(self.block_size)}"

    def expected_seconds(self) -> float | None:
        return 15.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        numbers = (self.total, self.block_size, OBJECT_SIZE, OBJECTS)
        yield ["ceph", "tell", "osd.*", "bench", *map(str, numbers)]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdBenchResult:
        results = {}
        for osd in await context.cluster.up_osds():
            results[f"osd.{osd}"] = await bench(context.cluster, osd, self.total, self.block_size)
        return OsdBenchResult(results)
