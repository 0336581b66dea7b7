"""The parts of a trial: candidates, timetable, figures, estimate."""

import math
import random
from collections import Counter

import pytest

from cephqos_base.errors import ConfigError, UsageError
from cephqos_insight.trial.estimate import ERROR_RATE, estimate, judge, spent
from cephqos_insight.trial.measure import (
    OsdCounters,
    Reading,
    between,
    cluster_changed,
    counters_of,
    quantile,
)
from cephqos_insight.trial.plan import REFERENCE, Timetable, lines, parse_candidate

BOUNDS = (0.0, 1e-4, 2e-4, 4e-4, math.inf)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("osd_max_scrubs=3", ["ceph config set osd osd_max_scrubs 3"]),
        (
            "client_res=0.6 profile=custom",
            [
                "ceph config set osd osd_mclock_profile custom",
                "ceph config set osd osd_mclock_scheduler_client_res 0.6",
            ],
        ),
        (
            "osd.3/capacity=450",
            [
                "ceph config set osd.3 osd_mclock_max_capacity_iops_hdd 450",
                "ceph config set osd.3 osd_mclock_max_capacity_iops_ssd 450",
            ],
        ),
        (
            "slots=2",
            [
                "ceph config set osd osd_mclock_override_recovery_settings true",
                "ceph config set osd osd_max_backfills 2",
            ],
        ),
        ("same", []),
    ],
)
def test_a_candidate_is_its_commands(text: str, commands: list[str]) -> None:
    assert parse_candidate(text).commands == commands


@pytest.mark.parametrize("text", ["", "profile", "mon/profile=x", "osd_data=1", "profile=$(x)"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises((UsageError, ConfigError), match="--try"):
        parse_candidate(text)


def test_each_round_has_each_arm_once_in_an_order_that_the_seed_decides() -> None:
    table = Timetable(("a", "b"), 300.0, 6, 200, 1)
    rounds = table.rounds()
    assert all(sorted(arms) == sorted((REFERENCE, "a", "b")) for arms in rounds)
    first = Counter(arms[0] for arms in rounds)
    assert min(first.values()) > 40
    assert rounds == table.rounds() != Timetable(("a", "b"), 300.0, 6, 200, 2).rounds()


def test_the_dry_run_has_every_block_and_command() -> None:
    candidate = parse_candidate("osd_max_scrubs=3")
    table = Timetable((candidate.name,), 300.0, 6, 12, 3)
    shown = list(lines(table, [candidate]))
    assert shown[0] == "6 to 12 rounds of blocks of 5 min, seed 3: 1 h 5 min to 2 h 5 min"
    assert "it may end after round 6, 9, 12; guard rails can end it at any time" in shown
    assert "    ceph config set osd osd_max_scrubs 3" in shown
    assert sum(line.endswith("osd_max_scrubs=3") for line in shown) == 12
    assert shown[-1].startswith("02:00:00  round 12: ")


def test_the_dry_run_says_that_a_custom_profile_is_completed() -> None:
    said = "(and the shares that are not named, with the values in force when it begins)"
    assert list(parse_candidate("profile=custom client_res=0.6").planned)[-1] == said
    assert said not in parse_candidate("profile=balanced").planned


# -- figures -------------------------------------------------------------------------------------


def reading(at: float, *buckets: int, seconds: float = 0.0, recovery: int = 0) -> Reading:
    return Reading(at, BOUNDS, {0: OsdCounters(seconds, buckets, recovery)})


def test_figures_are_those_of_the_time_between_two_readings() -> None:
    first = reading(10.0, 0, 100, 0, 0, 0, seconds=1.0, recovery=7)
    last = reading(20.0, 0, 100, 50, 150, 0, seconds=1.05, recovery=27)
    stretch = between(first, last)
    assert stretch is not None
    assert (stretch.operations, stretch.figures["ops/s"]) == (200, 20.0)
    assert stretch.figures["mean"] == pytest.approx(0.05 / 200)
    assert stretch.figures["recovery/s"] == 2.0
    assert 2e-4 < stretch.figures["p50"] < stretch.figures["p99"] < 4e-4


def test_without_operations_there_is_no_latency() -> None:
    stretch = between(reading(0.0, 0, 5, 0, 0, 0), reading(1.0, 0, 5, 0, 0, 0))
    assert stretch is not None and stretch.figures == {"ops/s": 0.0, "recovery/s": 0.0}


def test_an_osd_that_is_missing_or_has_started_again_gives_no_figures() -> None:
    one = reading(0.0, 0, 5, 0, 0, 0)
    assert between(one, Reading(1.0, BOUNDS, {}, (0,))) is None
    assert between(one, reading(1.0, 0, 4, 0, 0, 0)) is None


def test_counters_come_from_ceph_s_replies() -> None:
    axes = [{"ranges": [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000}]}]
    histogram = {"axes": axes, "values": [[0, 0], [1, 2], [0, 4]]}
    names = ("op_r_latency_out_bytes", "op_w_latency_in_bytes", "op_rw_latency_in_bytes")
    counters, bounds = counters_of(
        {"osd": {f"{name}_histogram": histogram for name in names}},
        {
            "osd": {
                "recovery_ops": 3,
                **{f"op_{op}_latency": {"sum": 0.5, "avgcount": 7} for op in ("r", "w", "rw")},
            }
        },
    )
    assert bounds == (0.0, 1e-4, math.inf)
    assert counters == OsdCounters(1.5, (0, 9, 12), 3)


def test_a_lognormal_percentile_is_found_within_its_bucket() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    bounds = (0.0, *(1e-4 * 2**n for n in range(16)), math.inf)
    values = sorted(chance.lognormvariate(math.log(5e-3), 0.5) for _ in range(20_000))
    edges = zip((-1.0, *bounds), bounds, strict=False)
    counts = [sum(low < value <= high for value in values) for low, high in edges]
    for share in (0.5, 0.95, 0.99):
        true = values[round(share * len(values))]
        assert quantile(bounds, counts, share) == pytest.approx(true, rel=0.04)


@pytest.mark.parametrize("counts", [(0, 1, 0, 0, 0), (0, 0, 0, 0, 1), (0, 3, 0, 0, 0)])
def test_few_operations_have_a_percentile_within_their_bucket(counts: tuple[int, ...]) -> None:
    assert 0 < quantile(BOUNDS, counts, 0.99) <= 4e-4


def test_a_load_that_stops_in_the_second_half_has_changed() -> None:
    halves = [between(reading(0, 0, 0, 0, 0, 0), reading(1, 0, n, 0, 0, 0)) for n in (100, 50, 80)]
    full, half, most = halves
    assert full and half and most
    assert (
        cluster_changed(full, half)
        and cluster_changed(half, full)
        and not cluster_changed(full, most)
    )


# -- the estimate --------------------------------------------------------------------------------


def test_all_looks_together_spend_the_error_rate() -> None:
    looks = (6, 9, 12)
    assert sum(spent(look, looks, 1) for look in looks) == pytest.approx(ERROR_RATE)
    assert spent(6, looks, 2) == spent(6, looks, 1) / 2


def test_differences_that_are_alike_for_several_rounds_make_the_interval_wider() -> None:
    mixed = estimate([0.1, -0.1, 0.12, -0.12, 0.1, -0.1], 0.05)
    lasting = estimate([0.1, 0.12, 0.1, -0.1, -0.12, -0.1], 0.05)
    assert mixed and lasting
    assert lasting.high / lasting.low > 1.2 * mixed.high / mixed.low


def test_the_blur_of_percentiles_is_not_averaged_away() -> None:
    found = estimate([0.05] * 50, 0.05, blur=0.08)
    assert found is not None and found.low < 1 < found.high


@pytest.mark.parametrize(
    ("differences", "look", "verdict"),
    [
        ([-0.3, -0.35, -0.32, -0.31, -0.36, -0.3], 6, "clear"),
        ([0.1, -0.1, 0.12, -0.11, 0.1, -0.11], 6, "cannot become clear"),
        ([0.2, -0.05, 0.3, 0.1, -0.02, 0.2], 6, "go on"),
        ([0.2, -0.05, 0.3, 0.1, -0.02, 0.2], 12, "no difference"),
        ([0.2], 6, "go on"),
    ],
)
def test_a_trial_ends_when_the_answer_is_clear_or_cannot_become_so(
    differences: list[float], look: int, verdict: str
) -> None:
    assert judge(differences, look, (6, 9, 12), 1) == verdict
