"""How long a run still takes: from the plan at first, from what was measured as soon as it is."""

from cephqos_loadgen.plan.estimate import (
    POINT_SECONDS,
    REPEAT_SECONDS,
    fill_seconds,
    point_seconds,
)
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Plan, Point, blocks


class Forecast:
    """Keeps count of what is done. Pools that points share are filled once."""

    def __init__(self, plan: Plan) -> None:
        self._left = list(plan.runs)
        self._took: dict[str, list[float]] = {}
        self._filled: set[PlannedPool] = set()
        self._planned = {p.name: point_seconds(p) + REPEAT_SECONDS for p in plan.points}

    def finished(self, point: Point, repeat: int, seconds: float | None) -> None:
        """A repeat is done; `seconds` None: by an earlier run."""
        self._left.remove((point, repeat))
        if seconds is not None:
            self._took.setdefault(point.name, []).append(seconds)

    def filled(self, point: Point) -> None:
        """The lasting pools of this point are there."""
        self._filled |= {pool for pool in point.pools if not pool.fresh}

    def repeat_seconds(self, point: Point) -> float:
        """One repeat: as those of its own point took, or as the plan says, corrected by the
        others."""
        own = self._took.get(point.name)
        if own:
            return sum(own) / len(own)
        return self._planned[point.name] * self._correction()

    def _correction(self) -> float:
        """How much longer than planned repeats took."""
        took = sum(sum(seconds) for seconds in self._took.values())
        if not took:
            return 1.0
        planned = sum(self._planned[name] * len(seconds) for name, seconds in self._took.items())
        return took / max(0.001, planned)

    def left(self, *, elapsed: float = 0.0, filling: float | None = None) -> float:
        """Seconds to the end. `elapsed`: of the present repeat; `filling`: what is measured of
        the pools of the present point that are being filled."""
        if not self._left:
            return 0.0
        present = self._left[0][0]
        repeats = [self.repeat_seconds(point) for point, _ in self._left]
        changes = len(blocks(self._left)) - bool(elapsed)
        seconds = max(0.0, repeats[0] - elapsed) + sum(repeats[1:]) + POINT_SECONDS * changes
        missing = {p for point, _ in self._left for p in point.pools if not p.fresh} - self._filled
        if filling is not None:
            seconds += filling
            missing -= set(present.pools)
        return seconds + sum(fill_seconds(pool) for pool in missing)
