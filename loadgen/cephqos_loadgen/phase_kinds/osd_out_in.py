"""osd_out: an OSD is marked down and out, and kept from coming back; osd_in: it comes back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster import upmaps
from cephqos_loadgen.cluster.undo import Undo, command
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.model import Phase
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.reading import read_osd
from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class OsdResult(PhaseResult):
    """Which OSD it was."""

    osd: int


class OsdOutResult(OsdResult):
    """Of `osd_out`."""

    __slots__ = ()
    kind: ClassVar[str] = "osd_out"
    version: ClassVar[int] = 1


class OsdInResult(OsdResult):
    """Of `osd_in`."""

    __slots__ = ()
    kind: ClassVar[str] = "osd_in"
    version: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class _OsdPhase(PhaseKind):
    """`last`: the OSD with the highest id."""

    osd: str = "last"

    @property
    def moves_data(self) -> bool:
        return True

    @classmethod
    def read(cls, value: Value) -> Self:
        return cls(read_osd(value))

    async def _look(self, context: Context) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The map, and the OSD in it."""
        osd = await context.cluster.find_osd(self.osd)
        dump: Mapping[str, Any] = await context.cluster.command("osd dump")
        return dump, next(entry for entry in dump["osds"] if entry["osd"] == osd)


class OsdOut(_OsdPhase):
    """An OSD is marked down and out, and kept from coming back."""

    __slots__ = ()
    result: ClassVar[type[PhaseResult]] = OsdOutResult

    def describe(self) -> str:
        return f"OSD {self.osd} down and out"

    def expected_seconds(self) -> float | None:
        return 15.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["ceph", "osd", "set-group", "noup", f"osd.{self.osd}"]
        yield ["ceph", "osd", "down", self.osd]
        yield ["ceph", "osd", "out", self.osd]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdOutResult:
        """Its process lives on: its own noup flag tells it to stay away."""
        dump, entry = await self._look(context)
        osd = int(entry["osd"])
        name = f"osd.{osd}"
        send = context.cluster.command
        steps = way_back(entry)
        if placed := await upmaps.at_stake(context.cluster, dump, osd):
            steps.insert(0, placed_again(placed))
        for undo in steps:
            await context.journal.push(undo)
        await send("osd set-group", flags="noup", who=[name])
        await send("osd down", ids=[str(osd)])
        await send("osd out", ids=[str(osd)])
        await context.cluster.wait_for_osd(osd, up=False)
        await wait_for(end)
        return OsdOutResult(osd)


class OsdIn(_OsdPhase):
    """The OSD comes back up and in."""

    __slots__ = ()
    result: ClassVar[type[PhaseResult]] = OsdInResult

    def lacks(self, before: Sequence[Action], pools: Mapping[str, PlannedPool]) -> str:
        """An OSD that nobody took out would be said to have come back."""
        out = any(isinstance(it, OsdOut) and it.osd == self.osd for it in before)
        return "" if out else f"a phase osd_out of OSD {self.osd}"

    def describe(self) -> str:
        return f"OSD {self.osd} up and in"

    def expected_seconds(self) -> float | None:
        return 1.0

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield ["ceph", "osd", "unset-group", "noup", f"osd.{self.osd}"]
        yield ["ceph", "osd", "in", self.osd]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdInResult:
        _, entry = await self._look(context)
        osd = int(entry["osd"])
        command = context.cluster.command
        if not (entry["up"] and entry["in"]) and back_in(osd) not in context.journal.entries:
            raise RunError(f"osd.{osd} is down or out, and not by this run: it is left as it is")
        await command("osd unset-group", flags="noup", who=[f"osd.{osd}"])
        await command("osd in", ids=[str(osd)])
        await context.cluster.wait_for_osd(osd, up=True)
        await wait_for(end)
        return OsdInResult(osd)


def back_in(osd: int) -> Undo:
    return command(f"ceph osd in {osd}", "osd in", ids=[str(osd)])


def placed_again(placed: upmaps.Upmaps) -> Undo:
    """Once it is in: upmaps to an OSD that is out are removed at once."""
    return Undo("upmaps", "; ".join(upmaps.lines(placed)), dict(placed))


def way_back(entry: Mapping[str, Any]) -> list[Undo]:
    """What brings an OSD back, last step first; RunError for one that is not up and in.

    `ceph osd in` may give it a weight of 1: one that was less is set again after it. So is a flag
    `noup` that the OSD had while it was up.
    """
    osd, weight = int(entry["osd"]), float(entry["weight"])
    name = f"osd.{osd}"
    if not (entry["up"] and entry["in"]):
        raise RunError(f"{name} is not up and in: the scenario takes down one that is")
    # Monitors keep 65536ths, and cut off what is below: half of one more finds the same again.
    again = round(weight + 5e-6, 6)
    reweight = f"ceph osd reweight {osd} {again}"
    shown = f"ceph osd unset-group noup {name}"
    kept = command(f"ceph osd set-group noup {name}", "osd set-group", flags="noup", who=[name])
    return [
        *([kept] if "noup" in entry.get("state", ()) else []),
        *([command(reweight, "osd reweight", id=osd, weight=again)] if weight != 1 else []),
        back_in(osd),
        command(shown, "osd unset-group", flags="noup", who=[name]),
    ]
