"""A kind of phase that changes the cluster without a way back does not pass mypy."""

import re
from pathlib import Path

from mypy import api

# Each wrong line says what mypy must call it. The class around them is a kind that is right.
SNIPPET = """\
from collections.abc import Collection, Sequence
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.restarts import restart
from cephqos_loadgen.cluster.steps.options import FlagChanged
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Change, ceph
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.phase_kinds.registry import _by_name
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.results.phase import PhaseResult


class LighterResult(PhaseResult):
    kind: ClassVar[str] = "lighter"


class Lighter(PhaseKind):
    result: ClassVar[type[PhaseResult]] = LighterResult

    @classmethod
    def read(cls, value: Value) -> Self:
        return cls()

    def describe(self) -> str:
        return "osd.0 gets half"

    def expected_seconds(self) -> float | None:
        return 1.0

    def changes(self) -> Sequence[Change]:
        half = ceph("osd reweight", id=0, weight=0.5)
        Change("weight", [half])  # wrong: call-arg
        Change([half], self.back)  # wrong: call-arg
        Change("weight", [half], undo=None)  # wrong: arg-type
        Change("weight", [half], undo=())  # wrong: arg-type
        return [Change("weight", [half], self.back)]

    async def back(
        self, cluster: ClusterView, written: Collection[StepBack]
    ) -> Sequence[StepBack]:
        await cluster.command("osd reweight", id=0, weight=0.5)  # wrong: arg-type
        flags = (await cluster.command("osd dump"))["flags"]
        if "noin" in flags:
            return [ceph("osd set", key="noin")]  # wrong: list-item
        return [FlagChanged("noin", True)]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> LighterResult:
        await context.cluster.command("osd reweight", id=0, weight=0.5)  # wrong: arg-type
        await restart(context.cluster, [0])  # wrong: arg-type
        await context.settings.apply([])  # wrong: attr-defined
        await context.journal.push(FlagChanged("noin", True))  # wrong: attr-defined
        return LighterResult()


class Silent(Lighter):
    async def carry_out(self, context: Context, phase: Phase) -> LighterResult:  # wrong: override
        return LighterResult()


_by_name(Lighter)
_by_name(PhaseKind)  # wrong: type-abstract
"""


def test_a_kind_that_forgets_the_way_back_or_sends_a_change_itself_is_a_type_error(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lighter.py"
    file.write_text(SNIPPET)
    said, errors, status = api.run([str(file), "--config-file", "pyproject.toml", "--no-pretty"])
    assert status == 1, said + errors
    found = {int(n): code for n, code in re.findall(r"lighter.py:(\d+): error: .*\[(.*)\]", said)}
    wrong = {
        number: line.partition("# wrong: ")[2]
        for number, line in enumerate(SNIPPET.splitlines(), 1)
        if "# wrong: " in line
    }
    assert found == wrong, said
