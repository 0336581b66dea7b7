"""Room is that of the OSDs that are written to, and of those that take what another had."""

from pathlib import Path
from typing import Any

import pytest

from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.phase_kinds.osd_out_in import OsdOut
from cephqos_loadgen.plan.errors import ClusterUnfit, RunError
from cephqos_loadgen.pools import free_space
from cephqos_loadgen.scenario.parse import parse

from ..cephadm_cluster import CephadmCluster, connection, crush, over, rule

PART = (0, 3, 1)  # OSDs of one class, as the copy of the root for it has them


def needing(gib: int, size: str = "size: 2, ") -> Any:
    text = (
        f"scenario: s\npools: [{{name: p, {size}images: {{size: {gib}G}}}}]\n"
        "phases: [{name: s, scrub: {pool: p}}]\n"
    )
    return parse(text, "s.yaml").points


@pytest.fixture
def cluster() -> CephadmCluster:
    """Six OSDs of 100 GiB with 75 GiB of room each, on three hosts."""
    found = CephadmCluster()
    found.crush = of_class(rule(0, over("host")))
    return found


@pytest.fixture
def link(cluster: CephadmCluster, tmp_path: Path) -> ClusterConnection:
    return connection(cluster, tmp_path)[0]


def of_class(*rules: dict[str, Any]) -> dict[str, Any]:
    found = crush(*rules)
    items = [{"id": osd} for osd in PART]
    found["buckets"].append({"id": -30, "name": "default~ssd", "type_name": "root", "items": items})
    return found


async def refused(link: ClusterConnection, points: Any) -> str:
    with pytest.raises(ClusterUnfit) as error:
        await free_space.check(link, points, ())
    return str(error.value)


async def test_a_run_that_would_fill_osds_is_refused_with_what_it_needs(
    link: ClusterConnection,
) -> None:
    await free_space.check(link, needing(225), ())
    said = await refused(link, needing(226))
    assert "take 452 GiB with all copies, and the OSDs of the CRUSH rule r0 have 450 GiB" in said
    assert "before osd.0, the fullest, is nearly full" in said
    await free_space.check(link, needing(226), ("p",))


async def test_the_fullest_osd_decides(cluster: CephadmCluster, link: ClusterConnection) -> None:
    """It gets as much as the others, and stops the writes of all when it is full."""
    cluster.used[4] = 80
    assert "have 30 GiB of room before osd.4" in await refused(link, needing(16))
    cluster.weight[4] = 0.25  # then it gets a fifth as much
    await free_space.check(link, needing(16), ())
    cluster.weight[4] = 0  # nothing at all
    await free_space.check(link, needing(180), ())


async def test_only_osds_of_the_class_of_the_rule_of_new_pools_count(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.crush = of_class(
        rule(4, over("host")), rule(1, over("host"), root=-30), rule(0, over("host"), kind=3)
    )
    assert "rule r1 have 225 GiB" in await refused(link, needing(120))
    cluster.stored["mon", "osd_pool_default_crush_rule"] = "4"
    await free_space.check(link, needing(120), ())
    cluster.stored["mon", "osd_pool_default_crush_rule"] = "9"
    assert "osd_pool_default_crush_rule is 9, and there is no such" in await refused(
        link, needing(1)
    )


async def test_a_pool_without_a_size_has_as_many_copies_as_the_cluster_gives(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    await free_space.check(link, needing(150, ""), ())
    cluster.stored["mon", "osd_pool_default_size"] = "4"
    assert "take 600 GiB" in await refused(link, needing(150, ""))


async def test_osds_that_have_not_reported_are_no_room(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.weight = dict.fromkeys(cluster.weight, 0.0)
    assert "no OSD that the CRUSH rule r0 takes has a weight" in await refused(link, needing(1))


# -- an OSD that goes out ------------------------------------------------------------------------


async def goes_out(link: ClusterConnection, osd: int) -> str:
    async def save(steps: object) -> None: ...

    journal = Journal(save)
    (change,) = OsdOut(str(osd)).changes()
    try:
        await change.undo(link, journal.entries)  # type: ignore[operator]
    except RunError as error:
        return str(error)
    return ""


async def test_with_as_many_hosts_as_copies_the_other_osds_of_its_host_take_all(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.used = dict.fromkeys(cluster.used, 45)
    assert await goes_out(link, 0) == "", "45 and 45 are 90 %, at which it takes no more"
    cluster.used[3] = 46
    assert await goes_out(link, 0) == (
        "osd.0 has 45 GiB, and the OSDs that would take it have 44 GiB of room before osd.3 takes"
        " no backfill: free some room, or name another OSD"
    )
    assert await goes_out(link, 1) == "", "another host"


async def test_with_more_hosts_than_copies_all_others_share_it(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.used = dict.fromkeys(cluster.used, 70)
    cluster.pools[0]["size"] = 2
    assert await goes_out(link, 0) == "", "five others have 20 GiB each"
    cluster.used[5] = 80
    assert "have 50 GiB of room before osd.5" in await goes_out(link, 0)


async def test_where_no_other_osd_can_take_it_nothing_moves(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.used = dict.fromkeys(cluster.used, 80)
    cluster.weight |= {3: 0.0, 4: 0.0, 5: 0.0}
    assert await goes_out(link, 0) == ""


async def test_rules_without_a_pool_and_those_of_other_osds_do_not_count(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.used = dict.fromkeys(cluster.used, 60)
    cluster.pools[0]["crush_rule"] = 1
    cluster.crush = of_class(rule(0, over("host")), rule(1, over("host"), root=-30))
    assert await goes_out(link, 2) == ""
    assert "osd.0 has 60 GiB" in await goes_out(link, 0)


async def test_a_rule_over_osds_lets_every_other_one_take_it(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.used = dict.fromkeys(cluster.used, 70)
    cluster.crush = of_class(rule(0, over("osd")))
    assert await goes_out(link, 0) == ""
