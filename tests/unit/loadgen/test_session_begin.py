"""Before a run changes anything, it looks whether the cluster is the one that its points name."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.shipped_plans import only, shipped_plan

from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.run.session import Session
from cephqos_loadgen.scenario.parse import parse

from .session_cluster import Cluster, stand_in

LOOKS = {"wait_for_pgs", "osd dump", "osd metadata", "config get"}


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Three OSDs on SSDs of another host."""
    about = {"rotational": "0", "hostname": "b", "osd_objectstore": "bluestore"}
    found = stand_in(monkeypatch, Cluster(*({"id": osd, **about} for osd in range(3))))
    found.option = "65536"
    return found


async def refused(cluster: Cluster, what: Plan) -> str:
    access: Any = SimpleNamespace(place=SimpleNamespace(work=""), disks=None, spec=None)
    archive: Any = SimpleNamespace(run="r", event=lambda *_, **__: None)
    run = Session(access, archive, what, take_over=False)
    with pytest.raises(ClusterUnfit) as error:
        await run.begin()
    assert not run.journal.used and set(cluster.asked) <= LOOKS, "nothing was changed"
    return str(error.value)


async def test_points_that_are_named_after_another_lab_are_refused_on_a_given_cluster(
    cluster: Cluster,
) -> None:
    """`hdd` on SSDs, one OSD on three."""
    said = await refused(cluster, shipped_plan("client-vs-recovery", only=only(media="hdd")))
    assert "is not this cluster: rotational true: osd.0 has false" in said
    said = await refused(cluster, shipped_plan("cpu-placement"))
    assert "is not this cluster: osds 2: it has 3" in said


async def test_an_osd_that_is_down_is_none_of_those_that_a_point_names(
    cluster: Cluster,
) -> None:
    """`osds=3` on two that serve; what is down keeps its metadata."""
    cluster.down = {2}
    said = await refused(cluster, shipped_plan("cpu-placement", "lab", only=only(osds="3")))
    assert "osds 3: it has 2" in said


async def test_queues_and_cpus_of_osds_elsewhere_are_refused(cluster: Cluster) -> None:
    text = "scenario: s\nPHASES"
    for part in (
        "devices: {scheduler: none}\nphases: [{name: w, wait: {}, until: {duration: 1s}}]",
        "phases: [{name: place, pin: {strategy: default}}]",
    ):
        said = await refused(cluster, parse(text.replace("PHASES", part), "s.yaml"))
        assert "were not found on it: osd.0 (host b), osd.1 (host b), osd.2 (host b)" in said


@pytest.mark.parametrize(
    ("phase", "at_once", "expected"),
    [
        ("osd_out: {osd: last}", False, ["mon mon_osd_laggy_weight 0"]),
        ("osd_out: {osd: last}", True, []),
        ("settle: {}", False, []),
    ],
)
async def test_monitors_do_not_learn_that_an_osd_that_a_run_takes_out_is_slow(
    monkeypatch: pytest.MonkeyPatch, phase: str, at_once: bool, expected: list[str]
) -> None:
    """Otherwise they would find its next failure minutes later, for two days."""
    what = parse(f"scenario: s\nphases: [{{name: a, {phase}}}]", "s.yaml")
    access: Any = SimpleNamespace(at_once=at_once)
    run = Session(access, SimpleNamespace(), what, take_over=False)  # type: ignore[arg-type]
    applied: list[str] = []

    async def apply(options: Any) -> None:
        applied.extend(f"{it.section} {it.name} {it.value}" for it in options)

    monkeypatch.setattr(run.settings, "apply", apply)
    await run._learn_nothing_of_osds()
    assert applied == expected
