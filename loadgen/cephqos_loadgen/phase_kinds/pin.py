"""pin: OSDs pinned to CPUs by a strategy; with `apply: false` only the placement is recorded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.errors import UsageError
from cephqos_base.units import format_cpu_list
from cephqos_base.yamlfile import Value
from cephqos_loadgen import processes
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.plan.action import WORK, Ending
from cephqos_loadgen.plan.cpu_placement import LSCPU, STRATEGIES, Cpu, parse_lscpu, place_osds
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_cpus, read_integer
from cephqos_loadgen.plan.words import count
from cephqos_loadgen.results.phase import PhaseResult

_LSCPU_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class PinResult(PhaseResult):
    """CPUs by OSD, and whether they were applied. `as_default`: on this host the strategy comes to
    the same CPUs as `default`."""

    kind: ClassVar[str] = "pin"

    strategy: str
    cpus: Mapping[str, tuple[int, ...]]
    applied: bool
    as_default: bool = False

    def findings(self) -> tuple[str, ...]:
        if not self.as_default:
            return ()
        no_effect = (
            "gives the OSDs the same CPUs as default on this host: there is nothing to compare"
        )
        return (f"strategy {self.strategy} {no_effect}",)


@dataclass(frozen=True, slots=True)
class Pin(PhaseKind):
    """OSDs pinned to CPUs until the end of the repeat; or only the plan of it."""

    result: ClassVar[type[PhaseResult]] = PinResult
    endings: ClassVar[tuple[Ending, ...]] = WORK

    strategy: str
    cpus_per_osd: int
    apply: bool = True
    exclude: tuple[int, ...] = ()

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("strategy", "cpus_per_osd", "apply", "exclude"), ("strategy",))
        return cls(
            strategy=table["strategy"].choice(STRATEGIES),
            cpus_per_osd=read_integer(table, "cpus_per_osd", 1, 64),
            apply=table["apply"].boolean() if "apply" in table else True,
            exclude=read_cpus(table["exclude"]) if "exclude" in table else (),
        )

    def describe(self) -> str:
        without = f", never to CPUs {format_cpu_list(self.exclude)}" if self.exclude else ""
        each = count(self.cpus_per_osd, "CPU")
        return f"OSDs pinned, {each} each, strategy {self.strategy}{without}"

    @property
    def needs_osds_here(self) -> bool:
        return self.apply

    def expected_seconds(self) -> float | None:
        return 1.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["taskset", "--all-tasks", "--cpu-list", "--pid", "CPUS", "PID"]

    def on_this_host(self, osds: int, cpus: Sequence[Cpu]) -> list[str]:
        """Where each OSD would go, or why that cannot be."""
        try:
            placed = self._place(cpus, range(osds))
        except UsageError as error:
            return [f"cannot be: {error}"]
        verb = "pin" if self.apply else "would pin"
        return [
            f"{verb} osd.{osd} to CPUs {format_cpu_list(of_osd)}" for osd, of_osd in placed.items()
        ]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> PinResult:
        """Place the OSDs, and note where in the archive; pin them only if `apply` says so."""
        osds = sorted(await context.cluster.osds())
        cpus = await cpus_of_this_host()
        placed = self._place(cpus, osds)
        default = place_osds(cpus, osds, "default", self.cpus_per_osd, self.exclude)
        plan = {f"osd.{osd}": cpus for osd, cpus in placed.items()}
        without = format_cpu_list(self.exclude)
        context.recorder.event("placement", strategy=self.strategy, plan=plan, excluded=without)
        if self.apply:
            await context.pin(plan)
        as_default = self.strategy != "default" and placed == default
        return PinResult(self.strategy, plan, self.apply, as_default)

    def _place(self, cpus: Sequence[Cpu], osds: Sequence[int]) -> dict[int, tuple[int, ...]]:
        return place_osds(cpus, osds, self.strategy, self.cpus_per_osd, self.exclude)


async def cpus_of_this_host() -> list[Cpu]:
    listed = await processes.run(list(LSCPU), within=_LSCPU_SECONDS)
    return parse_lscpu(listed.stdout)
