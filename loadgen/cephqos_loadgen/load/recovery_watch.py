"""Follows recovery from one look at the cluster to the next. Pure: `cluster_watch` looks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cephqos_loadgen.results.phase import RecoveryFigures

_RECOVERING = frozenset({"recovering", "backfilling"})
# In these states a placement group does not tell what it still has to recover. While a manager
# starts, all groups are unknown, and its figures of misplaced and recovered objects are 0.
_NOT_KNOWN = {"unknown", "stale", "creating", "down", "incomplete", "peered", "activating"}
_WAITING = {"recovery_wait", "backfill_wait", "recovery_toofull", "backfill_toofull"}
_TO_RECOVER = {"degraded", "undersized", "peering", "remapped"}
_BUSY = _RECOVERING | _WAITING | _TO_RECOVER | _NOT_KNOWN
# Recovery counts as over when two looks in a row find nothing left of it.
_CALM_LOOKS = 2


@dataclass(slots=True)
class ClusterLook:
    """What one look found. `objects` and `bytes` are recovered so far, by pool; Ceph's sums fall
    when a placement group gets another primary."""

    time: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    objects: Mapping[int, int] = field(default_factory=dict)
    bytes: Mapping[int, int] = field(default_factory=dict)
    misplaced: int = 0
    degraded: int = 0

    @property
    def recovering(self) -> bool:
        return bool(self._parts.intersection(_RECOVERING))

    @property
    def calm(self) -> bool:
        """Nothing recovers, waits to, or ought to."""
        parts = self._parts
        return bool(parts) and not parts & _BUSY and not self.misplaced and not self.degraded

    @property
    def complete(self) -> bool:
        """The manager has heard of every placement group: the sums are of them all."""
        return bool(self._parts) and "unknown" not in self._parts

    @property
    def _parts(self) -> set[str]:
        return {part for state in self.states for part in state.split("+")}


def read_look(now: float, status: Mapping[str, Any], dump: Mapping[str, Any]) -> ClusterLook:
    """What `status` and `pg dump pools` say, taken together."""
    pools = {int(pool["poolid"]): pool["stat_sum"] for pool in dump["pool_stats"]}

    def each(key: str) -> dict[int, int]:
        return {pool: int(sums.get(key, 0)) for pool, sums in pools.items()}

    return ClusterLook(
        time=now,
        states={s["state_name"]: s["count"] for s in status["pgmap"].get("pgs_by_state", [])},
        objects=each("num_objects_recovered"),
        bytes=each("num_bytes_recovered"),
        misplaced=sum(each("num_objects_misplaced").values()),
        degraded=sum(each("num_objects_degraded").values()),
    )


@dataclass(slots=True)
class _GrowingSum:
    """Adds up how much the pools' sums grow, and leaves out where they fall."""

    total: int = 0
    _last: Mapping[int, int] | None = None

    def follow(self, values: Mapping[int, int]) -> int:
        """Take the sums of a look; how much they grew since the one before."""
        before = self._last
        grown = 0
        if before is not None:
            grown = sum(max(0, value - before.get(pool, 0)) for pool, value in values.items())
        self._last = dict(values)
        self.total += grown
        return grown


class RecoveryFollower:
    """When recovery was under way, and what it recovered since `expect`.

    Times are exact to the interval between two looks: recovery begins with the first look that
    finds it, and ends with the first that finds nothing left of it. One that is over within an
    interval began with the look before.
    """

    def __init__(self) -> None:
        self._objects, self._bytes = _GrowingSum(), _GrowingSum()
        self.now = ClusterLook()
        self.last_under_way = 0.0  # time of the last such look
        self._began = 0.0  # 0: none was found since `expect`
        self._calm_since = 0.0  # 0: the last look was not calm
        self._calm_looks = 0
        self._finished = False
        self._at_expect = (0, 0)  # what `recovered` was then

    @property
    def recovered(self) -> tuple[int, int]:
        """Objects and bytes since the first look."""
        return self._objects.total, self._bytes.total

    @property
    def calm(self) -> bool:
        return self._calm_looks >= _CALM_LOOKS

    def expect(self, *, go_on: bool = False) -> None:
        """Data is about to be moved: what was recovered before does not count.

        With `go_on`, a recovery that is under way continues: its start and its sums stay.
        """
        if go_on and self._began and not self._finished:
            return
        self._began = 0.0
        self._finished = False
        self._at_expect = self.recovered

    def take(self, look: ClusterLook) -> str:
        """Follow one more look; the event that came with it, or nothing."""
        before, self.now = self.now, look
        grown = 0
        # A look that misses groups is left out: when they are back, all that they ever recovered
        # would count as new.
        if look.complete:
            grown = self._objects.follow(look.objects)
            self._bytes.follow(look.bytes)
        event = ""
        if look.recovering or grown:
            if not self._began:
                self._began = before.time if before.time and not look.recovering else look.time
                event = "recovery_started"
            self.last_under_way = look.time
            self._finished = False
        if grown or not look.calm:  # calm begins again, and with this look if it is calm
            self._calm_since, self._calm_looks = 0.0, 0
        if not look.calm:
            return event
        self._calm_since = self._calm_since or look.time
        self._calm_looks += 1
        if self._began and self.calm and not self._finished:
            self._finished = True
            event = "recovery_done"
        return event

    def recovery(self) -> RecoveryFigures:
        """What was recovered since `expect`, up to now where it is not finished."""
        objects, size = self.recovered
        end = self._calm_since if self._finished else self.now.time
        return RecoveryFigures(
            objects=objects - self._at_expect[0],
            bytes=size - self._at_expect[1],
            seconds=max(0.0, end - self._began) if self._began else 0.0,
            finished=self._finished,
        )
