"""Whether there is room for what a run writes: a full cluster stops all work."""

from collections.abc import Collection, Iterable

from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Phase, Point
from cephqos_loadgen.plan.words import size

_DEFAULT_COPIES = 3
_NEARFULL = 0.85  # Ceph's default of the ratio at which it warns


def pool_bytes(pool: PlannedPool, phases: Iterable[Phase]) -> int:
    """What a pool will hold, with all its copies. Images count as a whole: loads may fill them."""
    held = pool.images.count * pool.images.size if pool.images else 0
    written = [pool.objects] if pool.objects else []
    for phase in phases:
        if pool.name in (added := phase.action.writes()):
            written.append(added[pool.name])
    held += sum(objects.count * objects.size for objects in written)
    return held * (pool.size or _DEFAULT_COPIES)


def plan_bytes(points: Iterable[Point], present: Collection[str] = ()) -> int:
    """What these points need at most at one time, without the pools that are present already.

    Pools with one name follow each other. What rados bench writes is not known before.
    """
    largest: dict[str, int] = {}  # by name of the pool
    for point in points:
        for pool in point.pools:
            if pool.name not in present:
                held = pool_bytes(pool, point.phases)
                largest[pool.name] = max(largest.get(pool.name, 0), held)
    return sum(largest.values())


async def check(
    cluster: ClusterConnection, points: Iterable[Point], present: Collection[str]
) -> None:
    """ClusterUnfit if the run would fill the cluster past the ratio at which Ceph warns."""
    need = plan_bytes(points, present)
    stats = (await cluster.command("df"))["stats"]
    ratio = (await cluster.command("osd dump")).get("nearfull_ratio", _NEARFULL)
    room = max(0, round(stats["total_bytes"] * ratio) - stats["total_used_raw_bytes"])
    if need > room:
        raise ClusterUnfit(
            f"the pools of this run take {size(need)} with all copies, and the cluster has"
            f" {size(room)} of room before it is nearly full: use a smaller --scale or --var, fewer"
            " points (--only), or a larger cluster"
        )
