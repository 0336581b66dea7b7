"""How long a plan will take, as far as that can be known before it runs."""

from cephqos_loadgen.plan.parts import Objects, PlannedPool
from cephqos_loadgen.plan.planned import Phase, Plan, Point, blocks

# Around each point: settings are applied, OSDs restarted, and all is given back.
POINT_SECONDS = 8.0
REPEAT_SECONDS = 5.0  # around each repeat: settling and closing
# On small clusters. Large ones are faster, and the estimate is corrected during the run.
_FILL_BYTES_PER_SECOND = 60e6
_FILL_OBJECTS_PER_SECOND = 500.0


def point_seconds(point: Point) -> float:
    """How long one repeat takes: its phases, each after what starts it."""
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
            begin = starts[before.name] + 2  # the event comes soon after the phase that causes it
        else:
            begin = 0.0
        starts[phase.name] = begin + start.delay
        ends[phase.name] = starts[phase.name] + phase.until.expected
        before = phase
    fresh = sum(fill_seconds(pool) for pool in point.pools if pool.fresh)
    return max(ends.values(), default=0.0) + fresh


def fill_seconds(pool: PlannedPool) -> float:
    """How long creating a pool and filling it takes."""
    seconds = 3.0
    if pool.images and pool.images.prefill:
        seconds += bytes_seconds(pool.images.count * pool.images.size)
    if pool.objects:
        seconds += objects_seconds(pool.objects)
    return seconds


def bytes_seconds(count: int) -> float:
    """How long writing this many bytes takes."""
    return count / _FILL_BYTES_PER_SECOND


def objects_seconds(objects: Objects) -> float:
    """How long writing these objects takes."""
    per_object = max(objects.size / _FILL_BYTES_PER_SECOND, 1 / _FILL_OBJECTS_PER_SECOND)
    return objects.count * per_object


def run_seconds(plan: Plan) -> float:
    """How long all points and repeats take. Pools that points share are filled once."""
    pools = {pool for point in plan.points for pool in point.pools if not pool.fresh}
    seconds = sum(fill_seconds(pool) for pool in pools)
    for point, repeats in blocks(plan.runs):
        seconds += POINT_SECONDS + len(repeats) * (point_seconds(point) + REPEAT_SECONDS)
    return seconds
