"""How long a run still takes: first as planned, then as the repeats that are done took."""

from collections.abc import Mapping

from cephqos_loadgen.plan.estimate import POINT_SECONDS, REPEAT_SECONDS, fill_seconds, point_seconds
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Plan, Point, blocks


class Forecast:
    """Keeps count of what is done. Pools that points share are filled once."""

    def __init__(self, plan: Plan) -> None:
        self._left = list(plan.runs)  # points and numbers of repeats, in their order
        self._took: dict[str, list[float]] = {}  # seconds of repeats, by point
        self._filled: set[PlannedPool] = set()
        self._restarts: Mapping[str, float] = {}  # seconds, by point, whenever it is put
        # Seconds of one repeat, by point.
        self._planned = {point.name: point_seconds(point) + REPEAT_SECONDS for point in plan.points}

    def restarting(self, seconds_of: Mapping[str, float]) -> None:
        """How long OSDs restart for a point and back, by point."""
        self._restarts = seconds_of

    def finished(self, point: Point, repeat: int, seconds: float | None) -> None:
        """A repeat is done. Without `seconds`, an earlier run did it."""
        self._left.remove((point, repeat))
        if seconds is not None:
            self._took.setdefault(point.name, []).append(seconds)

    def filled(self, point: Point) -> None:
        """The pools of this point are filled, except those that each repeat makes itself."""
        self._filled |= {pool for pool in point.pools if not pool.fresh}

    def repeat_seconds(self, point: Point) -> float:
        """One repeat: the mean of those of its point. If none is done, as planned, corrected by how
        much longer repeats of other points took."""
        took = self._took.get(point.name)
        if took:
            return sum(took) / len(took)
        return self._planned[point.name] * self._correction()

    def _correction(self) -> float:
        """By which factor repeats took longer than planned."""
        took = sum(sum(seconds) for seconds in self._took.values())
        if not took:
            return 1.0
        planned = sum(self._planned[name] * len(seconds) for name, seconds in self._took.items())
        return took / max(0.001, planned)

    def left(self, *, elapsed: float = 0.0, filling: float | None = None) -> float:
        """Seconds to the end. `elapsed`: seconds of the present repeat so far. `filling`: seconds
        until the pools of the present point are filled, if that is measured."""
        if not self._left:
            return 0.0
        present = self._left[0][0]
        repeats = [self.repeat_seconds(point) for point, _ in self._left]
        to_come = [point.name for point, _ in blocks(self._left)]
        changes = len(to_come) - bool(elapsed)
        seconds = max(0.0, repeats[0] - elapsed) + sum(repeats[1:]) + POINT_SECONDS * changes
        restarts = [self._restarts.get(name, 0.0) for name in to_come]
        seconds += sum(restarts) - (restarts[0] / 2 if elapsed else 0.0)
        lasting = {pool for point, _ in self._left for pool in point.pools if not pool.fresh}
        to_fill = lasting - self._filled
        if filling is not None:
            seconds += filling
            to_fill -= set(present.pools)
        return seconds + sum(fill_seconds(pool) for pool in to_fill)
