"""Background work of a cluster that would disturb a measurement: off during a run, then on again.

The balancer moves placement groups, the autoscaler splits and merges those of other pools,
scheduled scrubs read whole disks. Scrubs that a scenario asks for are not held back by the flags.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster import undo
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.background import BALANCER_OPTION, AutoscalerOff, BalancerOff
from cephqos_loadgen.plan import planned

_SCRUB_FLAGS = ("noscrub", "nodeep-scrub")
_NO_SCRUBS = [undo.flag(name, on=True) for name in _SCRUB_FLAGS]
_BALANCER_OFF = undo.ceph("balancer off", target="mgr")


def lines(plan: planned.Plan) -> Iterator[str]:
    """The commands that switch background work off, as the plan shows them."""
    if "balancer" in plan.quiet:
        yield f"{_BALANCER_OFF.shown} (where it is on)"
    if "autoscaler" in plan.quiet:
        yield f"{_autoscaler_off('POOL').shown} (pools where it is on)"
    if "scrubs" in plan.quiet:
        for change in _NO_SCRUBS:
            yield from (f"{command.shown} (where it is not set)" for command in change.commands)


def _autoscaler_off(pool: str) -> undo.ClusterCommand:
    return undo.ceph("osd pool set", pool=pool, var="pg_autoscale_mode", val="off")


async def apply(
    cluster: ClusterConnection, journal: undo.Journal, wanted: Sequence[str]
) -> dict[str, Any]:
    """Switch background work off. Returns what was done, for the archive."""
    done: dict[str, Any] = {}
    if "balancer" in wanted and await balancer_is_on(cluster):
        await _stop_balancer(cluster, journal)
        done["balancer"] = "switched off"
    if "autoscaler" in wanted:
        pools = [name for name, mode in (await autoscale_modes(cluster)).items() if mode == "on"]
        for pool in pools:
            await _stop_autoscaling(cluster, journal, pool)
        done["autoscaler"] = pools
    if "scrubs" in wanted:
        for change in _NO_SCRUBS:
            await journal.make(change, cluster)
        done["flags"] = list(_SCRUB_FLAGS)
    return done


async def balancer_is_on(cluster: ClusterConnection) -> bool:
    """Whether the balancer moves data; False if the manager has no balancer that answers."""
    try:
        status = await cluster.command("balancer status", target="mgr")
    except CommandFailed:
        return False
    return isinstance(status, dict) and bool(status.get("active"))


async def autoscale_modes(cluster: ClusterConnection) -> dict[str, str]:
    """The mode of each pool; none in releases that do not show it."""
    pools = await cluster.command("osd pool ls", detail="detail")
    return {
        pool["pool_name"]: pool["pg_autoscale_mode"]
        for pool in pools
        if "pg_autoscale_mode" in pool
    }


async def _stop_balancer(cluster: ClusterConnection, journal: undo.Journal) -> None:
    dump = await cluster.command("config dump")
    was_set = any(e["section"] == "mgr" and e["name"] == BALANCER_OPTION for e in dump)
    await journal.make(
        undo.Change("the balancer", [_BALANCER_OFF], (BalancerOff(was_set),)), cluster
    )


async def _stop_autoscaling(cluster: ClusterConnection, journal: undo.Journal, pool: str) -> None:
    pools = (await cluster.command("osd dump"))["pools"]
    number = next(int(entry["pool"]) for entry in pools if entry["pool_name"] == pool)
    off = _autoscaler_off(pool)
    await journal.make(
        undo.Change(f"the autoscaler of {pool}", [off], (AutoscalerOff(pool, number),)), cluster
    )
