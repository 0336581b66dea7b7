"""What is taken from the replies of a cluster, on recordings of three releases."""

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.ceph.stamps import parse_stamp
from cephqos_exporter.cluster.osdmap import osd_map_families
from cephqos_exporter.cluster.replies import (
    count_states,
    count_states_by_pool,
    parse_osd_dump,
    parse_pgs,
    parse_pool_totals,
    parse_status,
)
from cephqos_exporter.labels import Labels, LabelText
from cephqos_exporter.not_understood import NotUnderstood

from ..osd_views import samples
from .cluster_replies import recorded, understood


@pytest.mark.parametrize("release", RELEASES)
def test_a_status_gives_states_and_whether_a_manager_is_active(release: str) -> None:
    status = parse_status(recorded(release, "recovery", "status"))
    assert status.manager
    assert sum(status.pgs_by_state.values()) == status.pgs == 9
    assert count_states(status.pgs_by_state)["recovering"] >= 1


@pytest.mark.parametrize("release", RELEASES)
def test_an_osd_map_gives_pools_flags_and_the_osds_that_are_up(release: str) -> None:
    osd_map = understood(parse_osd_dump, recorded(release, "idle", "osd_dump"))
    assert osd_map.pools[2].name == "p1"
    assert osd_map.pools[2].pg_num == 8
    assert osd_map.pools[2].type == "replicated"
    assert osd_map.osds_up == (0, 1, 2)
    assert "sortbitwise" in osd_map.flags


@pytest.mark.parametrize("release", RELEASES)
def test_an_osd_that_is_down_is_not_asked(release: str) -> None:
    dump = recorded(release, "idle", "osd_dump")
    dump["osds"][1]["up"] = 0
    assert understood(parse_osd_dump, dump).osds_up == (0, 2)


@pytest.mark.parametrize("release", RELEASES)
def test_osds_and_flags_of_the_map_are_shown_set_or_not(release: str) -> None:
    dump = recorded(release, "idle", "osd_dump")
    dump["osds"][1]["up"] = 0
    dump["flags"] += ",noout,pauserd,pausewr"
    found = samples(osd_map_families(understood(parse_osd_dump, dump), Labels(LabelText(""))))
    assert [found[f'cephqos_cluster_osd_up{{ceph_daemon="osd.{i}"}}'] for i in range(3)] == [
        1,
        0,
        1,
    ]
    raised = {name for name, value in found.items() if "flag" in name and value}
    assert raised == {
        f'cephqos_cluster_flag{{flag="{flag}"}}' for flag in ("noout", "pauserd", "pausewr")
    }
    assert found['cephqos_cluster_flag{flag="noscrub"}'] == 0


@pytest.mark.parametrize("release", RELEASES)
def test_only_intervals_that_are_set_on_a_pool_are_its_own(release: str) -> None:
    dump = recorded(release, "idle", "osd_dump")
    dump["pools"][1]["options"] = {"deep_scrub_interval": 300, "scrub_min_interval": 0}
    assert dict(understood(parse_osd_dump, dump).pools[2].intervals) == {
        "deep_scrub_interval": 300.0
    }


@pytest.mark.parametrize("release", RELEASES)
def test_pool_totals_and_placement_groups_tell_the_same(release: str) -> None:
    totals = understood(parse_pool_totals, recorded(release, "idle", "pools"))
    pgs = [
        p
        for osd in range(3)
        for p in understood(parse_pgs, recorded(release, "idle", f"primary_{osd}"))
    ]
    assert len(pgs) == 9
    in_pool = [p for p in pgs if p.pool == 2]
    assert sum(p.objects for p in in_pool) == totals[2]["num_objects"] > 4000
    assert sum(p.bytes for p in in_pool) == totals[2]["num_bytes"]


def test_16_2_reports_neither_progress_nor_duration() -> None:
    for osd in range(3):
        for one in understood(parse_pgs, recorded("pacific", "idle", f"primary_{osd}")):
            assert one.objects_scrubbed is None
            assert one.duration is None
            assert one.scrubbed > 1.7e9


@pytest.mark.parametrize(("release", "longest"), [("reef", 10), ("tentacle", 30)])
def test_a_duration_is_seconds_although_20_x_writes_milliseconds(
    release: str, longest: float
) -> None:
    pgs = [
        p
        for osd in range(3)
        for p in understood(parse_pgs, recorded(release, "idle", f"primary_{osd}"))
    ]
    # A placement group whose primary has changed since does not know any more.
    durations = [p.duration for p in pgs if p.pool == 2 and p.duration is not None]
    assert len(durations) >= 6
    assert all(1 < duration < longest for duration in durations)


@pytest.mark.parametrize(
    ("whole", "exact", "seconds"),
    [(8, 7.22168684, 7.22168684), (14, 13512, 13.512), (3, 3.0004, 3.0004), (1, 2, 0.002)],
)
def test_the_two_figures_of_a_duration_tell_its_unit(
    whole: int, exact: float, seconds: float
) -> None:
    reply = recorded("reef", "scrub", "scrubbing")
    reply["pg_stats"][0].update(last_scrub_duration=whole, scrub_duration=exact)
    assert understood(parse_pgs, reply)[0].duration == pytest.approx(seconds)


def test_a_placement_group_that_was_never_scrubbed_has_no_duration() -> None:
    reply = recorded("reef", "scrub", "scrubbing")
    reply["pg_stats"][0].update(last_scrub_duration=0, scrub_duration=0)
    assert understood(parse_pgs, reply)[0].duration is None


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_a_scrub_under_way_has_a_level_and_a_progress(release: str) -> None:
    pgs = understood(parse_pgs, recorded(release, "scrub", "scrubbing"))
    assert len(pgs) >= 3
    for one in pgs:
        assert one.scrubbing
        assert one.level == "deep"
        assert one.objects_scrubbed is not None
        assert 0 <= one.objects_scrubbed <= one.objects


@pytest.mark.parametrize("release", RELEASES)
def test_no_placement_groups_is_an_answer_without_a_list(release: str) -> None:
    reply = recorded(release, "idle", "scrubbing")
    assert "pg_stats" not in reply
    assert understood(parse_pgs, reply) == []


def test_stamps_are_utc_and_never_is_zero() -> None:
    assert parse_stamp("2026-11-21T03:02:45.704830+0000") == pytest.approx(1795230165.70483)
    assert parse_stamp("2026-11-21T03:02:45.704830") == pytest.approx(1795230165.70483)
    assert parse_stamp("0.000000") == 0


def test_what_is_no_list_of_placement_groups_is_not_taken_for_none() -> None:
    with pytest.raises(KeyError):
        parse_pgs({"pg_ready": True, "placement_groups": []}, NotUnderstood())


def test_a_time_in_another_form_is_not_taken_for_never() -> None:
    for text in ("yesterday", ""):
        with pytest.raises(ValueError, match="could not convert"):
            parse_stamp(text)


@pytest.mark.parametrize("release", RELEASES)
def test_states_by_pool_add_up_to_those_of_the_cluster(release: str) -> None:
    brief = recorded(release, "recovery", "brief")["pg_stats"]
    by_pool = understood(count_states_by_pool, brief)
    names = {name for states in by_pool.values() for name in states}
    whole = count_states({row["pgid"] + "+" + row["state"]: 1 for row in brief})
    for name in names:
        assert sum(states.get(name, 0) for states in by_pool.values()) == whole[name]
