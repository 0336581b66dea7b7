"""How evenly placement groups and data lie on the OSDs, and how full these are.

The share of an OSD is by its weight among the OSDs of its CRUSH root and device class: the balancer
has the same aim. An OSD with twice the weight has twice the share.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.cluster.replies import OsdMap, Pool, text, whole
from cephqos_exporter.families import Family, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood, listed

_NO_CLASS: Final = ""


@dataclass(frozen=True, slots=True)
class OsdPlace:
    """Where an OSD is in the CRUSH map."""

    root: str
    device_class: str
    weight: float  # in CRUSH, times the override; 0: gets nothing


@dataclass(frozen=True, slots=True)
class OsdUse:
    """What an OSD has reported to the manager."""

    pgs: int
    used_ratio: float | None  # None: no size is known
    size: int = 0  # bytes; 0: not known


@dataclass(frozen=True, slots=True)
class Balance:
    """Of all OSDs, at one time."""

    places: Mapping[int, OsdPlace]
    use: Mapping[int, OsdUse]
    pg_ratios: Mapping[int, float]
    primaries: Mapping[int, int]  # placement groups that each OSD leads; empty if not known
    pg_sizes: Mapping[int, float]  # by pool, of a placement group's copy, as a part of an OSD


def pg_ratios(places: Mapping[int, OsdPlace], use: Mapping[int, OsdUse]) -> dict[int, float]:
    """Placement groups of each OSD that has a weight, divided by its share."""
    weights: dict[tuple[str, str], float] = defaultdict(float)
    pgs: dict[tuple[str, str], int] = defaultdict(int)
    with_share = {osd: place for osd, place in places.items() if place.weight > 0 and osd in use}
    for osd, place in with_share.items():
        weights[place.root, place.device_class] += place.weight
        pgs[place.root, place.device_class] += use[osd].pgs
    ratios = {}
    for osd, place in with_share.items():
        peers = place.root, place.device_class
        if pgs[peers]:
            ratios[osd] = use[osd].pgs / (pgs[peers] * place.weight / weights[peers])
    return ratios


def pg_sizes(
    totals: Mapping[int, Mapping[str, Any]],
    pools: Mapping[int, Pool],
    use: Mapping[int, OsdUse],
    not_understood: NotUnderstood,
) -> dict[int, float]:
    """Of each pool, the mean size of a placement group's copy or shard: as a part of a mean OSD.
    Pools of indexes and metadata are mostly OMAP."""
    sizes = [osd.size for osd in use.values() if osd.size]

    def read(pool: Pool) -> tuple[int, float]:
        space = totals[pool.id]["store_stats"]
        used = whole(space["allocated"]) + whole(space.get("omap_allocated", 0))
        return pool.id, used / (pool.pg_num * pool.size * sum(sizes) / len(sizes))

    known = [pool for pool in pools.values() if sizes and pool.size and pool.id in totals]
    return dict(not_understood.each("pg dump: the space of a pool", known, read))


def parse_tree(reply: Mapping[str, Any], not_understood: NotUnderstood) -> dict[int, OsdPlace]:
    """OSDs as `osd tree` lists them: each root, followed by all that is below it."""
    places: dict[int, OsdPlace] = {}
    root = ""

    def read(node: Mapping[str, Any]) -> None:
        nonlocal root
        if node["type"] == "osd":
            place = OsdPlace(
                root=root,
                device_class=text(node.get("device_class", _NO_CLASS)),
                weight=float(node["crush_weight"]) * float(node["reweight"]),
            )
            places.setdefault(whole(node["id"]), place)
        elif node["type"] == "root":
            root = text(node["name"])

    not_understood.each("osd tree: a node", listed(reply["nodes"]), read)
    return places


def parse_use(reply: Mapping[str, Any], not_understood: NotUnderstood) -> dict[int, OsdUse]:
    """OSDs as `pg dump osds` lists them."""

    def read(row: Mapping[str, Any]) -> tuple[int, OsdUse]:
        size, used = whole(row["kb"]), whole(row["kb_used"])
        used_ratio = used / size if size > 0 else None
        return whole(row["osd"]), OsdUse(whole(row["num_pgs"]), used_ratio, size << 10)

    return dict(not_understood.each("pg dump: an OSD", listed(reply["osd_stats"]), read))


def balance_families(
    balance: Balance, pools: Mapping[int, Pool], labels: Labels
) -> Iterable[Family]:
    pgs = gauge(
        "cephqos_balance_pgs",
        "Placement groups on the OSD, by its CRUSH root and device class.",
    )
    for osd, use in balance.use.items():
        place = balance.places.get(osd)
        if place is not None:
            about = ("root", place.root, "device_class", place.device_class)
            pgs.add(labels.of("ceph_daemon", f"osd.{osd}", *about), use.pgs)
    ratio = gauge(
        "cephqos_balance_pgs_ratio",
        "Placement groups on the OSD, divided by its share: those of all OSDs of its CRUSH root and"
        " device class, by weight. 1: as many as its share. Absent for an OSD without weight.",
    )
    for osd, value in balance.pg_ratios.items():
        ratio.add(labels.of("ceph_daemon", f"osd.{osd}"), value)
    led = gauge(
        "cephqos_balance_primaries",
        "Placement groups of which the OSD is the primary: it serves their reads. Absent until all "
        "placement groups were read once, and above --cluster.schedule-pgs.",
    )
    if balance.primaries:
        for osd in balance.use:
            led.add(labels.of("ceph_daemon", f"osd.{osd}"), balance.primaries.get(osd, 0))
    used = gauge(
        "cephqos_balance_used_ratio",
        "Used part of the OSD's space. Compare it with cephqos_cluster_full_ratio. Absent while the"
        " OSD reports no size.",
    )
    for osd, use in balance.use.items():
        if use.used_ratio is not None:
            used.add(labels.of("ceph_daemon", f"osd.{osd}"), use.used_ratio)
    piece = gauge(
        "cephqos_balance_pool_pg_size_ratio",
        "Mean space that a copy (or shard) of a placement group of the pool takes, as a part of "
        "the mean size of all OSDs. Absent while OSDs report no space for the pool.",
    )
    for pool_id, size in balance.pg_sizes.items():
        if size > 0 and pool_id in pools:
            piece.add(labels.of("pool", pools[pool_id].name), size)
    return pgs, ratio, led, used, piece


def map_families(osd_map: OsdMap, pools: Mapping[int, Pool], labels: Labels) -> Iterable[Family]:
    """What the OSD map says of it."""
    full = gauge(
        "cephqos_cluster_full_ratio",
        "Used part of an OSD from which Ceph warns (level nearfull), moves nothing more to it "
        "(backfillfull) and stops all writes of clients to its pools (full).",
    )
    for level, value in osd_map.full_ratios.items():
        full.add(labels.of("level", level), value)
    score = gauge(
        "cephqos_balance_pool_read_score",
        "How unevenly the primaries of a replicated pool lie on its OSDs (read_balance_score). 1: "
        "as evenly as possible. 3: the OSD with most leads three times as many. Absent before "
        "18.2, for erasure-coded pools, and for pools with fewer placement groups than OSDs are "
        "up.",
    )
    for pool in pools.values():
        if pool.read_score is not None and pool.pg_num >= len(osd_map.osds_up):
            score.add(labels.of("pool", pool.name), pool.read_score)
    return full, score
