"""rados bench: object reads and writes, one instance per pool."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.engines.rados_bench import bench_argv
from cephqos_loadgen.load.clients import ClientProcess, run_clients
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.followers import BenchFollower
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.load.step import step_of
from cephqos_loadgen.plan.action import Action, Ending
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.place import ProgramPaths, pinned, whole_seconds
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_cpus, read_pool_name
from cephqos_loadgen.plan.words import count, size
from cephqos_loadgen.results.phase import LoadResult, PhaseResult, Step

_Op = Literal["write", "seq", "rand"]
_WORDS: dict[_Op, str] = {"write": "writes", "seq": "sequential reads", "rand": "random reads"}


@dataclass(frozen=True, slots=True)
class RadosBenchResult(LoadResult):
    """One step; its depth is what is in flight in all, its jobs are the instances by pool."""

    kind: ClassVar[str] = "rados_bench"

    op: str
    object_size_bytes: int
    steps: tuple[Step, ...]

    @property
    def chosen(self) -> Step:
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class RadosBench(PhaseKind):
    """One `rados bench` per pool, started together; `in_flight` is shared out among them."""

    result: ClassVar[type[PhaseResult]] = RadosBenchResult
    has_clients: ClassVar[bool] = True
    endings: ClassVar[tuple[Ending, ...]] = ("duration",)  # one that is interrupted says nothing

    targets: tuple[str, ...]
    op: _Op
    object_size: int
    in_flight: int
    cpus: tuple[int, ...] = ()

    @classmethod
    def read(cls, value: Value) -> Self:
        keys = ("pools", "op", "size", "in_flight")
        table = value.table((*keys, "cpus"), keys)
        pools = tuple(read_pool_name(item) for item in table["pools"].items())
        if not pools or len(set(pools)) < len(pools):
            table["pools"].fail("pools that are different, at least one")
        return cls(
            targets=pools,
            op=table["op"].choice(tuple(_WORDS)),
            object_size=table["size"].size(1),
            in_flight=table["in_flight"].integer(len(pools), 65536),
            cpus=read_cpus(table["cpus"]) if "cpus" in table else (),
        )

    def describe(self) -> str:
        load = f"{_WORDS[self.op]} of {size(self.object_size)}"
        instances = count(len(self.targets), "instance")
        return f"rados bench, {instances}: {load}, {self.in_flight} in flight in all"

    def pools(self) -> tuple[str, ...]:
        return self.targets

    def missing(self, before: Sequence[Action], pools: Mapping[str, PlannedPool]) -> str:
        """Reads find what rados bench has written with the same size."""
        if self.op == "write":
            return ""
        written: set[str] = set()
        for phase in before:
            if isinstance(phase, RadosBench) and phase.op == "write":
                written |= {*phase.targets} if phase.object_size == self.object_size else set()
        missing = [pool for pool in self.targets if pool not in written]
        if not missing:
            return ""
        return f"a rados_bench that writes {size(self.object_size)} to {', '.join(missing)}"

    def programs(self) -> tuple[str, ...]:
        return ("rados", "taskset") if self.cpus else ("rados",)

    def expected_seconds(self) -> float | None:
        return None

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        return (self.argv(index, place, seconds) for index in range(len(self.targets)))

    def in_flight_of(self, index: int) -> int:
        """The share of one instance; the first ones get one more, where it does not divide."""
        share, remainder = divmod(self.in_flight, len(self.targets))
        return share + (index < remainder)

    def argv(self, index: int, place: ProgramPaths, seconds: float) -> list[str]:
        """The command line of one instance."""
        pool, in_flight = self.targets[index], self.in_flight_of(index)
        argv = bench_argv(pool, self.op, self.object_size, in_flight, place, seconds=seconds)
        return [*pinned(self.cpus), *argv]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> RadosBenchResult:
        seconds = phase.until.at_most
        followers = [
            BenchFollower(
                context, phase.name, pool, self.op, self.object_size, self.in_flight_of(index)
            )
            for index, pool in enumerate(self.targets)
        ]
        processes = [
            ClientProcess(self.argv(index, context.place, seconds), follower)
            for index, follower in enumerate(followers)
        ]
        started = time.time()
        await run_clients(context, phase.name, processes, seconds, None)
        try:
            for follower in followers:
                follower.end()
        except ValueError as error:
            raise RunError(str(error)) from error
        step = step_of(followers, self.in_flight, started, float(whole_seconds(seconds)))
        return RadosBenchResult(self.op, self.object_size, (step,))
