"""How evenly placement groups lie on OSDs, and how full these are: on recorded replies."""

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.cluster.balance import (
    OsdPlace,
    OsdUse,
    parse_tree,
    parse_use,
    pg_ratios,
    pg_sizes,
)
from cephqos_exporter.not_understood import NotUnderstood

from .cluster_replies import P1, recorded, understood
from .test_cluster_poller import Clock, RecordedReader, poller, read, source

PGS = "cephqos_balance_pgs"
RATIO = "cephqos_balance_pgs_ratio"
SCORE = "cephqos_balance_pool_read_score"
SIZE = "cephqos_balance_pool_pg_size_ratio"


async def shown(release: str) -> dict[str, float]:
    """Without the label of the cluster."""
    found = await read(source(RecordedReader(release)))
    return {re.sub(r'cluster="[^"]*",?', "", name): value for name, value in found.items()}


@pytest.mark.parametrize("release", RELEASES)
async def test_a_recorded_cluster_shows_where_its_groups_lie_and_how_full_it_is(
    release: str,
) -> None:
    found = await shown(release)
    osds = [f'ceph_daemon="osd.{osd}"' for osd in range(3)]
    pgs = [found[f'{PGS}{{{osd},root="default",device_class="hdd"}}'] for osd in osds]
    assert all(count > 0 for count in pgs)
    ratios = [found[f"{RATIO}{{{osd}}}"] for osd in osds]
    assert sum(ratios) == pytest.approx(3), "their weights are alike"
    assert ratios[0] == pytest.approx(3 * pgs[0] / sum(pgs))
    assert sum(found[f"cephqos_balance_primaries{{{osd}}}"] for osd in osds) == 9
    assert all(0 < found[f"cephqos_balance_used_ratio{{{osd}}}"] < 0.5 for osd in osds)
    assert all(0 <= size < 0.01 for name, size in found.items() if name.startswith(SIZE))
    levels = ("nearfull", "backfillfull", "full")
    full = [found[f'cephqos_cluster_full_ratio{{level="{level}"}}'] for level in levels]
    assert full == pytest.approx([0.85, 0.9, 0.95])


@pytest.mark.parametrize(("release", "known"), [("pacific", False), ("reef", True)])
async def test_the_score_of_primaries_is_there_since_18_2_where_a_pool_can_be_even(
    release: str, known: bool
) -> None:
    found = await shown(release)
    scores = {name: value for name, value in found.items() if name.startswith(SCORE)}
    assert set(scores) == ({f'{SCORE}{{pool="p1"}}'} if known else set()), "not of one group's pool"
    assert all(value >= 1 for value in scores.values())


def test_the_share_is_by_weight_within_root_and_device_class() -> None:
    places = {
        0: OsdPlace("default", "hdd", 4.0),
        1: OsdPlace("default", "hdd", 8.0),
        2: OsdPlace("default", "ssd", 1.0),
        3: OsdPlace("fast", "ssd", 1.0),
        4: OsdPlace("default", "hdd", 0.0),
        5: OsdPlace("default", "hdd", 4.0),
    }
    use = {osd: OsdUse(pgs, 0.1) for osd, pgs in enumerate((40, 80, 7, 300, 3))}
    ratios = pg_ratios(places, use)
    assert ratios == pytest.approx({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}), "4 is out, 5 is not heard of"
    use[0] = OsdUse(80, 0.1)
    assert pg_ratios(places, use)[0] == pytest.approx(80 / (160 / 3))


def test_a_placement_group_is_as_large_as_the_space_of_its_pool_says() -> None:
    use = {osd: OsdUse(8, 0.1, size) for osd, size in enumerate((3000, 5000, 0))}
    pools = {2: replace(P1, size=3), 3: replace(P1, id=3, size=3), 4: replace(P1, id=4)}
    totals: dict[int, Any] = {
        2: {"store_stats": {"allocated": 8 * 3 * 300, "omap_allocated": 8 * 3 * 100}},
        3: {"store_stats": None},
        4: {"store_stats": {"allocated": 100}},
    }
    odd = NotUnderstood()
    assert pg_sizes(totals, pools, use, odd) == {2: pytest.approx(0.1)}
    assert sum(times for times, _ in odd.found.values()) == 1, "of the pool without space"
    assert pg_sizes(totals, pools, {}, odd) == {}, "of no OSD a size is known"


def test_an_osd_below_two_roots_counts_in_the_first_and_one_without_a_class_counts() -> None:
    osd: dict[str, Any] = {"id": 0, "type": "osd", "crush_weight": 2.0, "reweight": 0.5}
    nodes = [
        {"id": -1, "name": "default", "type": "root"},
        {"id": -2, "name": "h", "type": "host"},
        osd,
        {"id": -3, "name": "other", "type": "root"},
        osd,
    ]
    assert understood(parse_tree, {"nodes": nodes}) == {0: OsdPlace("default", "", 1.0)}


def test_an_osd_without_a_size_has_no_part_that_is_used() -> None:
    row = {"osd": 0, "num_pgs": 0, "kb": 0, "kb_used": 0}
    assert understood(parse_use, {"osd_stats": [row]}) == {0: OsdUse(0, None)}
    found = NotUnderstood()
    assert parse_use({"osd_stats": [row, {"osd": 1}]}, found) == {0: OsdUse(0, None)}
    assert dict(found.take()), "counted"


async def test_osds_are_asked_for_once_a_minute() -> None:
    reader, clock = RecordedReader(), Clock()
    polling = poller(reader, clock)
    for _ in range(13):
        await polling.poll()
        clock.now += 5
    assert reader.asked.count("osd_use") == reader.asked.count("osd_tree") == 2
    assert polling.state is not None and polling.state.balance is not None
    assert recorded("reef", "idle", "osd_use")["osd_stats"]
