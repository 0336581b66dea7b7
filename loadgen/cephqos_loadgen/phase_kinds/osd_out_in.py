"""osd_out: an OSD is marked down and out, and kept from coming back; osd_in: it comes back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.cluster import upmaps
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.restarts import why_not_stop
from cephqos_loadgen.cluster.steps.osds import OsdAway, upmap_steps
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Change, ceph
from cephqos_loadgen.load.context import Context, Hands
from cephqos_loadgen.load.kind import End, PhaseKind, wait_for
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_osd
from cephqos_loadgen.pools.free_space import why_no_room
from cephqos_loadgen.results.phase import PhaseResult

_PLACE: Final = "which OSDs are up and in"


@dataclass(frozen=True, slots=True)
class OsdResult(PhaseResult):
    """Which OSD it was."""

    osd: int


class OsdOutResult(OsdResult):
    """Which OSD a phase `osd_out` took out."""

    __slots__ = ()
    kind: ClassVar[str] = "osd_out"


class OsdInResult(OsdResult):
    """Which OSD a phase `osd_in` took back."""

    __slots__ = ()
    kind: ClassVar[str] = "osd_in"


@dataclass(frozen=True, slots=True)
class _OsdPhase(PhaseKind):
    """What both kinds share."""

    osd: str = "last"  # an id, or `last`: the OSD with the highest id

    @property
    def moves_data(self) -> bool:
        return True

    @classmethod
    def read(cls, value: Value) -> Self:
        return cls(read_osd(value))

    async def found_in(self, cluster: ClusterView) -> Self:
        return replace(self, osd=str(await cluster.find_osd(self.osd)))

    async def _look(self, cluster: ClusterView) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The OSD map, and the entry of this OSD in it."""
        dump: Mapping[str, Any] = await cluster.command("osd dump")
        return dump, next(entry for entry in dump["osds"] if entry["osd"] == int(self.osd))


class OsdOut(_OsdPhase):
    """An OSD is marked down and out, and kept from coming back."""

    __slots__ = ()
    result: ClassVar[type[PhaseResult]] = OsdOutResult
    takes_osds_down: ClassVar[bool] = True
    can_take_back: ClassVar[bool] = True

    def describe(self) -> str:
        return f"OSD {self.osd} down and out"

    def expected_seconds(self) -> float | None:
        return 15.0

    def changes(self) -> Sequence[Change]:
        """Its process lives on: a flag noup of this OSD keeps it from coming up."""
        keep_down = ceph("osd set-group", flags="noup", who=[f"osd.{self.osd}"])
        steps = [keep_down, ceph("osd down", ids=[self.osd]), ceph("osd out", ids=[self.osd])]
        return [Change(_PLACE, steps, self._way_back)]

    async def before_repeat(self, hands: Hands, pools: Collection[str]) -> None:
        osd = int((await self.found_in(hands.cluster)).osd)
        await _check_holds_some(hands.cluster, osd, pools)
        await hands.cluster.wait_to_mark_down(osd)

    async def _way_back(
        self, cluster: ClusterView, written: Collection[StepBack]
    ) -> Sequence[StepBack]:
        dump, entry = await self._look(cluster)
        if not cluster.access.at_once and (no := await why_not_stop(cluster, [int(self.osd)])):
            raise RunError(f"Ceph says that osd.{self.osd} must not stop now: {no}")
        if not cluster.access.at_once and (no := await why_no_room(cluster, dump, int(self.osd))):
            raise RunError(f"{no}: free some room, or name another OSD")
        lost_upmaps = await upmaps.at_stake(cluster, dump, int(self.osd))
        return [*upmap_steps(lost_upmaps), way_back(entry)]

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdOutResult:
        await context.cluster.wait_for_osd(int(self.osd), up=False)
        await wait_for(end)
        return OsdOutResult(int(self.osd))


class OsdIn(_OsdPhase):
    """The OSD comes back up and in."""

    __slots__ = ()
    result: ClassVar[type[PhaseResult]] = OsdInResult

    def missing(self, before: Sequence[Action], pools: Mapping[str, PlannedPool]) -> str:
        """An earlier `osd_out`: without one the report would say that an OSD came back."""
        is_out = any(isinstance(phase, OsdOut) and phase.osd == self.osd for phase in before)
        return "" if is_out else f"a phase osd_out of OSD {self.osd}"

    def describe(self) -> str:
        return f"OSD {self.osd} up and in"

    def expected_seconds(self) -> float | None:
        return 1.0

    def changes(self) -> Sequence[Change]:
        let_up = ceph("osd unset-group", flags="noup", who=[f"osd.{self.osd}"])
        return [Change(_PLACE, [let_up, ceph("osd in", ids=[self.osd])], self._written_by_osd_out)]

    async def _written_by_osd_out(
        self, cluster: ClusterView, written: Collection[StepBack]
    ) -> Sequence[StepBack]:
        """Nothing more: `osd_out` has written how the OSD comes back. RunError if it has not."""
        _, entry = await self._look(cluster)
        ours = any(isinstance(step, OsdAway) and step.osd == int(self.osd) for step in written)
        if not (entry["up"] and entry["in"]) and not ours:
            raise RunError(
                f"osd.{self.osd} is down or out, and not by this run: it is left as it is"
            )
        return ()

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> OsdInResult:
        await context.cluster.wait_for_osd(int(self.osd), up=True)
        await wait_for(end)
        return OsdInResult(int(self.osd))


async def _check_holds_some(cluster: ClusterView, osd: int, pools: Collection[str]) -> None:
    """RunError if the OSD has nothing of these pools: data of others would move, and none of the
    run's."""
    dump = await cluster.command("osd dump")
    ours = {int(pool["pool"]) for pool in dump["pools"] if pool["pool_name"] in pools}
    here = await cluster.command("pg ls-by-osd", target="mgr", osd=osd)
    held = {int(group["pgid"].partition(".")[0]) for group in here["pg_stats"]}
    if ours and not ours & held:
        raise RunError(
            f"osd.{osd} has no placement group of {', '.join(sorted(pools))}: taking it out would"
            " move data of others only. Name an OSD that has some: osd_out: {osd: N}"
        )


def way_back(entry: Mapping[str, Any]) -> OsdAway:
    """What brings an OSD back; RunError for one that is not up and in."""
    if not (entry["up"] and entry["in"]):
        raise RunError(f"osd.{entry['osd']} is not up and in: the scenario takes down one that is")
    noup = "noup" in entry.get("state", ())
    return OsdAway(int(entry["osd"]), float(entry["weight"]), noup)
