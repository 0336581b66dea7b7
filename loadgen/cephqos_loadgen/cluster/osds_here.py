"""Which OSDs run on this host, by their processes: devices of two hosts share names."""

from collections.abc import Mapping, Sequence
from typing import Any

from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Plan


async def check(cluster: ClusterConnection, plan: Plan) -> None:
    """ClusterUnfit if the plan changes devices or processes of OSDs that run on another host.

    The name of a point says that all OSDs were changed, so a point that changes some is not run.
    """
    change = _change_of_hosts(plan)
    if not change:
        return
    here = await cluster.pids()
    up = {f"osd.{osd}" for osd in await cluster.up_osds()}
    metadata = await cluster.command("osd metadata")
    elsewhere = {
        f"osd.{osd['id']}": str(osd.get("hostname", "unknown"))
        for osd in metadata
        if f"osd.{osd['id']}" in up.difference(here)
    }
    if elsewhere:
        shown = ", ".join(f"{osd} (host {host})" for osd, host in elsewhere.items())
        raise ClusterUnfit(
            f"{change}, which can be done for OSDs of this host only, and these were not found on"
            f" it: {shown}. An OSD is found by its admin socket, in /run/ceph or in --sockets"
        )


def _change_of_hosts(plan: Plan) -> str:
    """What the plan changes on hosts of OSDs; empty: nothing."""
    if any(device_queues.queue_settings(point.devices) for point in plan.points):
        return "the scenario sets queues of the OSDs' devices"
    phases = (phase for point in plan.points for phase in point.phases)
    name = next((phase.name for phase in phases if phase.action.needs_osds_here), "")
    return f"phase {name} pins OSDs" if name else ""


def devices(metadata: Sequence[Mapping[str, Any]], here: Mapping[str, int]) -> set[str]:
    """Names of the block devices of the OSDs that are on this host."""
    of_host = [osd for osd in metadata if f"osd.{osd['id']}" in here]
    names = {name for osd in of_host for name in str(osd.get("devices", "")).split(",")}
    return names - {""}
