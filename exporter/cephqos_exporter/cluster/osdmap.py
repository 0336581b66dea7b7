"""What the OSD map says: which OSDs are up, which flags hold the cluster back."""

from collections.abc import Iterable, Mapping
from typing import Final

from cephqos_exporter.cluster.replies import OsdMap, Pool
from cephqos_exporter.families import Family, gauge
from cephqos_exporter.labels import Labels

# Flags that an administrator sets to hold something back. Others record the cluster's history.
FLAGS: Final = (
    *("nobackfill", "nodeep-scrub", "nodown", "noin", "noout", "norebalance", "norecover"),
    *("noscrub", "nosnaptrim", "noup", "pauserd", "pausewr"),
)


def osd_map_families(osd_map: OsdMap, labels: Labels) -> Iterable[Family]:
    """Every OSD of the map, and every flag that can be set on it."""
    up = gauge("cephqos_cluster_osd_up", "1: the OSD is up in the cluster's OSD map.")
    for osd, is_up in osd_map.osds.items():
        up.add(labels.of("ceph_daemon", f"osd.{osd}"), is_up)
    flags = gauge("cephqos_cluster_flag", "1: the flag is set on the whole cluster.")
    for flag in FLAGS:
        flags.add(labels.of("flag", flag), flag in osd_map.flags)
    return up, flags


def pool_family(pools: Mapping[int, Pool], labels: Labels) -> Family:
    """Names and numbers of pools: series from the OSDs' operations have only the numbers."""
    family = gauge(
        "cephqos_cluster_pool_info",
        "Always 1. Number, name, application (rbd, cephfs, rgw) and type (replicated, erasure) of "
        "a pool.",
    )
    for pool in pools.values():
        about = ("pool_id", str(pool.id), "pool", pool.name, "application", pool.application)
        family.add(labels.of(*about, "type", pool.type), 1)
    return family
