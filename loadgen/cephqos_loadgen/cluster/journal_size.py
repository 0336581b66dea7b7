"""How many steps back a run can need at the same time: known before it changes anything."""

from cephqos_loadgen.cluster import upmaps
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.steps.options import MON_NEEDS
from cephqos_loadgen.cluster.steps.osds import PLACEMENTS_PER_STEP
from cephqos_loadgen.cluster.undo import MAX_STEPS
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Plan, Point

_RESTART = 2  # of OSDs, and that they do not measure their capacity at it
_QUIET = 3 + _RESTART  # the balancer, two flags; a restart for what the run needs itself
_DAEMON = 2  # its queue and its CPUs


async def check(cluster: ClusterView, plan: Plan) -> None:
    """ClusterUnfit if the steps of this plan could not all be kept on this cluster."""
    dump = await cluster.command("osd dump")
    placements = sum(map(len, upmaps.read(dump).values()))
    most = most_steps(plan, len(dump["osds"]), len(dump["pools"]), placements)
    if most > MAX_STEPS:
        raise ClusterUnfit(
            f"this run can need {most} steps to undo its changes at one time, and {MAX_STEPS} are"
            " kept in the cluster: set fewer options (an option for `osd` counts once, one for each"
            " daemon counts each time), or name fewer volumes for krbd"
        )


def most_steps(plan: Plan, osds: int, pools: int, placements: int) -> int:
    """The most steps that are written down at one time: those of the whole run, and of the point
    that has most."""
    whole_run = _QUIET + len(MON_NEEDS) + 1 + pools + (osds if plan.capacity else 0)
    return whole_run + max((_of_point(point, osds, placements) for point in plan.points), default=0)


def _of_point(point: Point, osds: int, placements: int) -> int:
    phases = [phase.action for phase in point.phases]
    changing = sum(action.steps_back() for action in phases)
    settings = len(point.settings) + _RESTART
    settings += sum(len(action.settings()) + _RESTART for action in phases)
    going_out = sum(action.moves_data for action in phases)
    upmap_steps = going_out * (2 + placements // PLACEMENTS_PER_STEP)
    of_devices = osds * _DAEMON
    return settings + len(point.flags) + len(point.pools) + of_devices + changing + upmap_steps
