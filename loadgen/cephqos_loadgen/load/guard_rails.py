"""Ends a repeat when the cluster becomes worse than its phases make it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from cephqos_loadgen.cluster.connection import ClusterConnection, is_settled
from cephqos_loadgen.cluster.restarts import named
from cephqos_loadgen.plan.errors import RunError

# As long as Ceph waits until it calls a placement group stuck. Phases make groups peer, too.
_INACTIVE_SECONDS = 60.0
# Groups of a pool that is just made, and all of them while a manager starts.
_NOT_KNOWN: Final = frozenset({"unknown", "creating"})
_FULL: Final = "OSD_FULL"
_ROOM: Final = ("OSD_NEARFULL", "OSD_BACKFILLFULL", _FULL)


def room(status: Mapping[str, Any]) -> Mapping[str, int]:
    """How many OSDs are nearfull, backfillfull and full, by health check."""
    checks = status["health"]["checks"]
    return {name: int(checks[name]["summary"].get("count", 1)) for name in _ROOM if name in checks}


class GuardRails:
    """What each look at the cluster must not find. Phases that take OSDs down are allowed to."""

    def __init__(
        self,
        cluster: ClusterConnection,
        room_before: Mapping[str, int],  # when the run began
        taken_down: Callable[[], Collection[int]],  # OSDs that phases have taken down by now
        restarted: Collection[int],  # OSDs that the run has restarted by now
    ) -> None:
        self._cluster = cluster
        self._room_before = room_before
        self._taken_down = taken_down
        self._restarted = restarted
        self._away: set[int] = set()  # all that phases have ever taken down
        self._down: frozenset[int] = frozenset()
        self._down_before: frozenset[int] | None = None  # in the first look
        self._epoch: int | None = None  # in which `_down` is true
        self._ours: frozenset[int] | None = None  # OSDs that are down by the run
        self._inactive_since = 0.0

    async def check(self, now: float, status: Mapping[str, Any]) -> None:
        """RunError, which ends the repeat, for what must not be. `now`: of a steady clock."""
        await self._look_for_down(status["osdmap"]["epoch"])
        self._check_room(room(status))
        self._away.update(self._taken_down())
        self._check_osds()
        self._check_groups(now, status["pgmap"].get("pgs_by_state", ()))

    async def _look_for_down(self, epoch: int) -> None:
        """Which OSDs are down, asked again when the OSD map has changed."""
        if epoch == self._epoch:
            return
        dump = await self._cluster.once("osd dump")
        self._down = frozenset(osd["osd"] for osd in dump["osds"] if not osd["up"])
        self._epoch = epoch
        if self._down_before is None:
            self._down_before = self._down

    def _check_room(self, found: Mapping[str, int]) -> None:
        """No more OSDs without room than before. A lab has no others: it may be nearly full."""
        if self._cluster.access.at_once:
            found = {check: osds for check, osds in found.items() if check == _FULL}
        for check, osds in found.items():
            before = self._room_before.get(check, 0)
            if osds > before:
                raise RunError(
                    f"{check}: {osds} OSD{'s' if osds > 1 else ''}, and {before} before. Writes of"
                    " others stop when an OSD is full. See `ceph osd df`; give the run smaller"
                    " pools or shorter loads"
                )

    def _check_osds(self) -> None:
        """While an OSD is out by a phase, all others that were up must be."""
        out = self._down & self._away
        lost = self._down - self._away - (self._down_before or frozenset()) - {*self._restarted}
        if out and lost:
            raise RunError(
                f"{named(sorted(lost))} went down, and no phase did that, while a phase has"
                f" {named(sorted(out))} out: data may have too few copies. See `ceph health"
                " detail`; go on with --resume when all OSDs are up"
            )

    def _check_groups(self, now: float, states: Collection[Mapping[str, Any]]) -> None:
        inactive = {
            state["state_name"]: state["count"]
            for state in states
            if not is_settled(state["state_name"], clean=False)
            and not _NOT_KNOWN & set(state["state_name"].split("+"))
        }
        ours = self._down & {*self._away, *self._restarted}
        # Before an OSD of a lab goes down, Ceph is not asked whether all groups stay active.
        on_purpose = self._cluster.access.at_once and ours
        if not inactive or on_purpose or ours != self._ours:
            self._ours, self._inactive_since = ours, now
        elif now - self._inactive_since > _INACTIVE_SECONDS:
            shown = ", ".join(f"{count} {state}" for state, count in inactive.items())
            raise RunError(
                f"placement groups are inactive for over {_INACTIVE_SECONDS:g} s: {shown}. Their"
                " clients wait. See `ceph pg dump_stuck inactive`; go on with --resume when all"
                " are active"
            )
