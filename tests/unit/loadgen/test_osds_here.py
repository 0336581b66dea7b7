"""An OSD on another host never turns this host's disks: processes decide, not device names."""

from typing import Any

import pytest

from cephqos_loadgen.cluster import osds_here
from cephqos_loadgen.phase_kinds.osd_out_in import way_back
from cephqos_loadgen.plan.errors import ClusterUnfit, RunError
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.scenario.parse import parse

QUEUES = """\
scenario: queues
devices: {scheduler: none}
phases: [{name: rest, wait: {}, until: {duration: 1s}}]
"""
PINNED = """\
scenario: pinned
phases: [{name: place, pin: {strategy: default, apply: APPLY}}]
"""
NEITHER = "scenario: s\nphases: [{name: rest, wait: {}, until: {duration: 1s}}]\n"


class Cluster:
    """Two OSDs that both say sdb: one of this host, the other of host b."""

    def __init__(self, here: dict[str, int], up: tuple[int, ...] = (0, 1)) -> None:
        self._here, self._up = here, up

    async def pids(self) -> dict[str, int]:
        return self._here

    async def up_osds(self) -> list[int]:
        return list(self._up)

    async def command(self, prefix: str) -> list[dict[str, Any]]:
        assert prefix == "osd metadata"
        return METADATA


METADATA = [
    {"id": 0, "hostname": "a", "devices": "sdb,nvme0n1"},
    {"id": 1, "hostname": "b", "devices": "sdb,sdc"},
]
BOTH = {"osd.0": 10, "osd.1": 11}


def plan(text: str) -> Plan:
    return parse(text, "s.yaml")


async def check(cluster: Cluster, text: str) -> None:
    await osds_here.check(cluster, plan(text))  # type: ignore[arg-type]


def test_only_devices_of_osds_whose_processes_are_here_are_chosen() -> None:
    assert osds_here.devices(METADATA, {"osd.0": 10}) == {"sdb", "nvme0n1"}
    assert osds_here.devices(METADATA, {}) == set()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (QUEUES, "the scenario sets queues of the OSDs' devices"),
        (PINNED.replace("APPLY", "true"), "phase place pins OSDs"),
    ],
)
async def test_a_run_that_could_change_only_some_of_the_osds_is_refused(
    text: str, what: str
) -> None:
    with pytest.raises(ClusterUnfit, match=f"^{what}, .* not found on it: osd.1 .host b.") as error:
        await check(Cluster({"osd.0": 10}), text)
    assert "osd.0" not in str(error.value)
    assert "--sockets" in str(error.value)
    await check(Cluster(BOTH), text)


async def test_an_osd_that_is_down_has_nothing_to_change() -> None:
    await check(Cluster({"osd.0": 10}, up=(0,)), QUEUES)


@pytest.mark.parametrize("text", [NEITHER, PINNED.replace("APPLY", "false")])
async def test_other_runs_do_not_care_where_osds_are(text: str) -> None:
    await check(Cluster({}), text)


# -- an OSD that is taken down and out ------------------------------------------------------------


def entry(**changes: Any) -> dict[str, Any]:
    return {"osd": 3, "up": 1, "in": 1, "weight": 1, **changes}


def test_an_osd_comes_back_with_the_weight_that_it_had() -> None:
    """`ceph osd in` may give it another."""
    assert way_back(entry(weight=0.85)).shown == (
        "ceph osd unset-group noup osd.3 && ceph osd in 3 && ceph osd reweight 3 0.850005"
    )
    assert way_back(entry()).shown == "ceph osd unset-group noup osd.3 && ceph osd in 3"


def test_a_flag_that_an_operator_gave_to_an_osd_is_there_again() -> None:
    """It comes up without the flag first."""
    assert way_back(entry(state=["exists", "up", "noup"])).shown == (
        "ceph osd unset-group noup osd.3 && ceph osd in 3 && ceph osd set-group noup osd.3"
    )


@pytest.mark.parametrize("change", [{"up": 0}, {"in": 0, "weight": 0}])
def test_an_osd_that_is_away_already_is_not_brought_in_by_a_run(change: dict[str, float]) -> None:
    with pytest.raises(RunError, match=r"osd\.3 is not up and in"):
        way_back(entry(**change))
