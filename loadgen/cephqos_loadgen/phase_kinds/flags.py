"""flags: cluster flags set or cleared, such as norecover."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster.steps.options import HOLDING_DATA
from cephqos_loadgen.cluster.undo import Change, flag
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_flags
from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class FlagsResult(PhaseResult):
    """The flags that were set and cleared."""

    kind: ClassVar[str] = "flags"

    set: tuple[str, ...]
    cleared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flags(PhaseKind):
    """Cluster flags set or cleared."""

    result: ClassVar[type[PhaseResult]] = FlagsResult
    can_take_back: ClassVar[bool] = True

    set: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("set", "clear"))
        to_set = read_flags(table["set"]) if "set" in table else ()
        clear = read_flags(table["clear"]) if "clear" in table else ()
        if not to_set and not clear:
            value.fail("flags to set or to clear", "none")
        if in_both := sorted({*to_set} & {*clear}):
            value.fail("flags to set or to clear, not both", ", ".join(in_both))
        return cls(to_set, clear)

    @property
    def moves_data(self) -> bool:
        return not HOLDING_DATA.isdisjoint(self.clear)

    def describe(self) -> str:
        return ", ".join([f"set {name}" for name in self.set] + [f"unset {f}" for f in self.clear])

    def expected_seconds(self) -> float | None:
        return 1.0

    def changes(self) -> Sequence[Change]:
        sets = [flag(name, on=True) for name in self.set]
        return [*sets, *(flag(name, on=False) for name in self.clear)]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> FlagsResult:
        await wait_for(end)
        return FlagsResult(self.set, self.clear)
