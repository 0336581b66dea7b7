"""A point that an axis labels with a lab is refused on a cluster that is another one."""

from typing import Any

import pytest

from cephqos_loadgen.cluster import lab_fit
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.model import Plan
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse


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


def plan(name: str, scale: str = "tiny", **only: str) -> Plan:
    text, file = library.read(name)
    return parse(text, file, Choices(scale=scale, only={k: (v,) for k, v in only.items()}))


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
    points = plan("client-vs-recovery", media=media).points
    if not message:
        lab_fit.check(points, metadata)
        return
    with pytest.raises(
        ClusterUnfit, match=rf"point media={media},.* is not this cluster.*{message}"
    ):
        lab_fit.check(points, metadata)


def test_a_number_of_osds_that_is_an_axis_must_be_that_of_the_cluster() -> None:
    points = plan("cpu-placement", scale="lab", osds="1").points
    lab_fit.check(points, osds(1))
    with pytest.raises(ClusterUnfit, match="osds 1: it has 3"):
        lab_fit.check(points, osds(3))


def test_what_no_axis_decides_is_a_wish_for_a_lab_of_the_runs_own() -> None:
    lab_fit.check(plan("client-vs-scrub", scale="lab").points, osds(7))


def test_what_cannot_be_seen_from_outside_is_not_taken_for_granted() -> None:
    text = """\
scenario: s
matrix: {backing: {a: {lab: {backing: loop}}}}
phases: [{name: w, wait: {}, until: {duration: 1s}}]
"""
    with pytest.raises(ClusterUnfit, match="backing loop: this cannot be seen"):
        lab_fit.check(parse(text, "s.yaml").points, osds(3))
