"""Where OSDs are in the CRUSH map, and of which release: `cephqos blame --conf` compares it.

No exporter shows it, as it hardly ever changes: the cluster is asked when the command runs.
"""

import argparse
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from cephqos_base.prometheus import OsdKey
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_insight.cluster_access import access_of

_ANSWER_SECONDS: Final = 10.0  # for each command
# A host is known from Prometheus, and all OSDs of a pool are below one root.
_NO_TRAIT: Final = ("osd", "host", "root")

Places = Mapping[OsdKey, Collection[tuple[str, str]]]


async def places_of(arguments: argparse.Namespace) -> tuple[Places, str]:
    """Racks and releases by OSD, if `--conf` is given; or why they are not known."""
    if not arguments.conf:
        return {}, ""
    try:
        async with MonClient(access_of(arguments)) as client:
            fsid = (await client.command("fsid", within=_ANSWER_SECONDS))["fsid"]
            tree = await client.command("osd tree", within=_ANSWER_SECONDS)
            metadata = await client.command("osd metadata", within=_ANSWER_SECONDS)
            return places(fsid, tree["nodes"], metadata), ""
    except (ClusterUnreachable, CommandFailed, LookupError, TypeError, ValueError) as exc:
        return {}, f"The cluster does not say where OSDs are, and of which release: {exc}"


def places(
    fsid: str, nodes: Iterable[Mapping[str, Any]], metadata: Iterable[Mapping[str, Any]]
) -> Places:
    """Each bucket above an OSD (rack, room, …) by its type and name, and the OSD's release."""
    found = defaultdict[OsdKey, set[tuple[str, str]]](set)
    by_id = {node["id"]: node for node in nodes}
    for node in by_id.values():
        if node["type"] not in _NO_TRAIT:
            for osd in _below(node, by_id):
                found[OsdKey(fsid, f"osd.{osd}")].add((node["type"], node["name"]))
    for osd_data in metadata:
        # An OSD that never started has no more than its number.
        if release := osd_data.get("ceph_version_short"):
            found[OsdKey(fsid, f"osd.{osd_data['id']}")].add(("release", release))
    return found


def _below(node: Mapping[str, Any], by_id: Mapping[int, Mapping[str, Any]]) -> Iterable[int]:
    for child in node.get("children", ()):
        if child >= 0:
            yield child
        elif child in by_id:
            yield from _below(by_id[child], by_id)
