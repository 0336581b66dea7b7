"""The backlog of scrubs, from stamps and intervals."""

from dataclasses import replace

import pytest

from cephqos_exporter.cluster.replies import OsdMap
from cephqos_exporter.cluster.schedule import limits_of, make_schedule, schedule_families
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_exporter.cluster.time_left import DUE_SCRUBS, Factors
from cephqos_exporter.labels import Labels, LabelText

from ..osd_views import samples
from .cluster_replies import NOW, P1, pg

DAY = 86400.0
OPTIONS = {
    ("osd", "osd_scrub_min_interval"): DAY,
    ("osd", "osd_deep_scrub_interval"): 7 * DAY,
    ("mgr", "osd_scrub_max_interval"): 7 * DAY,
    ("mgr", "osd_deep_scrub_interval"): 7 * DAY,
    ("mgr", "mon_warn_pg_not_scrubbed_ratio"): 0.5,
    ("mgr", "mon_warn_pg_not_deep_scrubbed_ratio"): 0.75,
}
LABELS = Labels(LabelText(""))


def osd_map(*flags: str, pool_flags: tuple[str, ...] = (), **intervals: float) -> OsdMap:
    pool = replace(P1, flags=frozenset(pool_flags), intervals=intervals)
    return OsdMap(epoch=1, flags=frozenset(flags), pools={2: pool}, osds={0: True})


def test_limits_are_the_clusters_where_the_pool_sets_none() -> None:
    limits = limits_of(P1, OPTIONS)
    assert (limits["shallow"].due, limits["shallow"].overdue) == (DAY, 10.5 * DAY)
    assert (limits["deep"].due, limits["deep"].overdue) == (7 * DAY, 12.25 * DAY)


def test_an_interval_of_osds_alone_moves_scrubs_and_not_the_warning_of_ceph() -> None:
    options = {**OPTIONS, ("osd", "osd_deep_scrub_interval"): 28 * DAY}
    deep = limits_of(P1, options)["deep"]
    assert (deep.due, deep.overdue) == (28 * DAY, 12.25 * DAY)
    records = progress_with_ages((0, 13), (0, 29)).records.values()
    backlog = make_schedule(records, osd_map(), options, NOW).backlogs[2, "deep"]
    assert (backlog.on_time, backlog.due, backlog.overdue) == (0, 0, 2)
    assert backlog.due_objects == 500


def test_a_pools_own_intervals_win() -> None:
    intervals = {"scrub_min_interval": 60.0, "scrub_max_interval": 100.0}
    pool = replace(P1, intervals=intervals | {"deep_scrub_interval": 200.0})
    limits = limits_of(pool, OPTIONS)
    assert (limits["shallow"].due, limits["shallow"].overdue) == (60, 150)
    assert (limits["deep"].due, limits["deep"].overdue) == (200, 350)


def progress_with_ages(*ages: tuple[float, float]) -> ScrubProgress:
    """Placement groups of 500 objects, scrubbed and deep-scrubbed that many days ago."""
    progress = ScrubProgress()
    progress.observe(
        pg(f"2.{i}", scrubbed=NOW - shallow * DAY, deep_scrubbed=NOW - deep * DAY)
        for i, (shallow, deep) in enumerate(ages)
    )
    return progress


def test_placement_groups_are_on_time_then_due_then_overdue() -> None:
    progress = progress_with_ages((0.5, 1), (0.9, 6.9), (2, 7.1), (10.4, 12.2), (11, 13))
    schedule = make_schedule(progress.records.values(), osd_map(), OPTIONS, NOW)
    shallow, deep = schedule.backlogs[2, "shallow"], schedule.backlogs[2, "deep"]
    assert (shallow.on_time, shallow.due, shallow.overdue) == (2, 2, 1)
    assert (deep.on_time, deep.due, deep.overdue) == (2, 2, 1)
    assert deep.due_objects == 1500
    assert deep.oldest == 13 * DAY
    assert schedule.counted == 5


def test_a_placement_group_that_was_never_scrubbed_is_overdue() -> None:
    progress = ScrubProgress()
    progress.observe([pg(scrubbed=0.0, deep_scrubbed=0.0)])
    schedule = make_schedule(progress.records.values(), osd_map(), OPTIONS, NOW)
    assert schedule.backlogs[2, "deep"].overdue == 1


def test_families_tell_backlog_limits_and_whether_scrubs_may_begin() -> None:
    progress = progress_with_ages((2, 8), (0, 0))
    of_map = osd_map("noscrub", pool_flags=("hashpspool",), deep_scrub_interval=7 * DAY)
    schedule = make_schedule(progress.records.values(), of_map, OPTIONS, NOW)
    for second, objects in ((0, 0), (10, 50)):
        progress.done.setdefault((2, "deep"), progress._done_of(2, "deep")).objects = objects
        progress.tick(NOW + second, [2])
    found = samples(schedule_families(schedule, of_map.pools, progress, LABELS))
    base, deep = "cephqos_scrub_pool_", '{pool="p1",level="deep"}'
    shallow = deep.replace("deep", "shallow")
    assert found[f"{base}allowed{shallow}"] == 0
    assert found[f"{base}allowed{deep}"] == 1
    assert found[f"{base}backlog_objects{deep}"] == 500
    eta = {name: value for name, value in found.items() if "backlog_eta" in name}
    name = f"{base}backlog_eta_seconds{deep[:-1]},bound="
    assert list(eta) == [f'{name}"{bound}"}}' for bound in Factors._fields]
    assert list(eta.values()) == pytest.approx([100 * it for it in DUE_SCRUBS]), "shallow: absent"
    assert found[f'{base}schedule_pgs{{pool="p1",level="deep",state="due"}}'] == 1
    assert found[f"{base}overdue_after_seconds{deep}"] == 12.25 * DAY


def test_a_flag_on_the_pool_alone_stops_its_scrubs() -> None:
    of_map = osd_map(pool_flags=("hashpspool", "nodeep-scrub"))
    schedule = make_schedule([], of_map, OPTIONS, NOW)
    found = samples(schedule_families(schedule, of_map.pools, ScrubProgress(), LABELS))
    assert found['cephqos_scrub_pool_allowed{pool="p1",level="deep"}'] == 0
    assert found['cephqos_scrub_pool_allowed{pool="p1",level="shallow"}'] == 1


def test_placement_groups_of_a_pool_that_is_gone_do_not_count() -> None:
    progress = ScrubProgress()
    progress.observe([pg("9.0", pool=9)])
    schedule = make_schedule(progress.records.values(), osd_map(), OPTIONS, NOW)
    assert schedule.counted == 0
