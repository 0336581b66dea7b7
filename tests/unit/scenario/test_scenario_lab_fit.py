"""A point that an axis labels with a lab is refused on a cluster that is another one."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.shipped_plans import only, shipped_plan

from cephqos_loadgen.check import lab_fit
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.scenario.parse import parse


def osds(count: int, rotational: bool = False, db: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "id": osd,
            "rotational": str(int(rotational)),
            "bluefs_dedicated_db": str(int(db)),
            "osd_objectstore": "bluestore",
        }
        for osd in range(count)
    ]


@pytest.mark.parametrize(
    ("media", "metadata", "message"),
    [
        ("ssd", osds(3), ""),
        ("hdd", osds(3), "rotational true: osd.0 has false"),
        ("hdd", osds(3, rotational=True), ""),
        ("hdd_db", osds(3, rotational=True), "osd.0 has no DB apart"),
        ("hdd_db", osds(3, rotational=True, db=True), ""),
    ],
)
def test_media_that_a_point_is_named_after_must_be_those_of_the_osds(
    media: str, metadata: list[dict[str, Any]], message: str
) -> None:
    points = shipped_plan("client-vs-recovery", only=only(media=media)).points
    if not message:
        lab_fit.check(points, metadata)
        return
    with pytest.raises(
        ClusterUnfit, match=rf"point media={media},.* is not this cluster.*{message}"
    ):
        lab_fit.check(points, metadata)


def test_a_number_of_osds_that_is_an_axis_must_be_that_of_the_cluster() -> None:
    points = shipped_plan("cpu-placement", "lab", only=only(osds="1")).points
    lab_fit.check(points, osds(1))
    with pytest.raises(ClusterUnfit, match="osds 1: it has 3"):
        lab_fit.check(points, osds(3))


def test_what_no_axis_decides_is_a_wish_for_a_lab_of_the_runs_own() -> None:
    lab_fit.check(shipped_plan("client-vs-scrub", "lab").points, osds(7))


def test_what_cannot_be_seen_from_outside_is_not_taken_for_granted() -> None:
    text = """\
scenario: s
matrix: {backing: {a: {lab: {backing: loop}}}}
phases: [{name: w, wait: {}, until: {duration: 1s}}]
"""
    with pytest.raises(ClusterUnfit, match="backing loop: this cannot be seen"):
        lab_fit.check(parse(text, "s.yaml").points, osds(3))


@pytest.mark.parametrize(
    ("rotational", "declared", "message"),
    [
        (True, "false", "rotational false: osd.0 has true"),
        (False, "true", "rotational true: osd.0 has false"),
        (False, "false", ""),
        (True, "keep", ""),
    ],
)
def test_the_media_that_a_scenario_declares_are_those_of_the_cluster(
    rotational: bool, declared: str, message: str
) -> None:
    text = (
        "scenario: s\nlab: {backing: loop, rotational: DECLARED}\nphases: [{name: s, settle: {}}]"
    )
    points = parse(text.replace("DECLARED", declared), "s").points
    if not message:
        lab_fit.check(points, osds(2, rotational=rotational))
        return
    with pytest.raises(ClusterUnfit, match=f"{message}.*rotational=keep"):
        lab_fit.check(points, osds(2, rotational=rotational))


def test_a_limit_of_devices_that_a_scenario_declares_cannot_be_taken_for_granted() -> None:
    text = "scenario: s\nlab: {backing: loop, device_iops: LIMIT}\nphases: [{name: s, settle: {}}]"
    with pytest.raises(ClusterUnfit, match="device_iops 400: this cannot be seen"):
        lab_fit.check(parse(text.replace("LIMIT", "400"), "s").points, osds(2))
    lab_fit.check(parse(text.replace("LIMIT", "keep"), "s").points, osds(2))


def test_a_lab_that_was_started_with_the_limit_of_the_scenario_fits() -> None:
    text = "scenario: s\nlab: {backing: loop, device_iops: 400}\nphases: [{name: s, settle: {}}]"
    points = parse(text, "s").points
    lab_fit.check(points, osds(2), LabSpec(osds=2, backing="loop", device_iops=400))
    for limit, has in ((300, "300"), (None, "none")):
        lab = LabSpec(osds=2, backing="loop", device_iops=limit)
        with pytest.raises(ClusterUnfit, match=f"device_iops 400: the lab was started with {has}"):
            lab_fit.check(points, osds(2), lab)


def test_a_regime_that_a_scenario_asks_for_is_one_of_the_lab_alone() -> None:
    text = "scenario: s\nlab: {regime: scheduler}\nphases: [{name: s, settle: {}}]"
    points = parse(text, "s").points
    wish = points[0].lab
    assert (wish.backing, wish.device_iops) == ("loop", 300)
    lab_fit.check(points, osds(2), wish)
    with pytest.raises(ClusterUnfit, match="regime scheduler: the lab was started with none"):
        lab_fit.check(points, osds(2), LabSpec(backing="loop", device_iops=300))


def test_what_a_scenario_sets_is_not_overridden_by_its_regime() -> None:
    """OSDs prefer their ceph.conf to the monitors' configuration, where a scenario sets options."""
    text = """\
scenario: s
lab: {regime: scheduler}
settings: {osd: {bluestore_throttle_bytes: 40M}}
matrix: {shards: {one: {}, two: {settings: {osd: {osd_op_num_shards: 2}}}}}
phases: [{name: s, settle: {}}]"""
    one, two = ({option.name for option in point.lab.settings} for point in parse(text, "s").points)
    assert "bluestore_throttle_bytes" not in one
    assert "bluestore_throttle_deferred_bytes" in one
    assert one - two == {"osd_op_num_shards"}


def test_an_axis_over_fresh_labs_says_nothing_of_a_given_cluster() -> None:
    text = """\
scenario: s
matrix: {lab: {a: {lab: {fresh: true}}, b: {flags: [noscrub]}}}
phases: [{name: w, wait: {}, until: {duration: 1s}}]
"""
    lab_fit.check(parse(text, "s.yaml").points, osds(3))


def disk(sys: Path, rotates: bool) -> Path:
    """A sysfs whose only disk is the one that `sys` itself lies on, as a partition of sdz."""
    device = sys.stat().st_dev
    whole = sys / "devices/sdz"
    (whole / "sdz1").mkdir(parents=True)
    (whole / "sdz1/partition").write_text("1")
    (whole / "queue").mkdir()
    (whole / "queue/rotational").write_text(f"{int(rotates)}\n")
    (sys / "dev/block").mkdir(parents=True)
    link = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    link.symlink_to(whole / "sdz1")
    return sys


@pytest.mark.parametrize("rotates", [True, False])
def test_a_lab_whose_files_lie_on_another_kind_of_disk_says_so(
    tmp_path: Path, rotates: bool
) -> None:
    below = lab_fit.disk_below(tmp_path, disk(tmp_path, rotates))
    assert below == ("sdz", rotates)
    assert lab_fit.other_disk(osds(2, rotational=rotates), below) == ""
    said = lab_fit.other_disk(osds(2, rotational=not rotates), below)
    assert f"files lie on sdz, which {'rotates' if rotates else 'does not rotate'}" in said


def test_a_disk_that_cannot_be_seen_is_not_judged(tmp_path: Path) -> None:
    assert lab_fit.disk_below(tmp_path, tmp_path / "nothing") is None
    assert lab_fit.other_disk(osds(2), None) == ""
