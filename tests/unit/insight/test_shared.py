"""What slow OSDs share and the others do not."""

from collections.abc import Iterable
from typing import Any

from cephqos_base.prometheus import OsdKey, Sample
from cephqos_insight.places import places
from cephqos_insight.shared import shared_by, slow_osds, traits_of


def osd(number: int) -> OsdKey:
    return OsdKey("c", f"osd.{number}")


def samples(count: int, model: str = "A", **special: Iterable[int]) -> list[Sample]:
    """Devices of `count` OSDs, six on a host; `B=[1, 2]` gives osd.1 and osd.2 the model B."""
    models = {number: name for name, numbers in special.items() for number in numbers}
    return [
        (
            {
                "cluster": "c",
                "ceph_daemon": f"osd.{number}",
                "role": "block",
                "layer": "disk",
                "device": f"sd{number}",
                "model": models.get(number, model),
            },
            1.0,
        )
        for number in range(count)
    ]


def hosts(count: int) -> list[Sample]:
    return [
        (
            {"cluster": "c", "ceph_daemon": f"osd.{i}", "instance": f"ceph{i // 6}:10130"},
            1.0,
        )
        for i in range(count)
    ]


def shared(slow: Iterable[int], disks: list[Sample], count: int = 24) -> str:
    return shared_by({osd(i) for i in slow}, traits_of(disks, hosts(count)))


def test_a_model_that_only_slow_ones_have_is_named_with_its_counts() -> None:
    slow = [0, 7, 13, 20]
    said = shared(slow, samples(24, B=slow))
    assert said == "model B (4 of 4 slow OSDs; 0 of 20 others)"


def test_a_host_is_named_and_what_all_osds_have_is_not() -> None:
    assert shared([6, 7, 8, 9], samples(24)) == "host ceph1 (4 of 4 slow OSDs; 2 of 20 others)"


def test_two_slow_ones_on_a_host_may_be_chance() -> None:
    assert shared([6, 7], samples(24)) == ""


def test_too_few_to_compare_share_nothing() -> None:
    assert shared([0], samples(24, B=[0])) == ""
    assert shared([0, 1], samples(4, B=[0, 1]), count=4) == ""
    assert shared([], samples(24)) == ""


def test_a_db_device_is_known_by_its_host() -> None:
    disks = samples(24)
    for number in (0, 1, 2, 6):
        place = {"cluster": "c", "ceph_daemon": f"osd.{number}", "role": "db", "layer": "disk"}
        disks.append((place | {"device": "nvme0n1"}, 1.0))
    said = shared([0, 1, 2], disks)
    assert said.startswith("DB device ceph0 nvme0n1 (3 of 3 slow OSDs; 0 of 21 others); host ceph0")


def test_many_placement_groups_are_a_trait_of_their_own() -> None:
    counts = {0: 180.0, 7: 150.0, 13: 200.0}
    pgs = [
        ({"cluster": "c", "ceph_daemon": f"osd.{i}"}, counts.get(i, 100.0 + i)) for i in range(24)
    ]
    traits = traits_of(samples(24), hosts(24), pgs)
    # The median is 114.5: 180 and 200 are far above it, 150 is not.
    assert shared_by({osd(0), osd(13)}, traits) == (
        "placement groups at least 1.5 times the median (2 of 2 slow OSDs; 0 of 22 others)"
    )
    assert shared_by({osd(1), osd(2)}, traits) == ""
    assert traits_of(samples(3), hosts(3), []) == traits_of(samples(3), hosts(3))


def test_racks_and_releases_come_from_the_cluster() -> None:
    hosts_of = {-2: [0, 1], -3: [2, 3], -4: [4, 5]}
    nodes: list[dict[str, Any]] = [
        {"id": -1, "type": "root", "name": "default", "children": [-10, -11]},
        {"id": -10, "type": "rack", "name": "r1", "children": [-2, -3]},
        {"id": -11, "type": "rack", "name": "r2", "children": [-4]},
        *({"id": i, "type": "host", "name": f"h{i}", "children": o} for i, o in hosts_of.items()),
        *({"id": i, "type": "osd", "name": f"osd.{i}"} for i in range(6)),
    ]
    metadata = [{"id": i, "ceph_version_short": "19.2.0" if i > 3 else "18.2.7"} for i in range(5)]
    found = places("c", nodes, [*metadata, {"id": 5}])
    assert found[osd(0)] == {("rack", "r1"), ("release", "18.2.7")}
    assert found[osd(4)] == {("rack", "r2"), ("release", "19.2.0")}
    assert found[osd(5)] == {("rack", "r2")}
    traits = traits_of(
        samples(24), hosts(24), places={osd(i): {("rack", "r1")} for i in (0, 7, 13)}
    )
    assert shared_by({osd(0), osd(7), osd(13)}, traits).startswith(
        "rack r1 (3 of 3 slow OSDs; 0 of"
    )


def test_slow_is_far_above_the_median() -> None:
    seconds = {osd(i): 1.0 for i in range(5)} | {osd(5): 3.9, osd(6): 4.1}
    assert slow_osds(seconds) == {osd(6)}
    assert slow_osds({}) == ()
