"""What an OSD can do, estimated from made-up series of what it did."""

from dataclasses import replace
from typing import Any

import pytest

from cephqos_insight.capacity.estimate import (
    Estimate,
    JudgedCapacity,
    OsdRecord,
    Piece,
    estimate,
    judge,
)
from cephqos_insight.capacity.text import command, effects

HOUR = 3600.0


def busy(number: int, ops: float, **changes: Any) -> Piece:
    """An hour in which the OSD's device was the bound."""
    given: dict[str, Any] = {
        "end": number * HOUR,
        "delivered": ops,
        "requests": 2 * ops,
        "saturated_ops": ops,
        "saturated_samples": 40,
        "depth": 4.0,
    }
    return Piece(**(given | changes))


def calm(number: int, ops: float, **changes: Any) -> Piece:
    return Piece(end=number * HOUR, delivered=ops, requests=3 * ops, depth=0.2, **changes)


def osd(*pieces: Piece, **changes: Any) -> OsdRecord:
    given: dict[str, Any] = {
        "cluster": "c1",
        "osd": "osd.0",
        "media": "ssd",
        "origin": "mon",
        "in_force": "mclock_scheduler",
        "capacity": 2000.0,
        "pieces": pieces,
    }
    return OsdRecord(**(given | changes))


def judged(*records: OsdRecord) -> dict[str, JudgedCapacity]:
    return {one.record.osd: one for one in judge(records)}


DEVICE_BOUND = tuple(busy(i, 1000 + 10 * i) for i in range(8))


def test_an_osd_that_was_never_busy_can_do_at_least_what_it_did() -> None:
    found = estimate(osd(calm(1, 40), calm(2, 300), calm(3, 50)))
    assert (found.kind, found.ops, found.bound) == ("at_least", 300, "never saturated")
    assert (found.most, found.most_at, found.sure) == (300, 2 * HOUR, "none")


def test_the_verdict_on_an_osd_that_was_never_busy_is_that_nothing_is_known() -> None:
    one = judged(osd(calm(1, 300)))["osd.0"]
    assert one.verdict == "unknown"
    assert command(one) == ""


def test_an_osd_that_was_never_busy_and_did_more_than_its_capacity_is_set_too_low() -> None:
    one = judged(osd(calm(1, 300), capacity=100.0))["osd.0"]
    assert one.verdict == "too_low"
    assert command(one) == "ceph config set osd.0 osd_mclock_max_capacity_iops_ssd 300"


def test_a_device_bound_osd_is_measured_by_its_best_hours() -> None:
    found = estimate(osd(*DEVICE_BOUND))
    assert (found.kind, found.bound, found.sure) == ("measured", "device", "high")
    assert found.ops == 1060
    assert (found.low, found.high) == (1050, 1070)
    assert found.error == pytest.approx(10 / 1060)


def test_hours_in_which_it_also_scrubbed_do_not_lower_the_estimate() -> None:
    slower = tuple(busy(20 + i, 400) for i in range(8))
    assert estimate(osd(*DEVICE_BOUND, *slower)).ops == 1055


def test_an_osd_whose_threads_had_no_cpu_left_is_bound_by_its_cpu() -> None:
    pieces = tuple(replace(piece, cpu_samples=30, depth=0.3) for piece in DEVICE_BOUND)
    found = estimate(osd(*pieces))
    assert (found.kind, found.bound) == ("measured", "cpu")


def test_saturated_without_a_bound_that_is_seen_proves_nothing() -> None:
    found = estimate(osd(*(replace(piece, depth=0.3) for piece in DEVICE_BOUND)))
    assert found.kind == "at_least"
    assert "neither its device nor its CPU" in found.why


def test_one_sample_is_no_measurement() -> None:
    found = estimate(osd(*(replace(piece, saturated_samples=1) for piece in DEVICE_BOUND)))
    assert found.kind == "at_least"


def test_one_busy_hour_is_no_measurement() -> None:
    found = estimate(osd(busy(1, 1000), calm(2, 100)))
    assert (found.kind, found.ops) == ("at_least", 1000)
    assert found.why == "saturated in 1 pieces of the time only; 3 are needed"


def test_an_osd_that_did_nothing_is_not_known() -> None:
    assert estimate(osd(calm(1, 0))).kind == "unknown"
    assert estimate(osd()) == Estimate(kind="unknown", why="no work was recorded")


def test_hours_that_are_missing_after_a_restart_change_nothing() -> None:
    kept = tuple(piece for piece in DEVICE_BOUND if piece.end not in (2 * HOUR, 3 * HOUR))
    assert estimate(osd(*kept)).ops == estimate(osd(*DEVICE_BOUND)).ops


def test_a_rate_that_is_too_low_after_a_counter_reset_changes_nothing() -> None:
    found = estimate(osd(*DEVICE_BOUND, busy(9, 30)))
    assert found.ops == 1060


def test_a_capacity_that_changed_meanwhile_is_judged_as_it_is_now() -> None:
    before = tuple(replace(piece, capacity=9000.0) for piece in DEVICE_BOUND)
    one = judged(osd(*before, capacity=1000.0))["osd.0"]
    assert one.verdict == "fits"


def test_large_operations_say_nothing_about_operations() -> None:
    found = estimate(osd(*(replace(piece, large=True) for piece in DEVICE_BOUND)))
    assert (found.kind, found.ops) == ("unknown", None)
    assert "bytes were the bound" in found.why


def test_a_backup_in_large_operations_is_no_sign_of_a_capacity_that_is_too_low() -> None:
    one = judged(osd(calm(1, 60), calm(2, 3000, large=True), capacity=315.0, media="hdd"))["osd.0"]
    assert (one.verdict, one.estimate.ops, one.estimate.most) == ("unknown", 60, 3000)


def test_hours_of_a_failed_device_do_not_count() -> None:
    pieces = tuple(busy(i, 20, failing=True) for i in range(8))
    assert estimate(osd(*pieces)).kind == "at_least"


def test_reads_from_a_cache_prove_nothing() -> None:
    found = estimate(osd(calm(1, 300), replace(calm(2, 9000), requests=50.0)))
    assert found.ops == 300


def test_where_the_device_shows_nothing_all_that_was_delivered_counts() -> None:
    assert estimate(osd(replace(calm(1, 300), requests=None))).ops == 300


def test_far_more_of_another_kind_of_work_is_no_agreement() -> None:
    found = estimate(osd(*DEVICE_BOUND, calm(9, 4000)))
    assert (found.kind, found.ops) == ("at_least", 4000)


def test_busy_hours_that_disagree_are_no_measurement() -> None:
    found = estimate(osd(busy(1, 1000), busy(2, 500), busy(3, 200)))
    assert (found.kind, found.why) == (
        "at_least",
        "what it delivered when saturated differs by 160%",
    )


def test_erasure_coded_pools_make_it_a_lower_bound() -> None:
    assert estimate(osd(*DEVICE_BOUND, lower_bound=True)).kind == "at_least"


@pytest.mark.parametrize(
    ("capacity", "verdict"),
    [(100, "too_low"), (300, "too_low"), (1000, "fits"), (3000, "too_high"), (10000, "too_high")],
)
def test_a_capacity_is_judged_in_both_directions(capacity: float, verdict: str) -> None:
    one = judged(osd(*DEVICE_BOUND, capacity=capacity))["osd.0"]
    assert one.verdict == verdict
    assert bool(command(one)) == (verdict != "fits")


def test_an_osd_without_mclock_gets_no_verdict() -> None:
    assert judged(osd(*DEVICE_BOUND, in_force="wpq"))["osd.0"].verdict == "unused"
    assert judged(osd(*DEVICE_BOUND, capacity=None))["osd.0"].verdict == "unused"


def test_one_outlier_among_equals_is_found() -> None:
    fleet = [osd(*DEVICE_BOUND, osd=f"osd.{i}", model="M") for i in range(5)]
    slow = osd(*(busy(i, 300) for i in range(8)), osd="osd.5", model="M")
    other = osd(*(busy(i, 300) for i in range(8)), osd="osd.6", model="N")
    found = judged(*fleet, slow, other)
    assert [name for name, one in found.items() if one.outlier] == ["osd.5"]
    assert (found["osd.5"].measured_equals, found["osd.5"].equals_ops) == (5, 1060)


def test_an_osd_on_a_failing_device_is_an_outlier_that_is_not_measured() -> None:
    fleet = [osd(*DEVICE_BOUND, osd=f"osd.{i}") for i in range(4)]
    ill = osd(*(busy(i, 300, failing=True) for i in range(8)), osd="osd.5")
    one = judged(*fleet, ill)["osd.5"]
    assert (one.estimate.kind, one.outlier) == ("at_least", True)
    assert "its device had failed" in one.estimate.why


def test_two_equals_are_too_few_for_an_outlier() -> None:
    found = judged(
        osd(*DEVICE_BOUND, osd="osd.0"),
        osd(*DEVICE_BOUND, osd="osd.1"),
        osd(*(busy(i, 300) for i in range(8)), osd="osd.2"),
    )
    assert not any(one.outlier for one in found.values())


def test_a_setting_far_from_that_of_equals_is_found_on_idle_osds_too() -> None:
    fleet = [osd(calm(1, 5), osd=f"osd.{i}") for i in range(4)]
    found = judged(*fleet, osd(calm(1, 5), osd="osd.4", capacity=300.0))
    assert [name for name, one in found.items() if one.unusual_setting] == ["osd.4"]


def test_an_idle_osd_is_told_what_its_equals_deliver_and_gets_no_command() -> None:
    fleet = [osd(*DEVICE_BOUND, osd=f"osd.{i}") for i in range(3)]
    one = judged(*fleet, osd(calm(1, 5), osd="osd.9", capacity=50_000.0))["osd.9"]
    assert (one.equals_ops, one.estimate.kind, command(one)) == (1060, "at_least", "")


def test_the_worst_comes_first() -> None:
    found = judge(
        [
            osd(*DEVICE_BOUND, osd="osd.10", capacity=1000.0),
            osd(*DEVICE_BOUND, osd="osd.2", capacity=5000.0),
            osd(*DEVICE_BOUND, osd="osd.3", capacity=50.0),
            osd(calm(1, 5), osd="osd.1"),
        ]
    )
    assert [one.record.osd for one in found] == ["osd.3", "osd.2", "osd.1", "osd.10"]


def test_the_command_says_what_it_makes_of_reservations_and_limits() -> None:
    one = judged(
        osd(
            *DEVICE_BOUND,
            capacity=10_000.0,
            reservations={"client": 0.5, "background_recovery": 0.5},
            limits={"background_best_effort": 0.9},
        )
    )["osd.0"]
    assert effects(one)["client"] == {
        "reservation_now": 5000,
        "reservation_then": 530,
        "limit_now": None,
        "limit_then": None,
    }
    assert effects(one)["background_best_effort"]["limit_then"] == pytest.approx(954)
