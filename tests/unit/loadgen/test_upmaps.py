"""Placements of single placement groups: which are written down, and what is given back."""

from typing import Any

from cephqos_loadgen.cluster import upmaps
from cephqos_loadgen.cluster.steps.osds import upmap_steps
from cephqos_loadgen.cluster.steps.registry import read_step, stored


class Cluster:
    """Its map, the groups of osd.3, and what it was told."""

    def __init__(self, items: dict[str, list[int]], whole: dict[str, list[int]]) -> None:
        self.items, self.whole = items, whole
        self.told: list[tuple[str, str, list[int]]] = []

    @property
    def dump(self) -> dict[str, Any]:
        def pairs(osds: list[int]) -> list[dict[str, int]]:
            return [{"from": a, "to": b} for a, b in zip(osds[::2], osds[1::2], strict=True)]

        return {
            "pools": [{"pool": 1}, {"pool": 2}],
            "pg_upmap_items": [
                {"pgid": pg, "mappings": pairs(osds)} for pg, osds in self.items.items()
            ],
            "pg_upmap": [{"pgid": pg, "osds": osds} for pg, osds in self.whole.items()],
        }

    async def command(self, prefix: str, target: str = "mon", **arguments: Any) -> Any:
        if prefix == "osd dump":
            return self.dump
        if prefix == "pg ls-by-osd":
            assert (target, arguments) == ("mgr", {"osd": 3})
            return {"pg_stats": [{"pgid": "1.2"}, {"pgid": "1.9"}]}
        self.told.append((prefix, arguments["pgid"], arguments["id"]))
        return None


ITEMS = {
    "1.0": [0, 1],  # nothing of osd.3
    "1.1": [3, 1],  # moved away from it
    "1.2": [0, 1],  # it has this one as well
    "2.1": [0, 3, 1, 2],
    "9.1": [0, 3],  # of a pool that is gone
}
WHOLE = {"2.7": [3, 0, 1], "2.8": [0, 1, 2]}


async def test_those_of_the_osd_that_goes_out_are_written_down() -> None:
    cluster: Any = Cluster(ITEMS, WHOLE)
    found = await upmaps.at_stake(cluster, cluster.dump, 3)
    assert {pg for placements in found.values() for pg in placements} == {
        *("1.1", "1.2", "2.1", "9.1", "2.7")
    }
    items, whole = upmap_steps(found)
    assert "ceph osd pg-upmap-items 2.1 0 3 1 2" in items.shown
    assert "ceph osd pg-upmap 2.7 3 0 1" in whole.shown


async def test_only_what_was_removed_or_changed_is_given_back() -> None:
    cluster: Any = Cluster(ITEMS, WHOLE)
    steps = upmap_steps(await upmaps.at_stake(cluster, cluster.dump, 3))
    cluster.items = {"1.0": [0, 1], "1.2": [0, 1], "2.1": [0, 3]}
    cluster.whole = {}
    for step in steps:
        assert await read_step("key", stored(step)).carry_out(cluster) == ""
    assert cluster.told == [
        ("osd pg-upmap-items", "1.1", [3, 1]),
        ("osd pg-upmap-items", "2.1", [0, 3, 1, 2]),
        ("osd pg-upmap", "2.7", [3, 0, 1]),
    ]


async def test_a_cluster_without_any_is_asked_nothing() -> None:
    cluster: Any = Cluster({}, {})
    assert await upmaps.at_stake(cluster, cluster.dump, 3) == {}
