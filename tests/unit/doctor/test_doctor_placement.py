"""Pools whose copies lie closer together than the cluster allows, or that bear no loss, and hosts
that die unseen."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.recorded import RECORDINGS
from tests.unit.doctor.doctor_facts import found, mends
from tests.unit.doctor.test_doctor_cluster import a_minimal_key, looked_at

from cephqos_doctor import placement
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import Finding, diagnose

# As `osd crush rule dump` of 20.2 shows the rules of a replicated pool and of erasure code.
RULE: dict[str, Any] = {
    "rule_id": 0,
    "rule_name": "replicated_rule",
    "type": 1,
    "steps": [
        {"op": "take", "item": -1, "item_name": "default"},
        {"op": "chooseleaf_firstn", "num": 0, "type": "host"},
        {"op": "emit"},
    ],
}
ERASURE_RULE = {
    "rule_id": 1,
    "rule_name": "ecp",
    "type": 3,
    "steps": [
        {"op": "set_chooseleaf_tries", "num": 5},
        {"op": "set_choose_tries", "num": 100},
        {"op": "take", "item": -1, "item_name": "default"},
        {"op": "choose_indep", "num": 0, "type": "osd"},
        {"op": "emit"},
    ],
}


def tree(racks: int, hosts: int, classes: tuple[str, ...] = ("ssd",)) -> dict[str, Any]:
    """`osd tree`: each host has an OSD of each class."""
    rack_ids: list[int] = []
    nodes: list[dict[str, Any]] = [
        {"id": -1, "name": "default", "type": "root", "type_id": 11, "children": rack_ids}
    ]
    for rack in range(racks):
        rack_ids.append(below := -100 - rack)
        children = [-1000 - 100 * rack - host for host in range(hosts)]
        nodes.append(
            {"id": below, "name": f"r{rack}", "type": "rack", "type_id": 3, "children": children}
        )
        for host in children:
            osds = [-1000 * host + number for number in range(len(classes))]
            nodes.append(
                {"id": host, "name": f"h{host}", "type": "host", "type_id": 1, "children": osds}
            )
            nodes += [
                {"id": osd, "name": f"osd.{osd}", "type": "osd", "type_id": 0, "device_class": kind}
                for osd, kind in zip(osds, classes, strict=True)
            ]
    return {"nodes": nodes, "stray": []}


def findings(
    pool: dict[str, Any], osd_tree: dict[str, Any], *rules: dict[str, Any]
) -> list[Finding]:
    whole = {"pool_name": "rbd", "type": 1, "size": 3, "min_size": 2, "crush_rule": 0} | pool
    facts = ClusterFacts(
        name="client.cephqos",
        osd_map={"pools": [whole], "erasure_code_profiles": {"k4": {"k": "4"}, "k2": {"k": "2"}}},
        osd_tree=osd_tree,
        crush_rules=list(rules or (RULE, ERASURE_RULE)),
    )
    return found(placement.CHECKS, facts).get("copies-apart", [])


def on_class(kind: str) -> dict[str, Any]:
    take = {"op": "take", "item": -2, "item_name": f"default~{kind}"}
    return RULE | {"steps": [take, *RULE["steps"][1:]]}


def test_a_rule_over_hosts_where_there_are_racks_is_found() -> None:
    [finding] = findings({}, tree(racks=3, hosts=2))
    assert "another host, and there are 3 of type rack" in finding.problem
    assert finding.mend.startswith(
        "ceph osd crush rule create-replicated by-rack default rack\n"
        "ceph osd pool set rbd crush_rule by-rack "
    )
    [finding] = findings({}, tree(racks=3, hosts=2), on_class("ssd"))
    assert "create-replicated by-rack default rack ssd\n" in finding.mend


@pytest.mark.parametrize(
    ("osd_tree", "rule"),
    [
        (tree(racks=2, hosts=4), RULE),  # too few racks for three copies
        (tree(racks=3, hosts=2), on_class("hdd")),  # none of its OSDs is in a rack
        (tree(racks=3, hosts=2), RULE | {"steps": [*RULE["steps"][:2], *RULE["steps"][1:]]}),
        ({}, RULE),
    ],
)
def test_a_rule_that_could_not_be_wider_or_was_made_by_an_expert_is_left_alone(
    osd_tree: dict[str, Any], rule: dict[str, Any]
) -> None:
    assert findings({}, osd_tree, rule) == []


def test_a_rule_over_osds_where_there_are_hosts_is_found_for_erasure_code_too() -> None:
    pool = {"type": 3, "size": 6, "min_size": 5, "crush_rule": 1, "erasure_code_profile": "p"}
    [finding] = findings(pool, tree(racks=2, hosts=3))
    assert "another osd, and there are 6 of type host" in finding.problem
    assert finding.mend.startswith("ceph osd erasure-code-profile get p ")
    assert "crush-failure-domain=host" in finding.mend and mends(finding)
    assert findings(pool, tree(racks=1, hosts=5)) == []


def _erasure(k: int, m: int, min_size: int) -> dict[str, Any]:
    return {
        "type": 3,
        "size": k + m,
        "min_size": min_size,
        "erasure_code_profile": f"k{k}",
    }


_OTHER_PROFILE = "ceph osd erasure-code-profile set PROFILE k=2 m=2   # for a pool in its place"


@pytest.mark.parametrize(
    ("pool", "mend"),
    [
        ({"size": 2, "min_size": 1}, "ceph osd pool set rbd size 3"),
        ({"size": 1, "min_size": 1}, "ceph osd pool set rbd size 3"),
        ({"min_size": 1}, "ceph osd pool set rbd min_size 2"),
        ({"min_size": 3}, "ceph osd pool set rbd min_size 2"),
        ({"size": 4, "min_size": 2}, ""),
        (_erasure(4, 2, min_size=6), "ceph osd pool set rbd min_size 5"),
        (_erasure(4, 2, min_size=4), "ceph osd pool set rbd min_size 5"),
        (_erasure(4, 2, min_size=5), ""),
        (_erasure(2, 1, min_size=3), _OTHER_PROFILE),
        (_erasure(2, 1, min_size=2), _OTHER_PROFILE),
        (_erasure(2, 1, min_size=3) | {"erasure_code_profile": "gone"}, ""),
    ],
)
def test_a_pool_that_bears_no_loss_is_found(pool: dict[str, Any], mend: str) -> None:
    assert [one.mend for one in findings(pool, tree(racks=1, hosts=1))] == ([mend] if mend else [])


@pytest.mark.parametrize("release", ["pacific", "reef", "tentacle"])
def test_pools_of_each_release_are_judged(release: str) -> None:
    place = RECORDINGS / f"cluster/{release}/idle"
    osd_map, osd_tree = (
        json.loads((place / f"{name}.json").read_text()) for name in ("osd_dump", "osd_tree")
    )
    facts = ClusterFacts(
        name="x", osd_map=osd_map, osd_tree=osd_tree, crush_rules=[RULE], reporters=2, rotates={}
    )
    # The lab's pools have one host, and two copies of which one is enough.
    names = {pool["pool_name"] for pool in osd_map["pools"] if pool["min_size"] == 1}
    assert names
    assert {one.subject for one in found(placement.CHECKS, facts)["copies-apart"]} == names
    assert diagnose("it", placement.CHECKS, facts).skipped == ()


def test_pools_with_the_same_fault_are_told_together() -> None:
    """An RGW has a dozen pools."""
    pools = [{"pool_name": n, "type": 1, "size": 3, "min_size": 1} for n in ("rgw.log", "rgw.meta")]
    facts = ClusterFacts(
        name="x", osd_map={"pools": pools}, osd_tree=tree(1, 1), crush_rules=[RULE]
    )
    said = diagnose("it", placement.CHECKS, facts).text()
    assert said.startswith("rgw.log and 1 more: this pool's size is 3 and its min_size 1")
    assert "# the same for rgw.meta" in said


def test_without_rules_nothing_is_judged() -> None:
    facts = ClusterFacts(name="x", osd_map={"pools": []}, osd_tree=tree(1, 1), reporters=2)
    skipped = [name for name, _ in diagnose("it", placement.CHECKS, facts).skipped]
    assert skipped == ["copies-apart", "rules-have-osds", "classes-as-media"]


@pytest.mark.parametrize(
    ("pool", "rule", "finds"),
    [
        ({}, RULE, ""),
        ({}, on_class("ssd"), ""),
        ({}, on_class("hdd"), "finds 0 with an OSD of device class hdd"),
        ({"size": 5, "min_size": 3}, RULE, "puts 5 copies or parts on 5 of type host, and finds 4"),
        ({"size": 5, "min_size": 3, "crush_rule": 1}, ERASURE_RULE, "5 of type osd, and finds 4"),
        ({}, RULE | {"steps": [*RULE["steps"][:2], *RULE["steps"][1:]]}, ""),  # an expert's
    ],
)
def test_a_rule_that_finds_too_few_osds_is_found(
    pool: dict[str, Any], rule: dict[str, Any], finds: str
) -> None:
    """As when all disks were replaced by SSDs, and the pool still asks for disks."""
    facts = ClusterFacts(
        name="x",
        osd_map={"pools": [{"pool_name": "rbd", "type": 1, "size": 3, "crush_rule": 0} | pool]},
        osd_tree=tree(racks=2, hosts=2),
        crush_rules=[rule],
    )
    findings = found(placement.CHECKS, facts).get("rules-have-osds", [])
    assert len(findings) == bool(finds)
    for finding in findings:
        assert finds in finding.problem and mends(finding)


def test_a_host_that_is_out_for_now_asks_for_no_other_rule() -> None:
    osd_tree = tree(racks=1, hosts=3)
    osd_tree["nodes"][-1]["reweight"] = 0
    pools = [{"pool_name": "rbd", "type": 1, "size": 3, "crush_rule": 0}]
    facts = ClusterFacts(name="x", osd_map={"pools": pools}, osd_tree=osd_tree, crush_rules=[RULE])
    assert "rules-have-osds" not in found(placement.CHECKS, facts)


@pytest.mark.parametrize(
    ("kind", "rotates", "wrong"),
    [
        ("hdd", True, False),
        ("hdd", False, True),
        ("nvme", True, True),
        ("ssd", False, False),
        ("archive", True, False),  # a class of their own says nothing
    ],
)
async def test_a_class_of_another_medium_than_the_device_is_found(
    kind: str, rotates: bool, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    osd_tree = tree(racks=1, hosts=1, classes=(kind,))
    osd = osd_tree["nodes"][-1]["id"]

    def answer(target: str, prefix: str) -> Any:
        if prefix == "osd metadata":
            return [{"id": osd, "rotational": str(int(rotates))}, {"id": 9, "rotational": ""}]
        return osd_tree if prefix == "osd tree" else a_minimal_key(target, prefix)

    facts, _ = await looked_at(monkeypatch, answer, try_powers=False)
    assert facts.rotates == {osd: rotates}
    findings = found(placement.CHECKS, facts).get("classes-as-media", [])
    assert len(findings) == wrong
    for finding in findings:
        assert f"set-device-class {'hdd' if rotates else 'ssd'} osd.{osd} " in finding.mend


@pytest.mark.parametrize(
    ("hosts", "reporters", "mend"),
    [
        (2, 2, "ceph config set mon mon_osd_min_down_reporters 1   #"),
        (3, 3, "ceph config set mon mon_osd_min_down_reporters 2   #"),
        (3, 2, ""),
        (2, 1, ""),
        (1, 2, ""),  # with its only host all is down
    ],
)
def test_a_host_that_dies_unreported_is_found(hosts: int, reporters: int, mend: str) -> None:
    facts = ClusterFacts(name="x", osd_tree=tree(1, hosts), reporters=reporters)
    findings = found(placement.CHECKS, facts).get("down-is-reported", [])
    assert [one.mend[: len(mend)] for one in findings] == ([mend] if mend else [])


async def test_the_monitors_say_how_many_must_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(said: Any) -> Callable[[str, str], Any]:
        return lambda target, prefix: (
            said if prefix == "config get" else a_minimal_key(target, prefix)
        )

    facts, _ = await looked_at(monkeypatch, answer("2\n"), try_powers=False)
    assert facts.reporters == 2
    facts, _ = await looked_at(monkeypatch, answer({}), try_powers=False)
    assert facts.reporters is None
