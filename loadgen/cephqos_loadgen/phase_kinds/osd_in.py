"""osd_in: an OSD comes back up and in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.phase_kinds.osd_out import back_in
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.model import Phase
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.reading import read_osd
from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class OsdInResult(PhaseResult):
    """Which OSD it was."""

    kind: ClassVar[str] = "osd_in"
    version: ClassVar[int] = 1

    osd: int


@dataclass(frozen=True, slots=True)
class OsdIn(PhaseKind):
    """The OSD comes back up and in. `last`: the highest id."""

    result: ClassVar[type[PhaseResult]] = OsdInResult
    moves_data: ClassVar[bool] = True

    osd: str = "last"

    @classmethod
    def read(cls, value: Value) -> Self:
        return cls(read_osd(value))

    def describe(self) -> str:
        return f"OSD {self.osd} up and in"

    def expected_seconds(self) -> float | None:
        return 1.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["ceph", "osd", "unset-group", "noup", f"osd.{self.osd}"]
        yield ["ceph", "osd", "in", self.osd]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdInResult:
        osd = await context.cluster.find_osd(self.osd)
        command = context.cluster.command
        dump = await command("osd dump")
        entry = next(entry for entry in dump["osds"] if entry["osd"] == osd)
        if not (entry["up"] and entry["in"]) and back_in(osd) not in context.journal.entries:
            raise RunError(f"osd.{osd} is down or out, and not by this run: it is left as it is")
        await command("osd unset-group", flags="noup", who=[f"osd.{osd}"])
        await command("osd in", ids=[str(osd)])
        await context.cluster.wait_for_osd(osd, up=True)
        await wait_for(end)
        return OsdInResult(osd)
