"""Placements that the balancer or an operator gave to single placement groups (upmaps).

Monitors remove an upmap for good when one of its OSDs is marked out. When the OSD is in again, its
placement groups are elsewhere than before. So upmaps are written down first, and set again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView

# The commands that set them: with pairs of OSDs, from and to; or with all OSDs of the group.
PAIRS, ALL_OSDS = "osd pg-upmap-items", "osd pg-upmap"
Upmaps = Mapping[str, Mapping[str, Sequence[int]]]  # by command and placement group


def read(osd_dump: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    """The upmaps of a cluster, by the command that sets them."""
    return {
        PAIRS: {
            entry["pgid"]: [osd for pair in entry["mappings"] for osd in (pair["from"], pair["to"])]
            for entry in osd_dump.get("pg_upmap_items", ())
        },
        ALL_OSDS: {entry["pgid"]: list(entry["osds"]) for entry in osd_dump.get("pg_upmap", ())},
    }


async def at_stake(cluster: ClusterView, osd_dump: Mapping[str, Any], osd: int) -> Upmaps:
    """The upmaps that monitors may remove when this OSD goes out.

    They name the OSD, or are of a placement group that it has. All upmaps would not fit into the
    journal that is kept in the cluster.
    """
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
    """The commands that set them again."""
    for command, placements in upmaps.items():
        for pg, osds in placements.items():
            yield " ".join(["ceph", command, pg, *map(str, osds)])


async def give_back(cluster: ClusterConnection, upmaps: Upmaps) -> list[str]:
    """Set upmaps again that are gone, or of which monitors have removed a part. Returns what was
    left: groups to which someone else gave another placement."""
    dump = await cluster.command("osd dump")
    pools = {str(pool["pool"]) for pool in dump["pools"]}
    now = read(dump)
    left = []
    for command, placements in upmaps.items():
        for pg, osds in placements.items():
            present = now[command].get(pg, [])
            if pg.partition(".")[0] not in pools or present == list(osds):
                continue
            part_is_left = command == PAIRS and _pairs(present) <= _pairs(osds)
            if part_is_left or not present:
                await cluster.command(command, pgid=pg, id=list(osds))
            else:
                left.append(f"placement group {pg} was given another upmap by someone else")
    return left


def _pairs(osds: Sequence[int]) -> set[tuple[int, int]]:
    return set(zip(osds[::2], osds[1::2], strict=False))
