"""change: settings changed during the run, and taken back at the end of the repeat or phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_options
from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class ChangeResult(PhaseResult):
    """What the daemons said afterwards: option and value, by daemon."""

    kind: ClassVar[str] = "change"

    in_force: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ChangeSettings(PhaseKind):
    """Settings changed during the run."""

    result: ClassVar[type[PhaseResult]] = ChangeResult
    steers_data: ClassVar[bool] = True
    can_take_back: ClassVar[bool] = True

    options: tuple[CephOption, ...] = ()

    @classmethod
    def read(cls, value: Value) -> Self:
        options = read_options(value)
        if not options:
            value.fail("settings to change", "none")
        return cls(options)

    @property
    def moves_data(self) -> bool:
        return True

    def describe(self) -> str:
        return ", ".join(f"{o.section} {o.name} = {o.value}" for o in self.options)

    def expected_seconds(self) -> float | None:
        return 1.0

    def settings(self) -> tuple[CephOption, ...]:
        return self.options

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> ChangeResult:
        in_force = await context.settings.verify(self.options)
        await wait_for(end)
        return ChangeResult(in_force)
