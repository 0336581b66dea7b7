"""How long recovery still takes: the slowest OSD decides."""

from typing import Any

import pytest

from cephqos_exporter.cluster.replies import MovingGroup, parse_moving
from cephqos_exporter.cluster.time_left import RecoveryPace
from cephqos_exporter.not_understood import NotUnderstood


def group(pgid: str, left: int, *osds: int, moving: bool = False) -> MovingGroup:
    return MovingGroup(pgid, left, frozenset(osds), moving)


def test_the_osd_with_most_to_do_decides_and_not_the_sum() -> None:
    """OSD 0 takes part in all of it, one group after the other: 240 copies at 2 per second."""
    pace = RecoveryPace()
    waiting = [group("1.1", 100, 0, 2), group("1.2", 40, 0, 3)]
    pace.observe([group("1.0", 120, 0, 1, moving=True), *waiting], 0.0)
    assert pace.slowest_seconds() is None, "nothing has moved yet"
    pace.observe([group("1.0", 90, 0, 1, moving=True), *waiting], 15.0)
    assert pace.slowest_seconds() == pytest.approx(115.0)
    elsewhere = [group("1.0", 60, 0, 1, moving=True), group("1.3", 100, 4, 5, moving=True)]
    pace.observe([*elsewhere, *waiting], 30.0)
    assert pace.slowest_seconds() == pytest.approx(100.0), "OSD 4 works beside it"


def test_the_first_seconds_say_nothing_of_the_rest() -> None:
    pace = RecoveryPace()
    known = []
    for now, left in ((0, 500), (5, 500), (10, 480), (15, 460), (20, 440), (25, 420)):
        pace.observe([group("1.0", left, 0, 1, moving=True)], float(now))
        known.append(pace.slowest_seconds() is not None)
    assert known == [False, False, False, False, True, True]


def test_a_slow_osd_takes_longer_with_the_same_number_of_copies() -> None:
    pace = RecoveryPace()
    for now in (0, 20, 40):
        groups = [group("1.0", 1000 - 10 * now, 0, 1, moving=True)]
        pace.observe([*groups, group("1.1", 500 - now, 2, 3, moving=True)], float(now))
    likely = pace.slowest_seconds()
    assert likely is not None
    assert 300 < likely < 460, "460 copies at 1 per second, where the mean counts a little"


def test_an_osd_with_two_slots_is_done_in_half_the_time() -> None:
    def seconds(moving: bool) -> float | None:
        pace = RecoveryPace()
        for now, left in ((0.0, 65), (15.0, 50)):
            first, second = group("1.0", left, 0, moving=True), group("1.1", left, 0, moving=moving)
            pace.observe([first, second if moving else group("1.1", 50, 0)], now)
        return pace.slowest_seconds()

    assert seconds(False) == pytest.approx(100.0)
    assert seconds(True) == pytest.approx(50.0)


def test_what_is_done_is_0_and_what_stands_still_is_not_known() -> None:
    pace = RecoveryPace()
    pace.observe([], 0.0)
    assert pace.slowest_seconds() == 0.0
    for now in (10.0, 20.0, 90.0):
        pace.observe([group("1.0", 5, 0)], now)
    assert pace.slowest_seconds() is None
    pace.observe([group("1.0", 4, 0, moving=True)], 110.0)
    assert pace.slowest_seconds() is None, "how long it worked on that copy was not seen"
    pace.observe([group("1.0", 3, 0, moving=True)], 115.0)
    assert pace.slowest_seconds() is not None
    pace.observe([group("1.0", 4, 0, moving=True)], 50.0)  # the clock was set back
    assert pace.slowest_seconds() is None


def row(**changed: Any) -> dict[str, Any]:
    sums = {"num_objects_degraded": 3, "num_objects_misplaced": 4}
    ordinary = {"pgid": "1.a", "state": "active+remapped+backfilling", "acting_primary": 1}
    return {**ordinary, "up": [1, 5, 2], "acting": [1, 0, 2], "stat_sum": sums, **changed}


def test_a_group_needs_its_primary_and_the_osds_that_receive() -> None:
    nobody = 2**31 - 1
    rows = [row(), row(state="active+recovery_wait", acting=[1, 5, 2]), row(acting=[1, nobody, 2])]
    groups = parse_moving({"pg_stats": rows}, NotUnderstood())
    assert groups is not None
    assert [sorted(it.osds) for it in groups] == [[1, 5], [1, 2, 5], [1, 5]]
    assert [(it.left, it.moving) for it in groups] == [(7, True), (7, False), (7, True)]


def test_a_list_with_a_group_that_is_not_understood_is_no_list() -> None:
    """Without it the rest would look like less work."""
    not_understood = NotUnderstood()
    assert parse_moving({"pg_stats": [row(), row(up="1,2")]}, not_understood) is None
    assert not_understood.found
    assert parse_moving({"pg_ready": True}, not_understood) == []
