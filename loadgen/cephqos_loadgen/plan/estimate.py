"""How long a plan will take, as far as that can be known before it runs."""

from cephqos_loadgen.plan.parts import Objects, PlannedPool
from cephqos_loadgen.plan.planned import Phase, Plan, Point, blocks

# Applying, restarting and giving back around each point; settling and closing around each repeat.
POINT_SECONDS = 8.0
REPEAT_SECONDS = 5.0
# What small clusters take; large ones are faster, and the estimate is corrected while running.
_FILL_BYTES_PER_SECOND = 60e6
_FILL_OBJECTS_PER_SECOND = 500.0


def point_seconds(point: Point) -> float:
    """One repeat: phases laid out by what starts them."""
    ends: dict[str, float] = {}
    starts: dict[str, float] = {}
    before: Phase | None = None
    for phase in point.phases:
        start = phase.start
        if start.kind == "after":
            begin = ends[start.phase]
        elif start.kind == "with":
            begin = starts[start.phase]
        elif start.kind == "when" and before is not None:
            begin = starts[before.name] + 2
        else:
            begin = 0.0
        starts[phase.name] = begin + start.delay
        ends[phase.name] = starts[phase.name] + phase.until.expected
        before = phase
    fresh = sum(fill_seconds(pool) for pool in point.pools if pool.fresh)
    return max(ends.values(), default=0.0) + fresh


def fill_seconds(pool: PlannedPool) -> float:
    """Making a pool and filling it."""
    seconds = 3.0
    if pool.images and pool.images.prefill:
        seconds += bytes_seconds(pool.images.count * pool.images.size)
    if pool.objects:
        seconds += objects_seconds(pool.objects)
    return seconds


def bytes_seconds(count: int) -> float:
    """Writing so many bytes."""
    return count / _FILL_BYTES_PER_SECOND


def objects_seconds(objects: Objects) -> float:
    """Writing these."""
    each = max(objects.size / _FILL_BYTES_PER_SECOND, 1 / _FILL_OBJECTS_PER_SECOND)
    return objects.count * each


def run_seconds(plan: Plan) -> float:
    """All points and repeats; pools that points share are filled once."""
    pools = {pool for point in plan.points for pool in point.pools if not pool.fresh}
    seconds = sum(fill_seconds(pool) for pool in pools)
    for point, repeats in blocks(plan.runs):
        seconds += POINT_SECONDS + len(repeats) * (point_seconds(point) + REPEAT_SECONDS)
    return seconds
