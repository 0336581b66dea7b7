"""OSDs that a run has taken out or restarted, and the upmaps that went with them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cephqos_loadgen.cluster import restarts, upmaps
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.step import (
    StepBack,
    boolean,
    maybe,
    number,
    osd_id,
    part,
    several,
    table,
    word,
)
from cephqos_loadgen.plan.errors import RunError

_PG = word(r"[0-9]{1,12}\.[0-9a-f]{1,8}", "a placement group, such as 1.2f")
_MOST_OSDS = 64  # of an upmap
# So many fit into one step, whatever they are.
PLACEMENTS_PER_STEP = 24
_SAME_WEIGHT = 2 / 65536  # monitors keep weights in 65536ths


@dataclass(frozen=True, slots=True)
class OsdAway(StepBack):
    """An OSD that the run has marked down and out, and kept from coming up."""

    kind: ClassVar[str] = "osd"

    osd: int = part(osd_id)
    weight: float = part(number(0.0, 1.0))  # before
    noup: bool = part(boolean)  # whether it had this flag before

    @property
    def shown(self) -> str:
        steps = [f"ceph osd unset-group noup osd.{self.osd}", f"ceph osd in {self.osd}"]
        if self.weight != 1:
            steps.append(f"ceph osd reweight {self.osd} {self._weight_to_set}")
        if self.noup:
            steps.append(f"ceph osd set-group noup osd.{self.osd}")
        return " && ".join(steps)

    @property
    def moves_data(self) -> bool:
        return True

    @property
    def _weight_to_set(self) -> float:
        """Monitors round down. A little more gives the same weight again."""
        return min(1.0, round(self.weight + 5e-6, 6))

    async def carry_out(self, cluster: ClusterConnection) -> str:
        name = f"osd.{self.osd}"
        entry = _entry(await cluster.command("osd dump"), self.osd)
        if entry is None:
            return f"{name} was removed by someone else"
        if "noup" in entry.get("state", ()) and not (self.noup and entry["up"]):
            await cluster.command("osd unset-group", flags="noup", who=[name])
        if not entry["in"]:
            await cluster.command("osd in", ids=[str(self.osd)])
            entry = _entry(await cluster.command("osd dump"), self.osd) or entry
        weight = float(entry["weight"])
        left = ""
        if math.isclose(weight, self.weight, abs_tol=_SAME_WEIGHT):
            pass
        elif weight in (0.0, 1.0):  # as `osd in` leaves it
            await cluster.command("osd reweight", id=self.osd, weight=self._weight_to_set)
        else:
            left = f"{name} was given the weight {weight:g} by someone else"
        try:
            # With the flag it cannot come up, and a later step may need it up.
            await cluster.wait_for_osd(self.osd, up=True)
        except RunError as error:
            left = "; ".join(filter(None, (left, f"{error}: look at its log")))
        if self.noup:
            await cluster.command("osd set-group", flags="noup", who=[name])
        return left


def _entry(dump: Mapping[str, Any], osd: int) -> Mapping[str, Any] | None:
    return next((entry for entry in dump["osds"] if entry["osd"] == osd), None)


@dataclass(frozen=True, slots=True)
class UpmapsLost(StepBack):
    """UpmapsLost that monitors remove when an OSD goes out."""

    kind: ClassVar[str] = "upmaps"

    items: Mapping[str, Sequence[int]] = part(
        table(_PG, several(osd_id, _MOST_OSDS), PLACEMENTS_PER_STEP)
    )
    whole: Mapping[str, Sequence[int]] = part(
        table(_PG, several(osd_id, _MOST_OSDS), PLACEMENTS_PER_STEP)
    )

    @property
    def shown(self) -> str:
        return "; ".join(upmaps.lines(self.by_command))

    @property
    def by_command(self) -> upmaps.Upmaps:
        return {upmaps.PAIRS: self.items, upmaps.ALL_OSDS: self.whole}

    async def carry_out(self, cluster: ClusterConnection) -> str:
        return "; ".join(await upmaps.give_back(cluster, self.by_command))


def upmap_steps(placements: upmaps.Upmaps) -> list[UpmapsLost]:
    """As many steps as they take."""
    steps = []
    for command in (upmaps.PAIRS, upmaps.ALL_OSDS):
        entries = list(placements.get(command, {}).items())
        for start in range(0, len(entries), PLACEMENTS_PER_STEP):
            some = {pg: tuple(osds) for pg, osds in entries[start : start + PLACEMENTS_PER_STEP]}
            pairs = command == upmaps.PAIRS
            steps.append(UpmapsLost(some if pairs else {}, {} if pairs else some))
    return steps


@dataclass(frozen=True, slots=True)
class OsdsRestarted(StepBack):
    """OSDs that were restarted for options which they read at their start only. Undone after those
    options are set back."""

    kind: ClassVar[str] = "restart"
    restarts: ClassVar[bool] = True

    # Each inner list is restarted together.
    groups: Sequence[Sequence[int]] = part(several(several(osd_id, 1000), 1000))
    # The process of each OSD before: those that have it still were never restarted.
    processes_before: Mapping[str, str] = part(
        table(
            word(r"[0-9]{1,7}", "the id of an OSD"),
            word(r"[0-9A-Za-z:./\[\]-]{1,80}", "a process of an OSD"),
            1000,
        )
    )
    lab: str | None = part(maybe(word(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a lab's name")))

    @property
    def shown(self) -> str:
        return restarts.command(self.groups, self.lab)

    async def carry_out(self, cluster: ClusterConnection) -> str:
        osds = sorted(osd for group in self.groups for osd in group)
        await restarts.restart(cluster, osds, self.processes_before)
        gone = [f"osd.{osd}" for osd in osds if osd not in await cluster.osds()]
        return f"removed by someone else: {', '.join(gone)}" if gone else ""
