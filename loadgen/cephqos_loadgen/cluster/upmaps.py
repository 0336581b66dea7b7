"""Placements that the balancer or an operator gave to single placement groups (upmaps).

Monitors remove them for good where one of their OSDs is marked out: when it is in again, its
placement groups are elsewhere than before. So they are written down first, and given back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView

# Exceptions from what CRUSH says, as pairs of OSDs from and to; or all OSDs of the group.
_EXCEPTIONS, _WHOLE = "osd pg-upmap-items", "osd pg-upmap"
Upmaps = Mapping[str, Mapping[str, Sequence[int]]]  # by command and placement group


def read(osd_dump: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    """The upmaps of a cluster, by the command that sets them."""
    return {
        _EXCEPTIONS: {
            entry["pgid"]: [osd for pair in entry["mappings"] for osd in (pair["from"], pair["to"])]
            for entry in osd_dump.get("pg_upmap_items", ())
        },
        _WHOLE: {entry["pgid"]: list(entry["osds"]) for entry in osd_dump.get("pg_upmap", ())},
    }


async def at_stake(cluster: ClusterView, osd_dump: Mapping[str, Any], osd: int) -> Upmaps:
    """Those that may be removed where this OSD goes out: of placement groups that it has, or would
    have without them. The way back in the cluster has room for an OSD's, and not for all."""
    upmaps = read(osd_dump)
    if not any(upmaps.values()):
        return {}
    here = await cluster.command("pg ls-by-osd", target="mgr", osd=osd)
    held = {entry["pgid"] for entry in here["pg_stats"]}
    touched = {
        command: {pg: osds for pg, osds in placements.items() if osd in osds or pg in held}
        for command, placements in upmaps.items()
    }
    return {command: placements for command, placements in touched.items() if placements}


def lines(upmaps: Upmaps) -> Iterator[str]:
    """The commands that give them back."""
    for command, placements in upmaps.items():
        for pg, osds in placements.items():
            yield " ".join(["ceph", command, pg, *map(str, osds)])


async def give_back(cluster: ClusterConnection, upmaps: Upmaps) -> None:
    """Those that are gone or changed; what has no such placement group any more is left out."""
    dump = await cluster.command("osd dump")
    pools = {str(pool["pool"]) for pool in dump["pools"]}
    now = read(dump)
    for command, placements in upmaps.items():
        for pg, osds in placements.items():
            if pg.partition(".")[0] in pools and now[command].get(pg) != list(osds):
                await cluster.command(command, pgid=pg, id=list(osds))
