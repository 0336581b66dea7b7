"""Whether there is room where a run writes: a full OSD stops the writes of every pool that it has.

Pools of a run get the cluster's default CRUSH rule, which often means OSDs of one device class. An
OSD gets data by its weight, so the fullest one decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.restarts import below, failure_domain, homes_of
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Phase, Point
from cephqos_loadgen.plan.words import size

_DEFAULT_COPIES = 3
# Ceph's defaults of the ratios at which it warns, and at which an OSD takes no backfill.
_NEARFULL, _BACKFILLFULL = 0.85, 0.9
_REPLICATED = 1  # the type of a CRUSH rule


def pool_bytes(pool: PlannedPool, phases: Iterable[Phase], copies: int = _DEFAULT_COPIES) -> int:
    """What a pool will hold, with all its copies. Images count as a whole: loads may fill them.
    `copies`: of a pool that does not say how many it has."""
    held = pool.images.count * pool.images.size if pool.images else 0
    written = [pool.objects] if pool.objects else []
    for phase in phases:
        if pool.name in (added := phase.action.writes()):
            written.append(added[pool.name])
    held += sum(objects.count * objects.size for objects in written)
    return held * (pool.size or copies)


def plan_bytes(
    points: Iterable[Point], present: Collection[str] = (), copies: int = _DEFAULT_COPIES
) -> int:
    """What these points need at most at one time, without the pools that are present already.

    Pools with one name follow each other. What rados bench writes is not known before.
    """
    largest: dict[str, int] = {}  # by name of the pool
    for point in points:
        for pool in point.pools:
            if pool.name not in present:
                held = pool_bytes(pool, point.phases, copies)
                largest[pool.name] = max(largest.get(pool.name, 0), held)
    return sum(largest.values())


async def check(cluster: ClusterView, points: Iterable[Point], present: Collection[str]) -> None:
    """ClusterUnfit if the run would fill OSDs past the ratio at which Ceph warns."""
    points = tuple(points)
    if not plan_bytes(points, present):
        return
    need = plan_bytes(points, present, await _default(cluster, "osd_pool_default_size"))
    crush = await cluster.command("osd crush dump")
    rule = _default_rule(crush, await _default(cluster, "osd_pool_default_crush_rule"))
    ratio = (await cluster.command("osd dump")).get("nearfull_ratio", _NEARFULL)
    room = _room(await _disks(cluster), osds_of(rule, crush), ratio)
    if room.fullest is None:
        raise ClusterUnfit(
            f"no OSD that the CRUSH rule {rule['rule_name']} takes has a weight and has reported"
            " its size: expected one or more (`ceph osd df`)"
        )
    if need > room.size:
        raise ClusterUnfit(
            f"the pools of this run take {size(need)} with all copies, and the OSDs of the CRUSH"
            f" rule {rule['rule_name']} have {size(room.size)} of room before osd.{room.fullest},"
            " the fullest, is nearly full: use a smaller --scale or --var, fewer points (--only),"
            " or a larger cluster"
        )


async def why_no_room(cluster: ClusterView, osd_dump: Mapping[str, Any], osd: int) -> str:
    """Why other OSDs cannot take what this one has, if it goes out; empty if they can.

    With more failure domains than copies, all others of the rule take it. Else only those of its
    own domain can.
    """
    disks = await _disks(cluster)
    crush = await cluster.command("osd crush dump")
    ratio = osd_dump.get("backfillfull_ratio", _BACKFILLFULL)
    for rule in crush["rules"]:
        sizes = [p["size"] for p in osd_dump["pools"] if p["crush_rule"] == rule["rule_id"]]
        osds = osds_of(rule, crush) & disks.keys()
        if not sizes or osd not in osds:
            continue
        named = homes_of(failure_domain(rule), crush)
        homes = {one: named.get(one, one) for one in osds}  # without a bucket, each by itself
        all_take = len(set(homes.values())) > max(sizes)
        takers = {one for one in osds - {osd} if all_take or homes[one] == homes[osd]}
        room = _room(disks, takers, ratio)
        if takers and disks[osd].used > room.size:
            return (
                f"osd.{osd} has {size(disks[osd].used)}, and the OSDs that would take it have"
                f" {size(room.size)} of room before osd.{room.fullest} takes no backfill"
            )
    return ""


# -- OSDs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Disk:
    """What an OSD has, in bytes, and the weight by which it gets data."""

    size: int
    used: int
    weight: float


@dataclass(frozen=True, slots=True)
class _Room:
    """What OSDs can take together, in bytes, until the fullest has reached a ratio."""

    size: int = 0
    fullest: int | None = None


async def _disks(cluster: ClusterView) -> dict[int, _Disk]:
    """By OSD; without those that get no data, or have not reported what they have."""
    nodes: Sequence[Mapping[str, Any]] = (await cluster.command("osd df", target="mgr"))["nodes"]
    disks = {
        int(node["id"]): _Disk(
            int(node["kb"]) << 10,
            int(node["kb_used"]) << 10,
            float(node["crush_weight"]) * float(node["reweight"]),
        )
        for node in nodes
    }
    return {osd: disk for osd, disk in disks.items() if disk.size and disk.weight}


def _room(disks: Mapping[int, _Disk], osds: Collection[int], ratio: float) -> _Room:
    found = {osd: disk for osd, disk in disks.items() if osd in osds}
    whole = sum(disk.weight for disk in found.values())
    rooms = [
        _Room(max(0, round((disk.size * ratio - disk.used) * whole / disk.weight)), osd)
        for osd, disk in found.items()
    ]
    return min(rooms, key=lambda room: room.size, default=_Room())


async def _default(cluster: ClusterView, name: str) -> int:
    """What new pools get."""
    return int(str(await cluster.command("config get", who="mon", key=name)).strip())


def _default_rule(crush: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The rule of new pools; with a negative number the first one for copies, as Ceph takes it."""
    rules = sorted(crush["rules"], key=lambda rule: int(rule["rule_id"]))
    for rule in rules:
        if rule["rule_id"] == number or (number < 0 and rule["type"] == _REPLICATED):
            found: Mapping[str, Any] = rule
            return found
    raise ClusterUnfit(
        f"osd_pool_default_crush_rule is {number}, and there is no such CRUSH rule for copies: Ceph"
        " makes no pool without one (`ceph osd crush rule dump`)"
    )


def osds_of(rule: Mapping[str, Any], crush: Mapping[str, Any]) -> set[int]:
    """The OSDs that a CRUSH rule takes: of a class, where it names one."""
    roots = [step["item"] for step in rule["steps"] if step["op"] == "take"]
    return {osd for root in roots for osd in ((root,) if root >= 0 else below(root, crush))}
