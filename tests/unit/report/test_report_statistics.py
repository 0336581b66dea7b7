"""Bins, merging and statistics of reports against numpy, scipy and worked examples."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from tests.study.trends import equivalent

from cephqos_loadgen.report.arrays.bins import Bins, bin_width, merged
from cephqos_loadgen.report.arrays.statistics import (
    change,
    deviation,
    holm,
    t_quantile,
    variation,
)

BINS = st.dictionaries(st.integers(1, 10**10), st.integers(1, 10**6), min_size=1, max_size=40)
PERCENT = st.floats(0.1, 99.99)


def as_dict(bins: Bins) -> dict[int, int]:
    return dict(zip(bins.centres.tolist(), bins.counts.tolist(), strict=True))


@given(BINS, BINS, BINS)
def test_merging_is_associative_and_its_order_does_not_matter(
    a: dict[int, int], b: dict[int, int], c: dict[int, int]
) -> None:
    x, y, z = Bins.of(a), Bins.of(b), Bins.of(c)
    left = merged([merged([x, y]), z])
    assert as_dict(left) == as_dict(merged([x, merged([y, z])])) == as_dict(merged([z, y, x]))
    assert left.total == sum(sum(part.values()) for part in (a, b, c))


@given(BINS, PERCENT, PERCENT)
def test_percentiles_never_fall(bins: dict[int, int], p: float, q: float) -> None:
    low, high = (Bins.of(bins).percentile_seconds(value) for value in sorted((p, q)))
    assert low is not None and high is not None and low <= high


@given(BINS, PERCENT, st.integers(2, 50))
def test_scaling_all_latencies_scales_every_percentile(
    bins: dict[int, int], percent: float, factor: int
) -> None:
    once = Bins.of(bins).percentile_seconds(percent)
    scaled = Bins.of({centre * factor: count for centre, count in bins.items()})
    assert once is not None
    assert scaled.percentile_seconds(percent) == pytest.approx(once * factor, rel=1e-12)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=300), PERCENT)
def test_a_percentile_is_that_of_numpy_on_the_raw_values(raw: list[int], percent: float) -> None:
    # numpy takes a rank that is a rounding error above a whole one for the next.
    rank = len(raw) * (percent / 100)
    assume(math.ceil(rank) == math.ceil(len(raw) * percent / 100 * (1 - 1e-9)))
    values, counts = np.unique(np.asarray(raw), return_counts=True)
    found = Bins(values, counts).percentile_seconds(percent)
    expected = float(np.percentile(raw, percent, method="inverted_cdf"))
    assert found == pytest.approx(expected * 1e-9, rel=1e-12)


def test_a_percentile_that_falls_on_a_whole_rank_is_not_rounded_to_the_next() -> None:
    """In floats 99.9 % of 41000 is a little more than 40959."""
    bins = Bins.of({1_000: 40_959, 9_000: 41})
    assert bins.percentile_seconds(99.9) == pytest.approx(1e-6)
    assert bins.percentile_seconds(99.91) == pytest.approx(9e-6)


def test_deviation_and_variation_are_those_of_scipy() -> None:
    values = [15007.0, 14890.0, 15233.0, 15101.0]
    assert deviation(values) == pytest.approx(float(np.std(values, ddof=1)))
    assert variation(values) == pytest.approx(float(stats.variation(values, ddof=1)))
    assert deviation([1.0]) is None and variation([1.0]) is None


@pytest.mark.parametrize("degrees", [1.0, 2.0, 2.7, 4.0, 17.5, 400.0])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.995])
def test_quantiles_of_students_t_are_those_of_scipy(degrees: float, probability: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees))


def test_degrees_of_freedom_are_those_of_welch() -> None:
    a, b = [10.0, 12.0, 11.0], [20.0, 27.0, 24.0, 21.0]
    relative = [np.asarray(side) / np.mean(side) for side in (a, b)]
    assert change(a, b).degrees == pytest.approx(stats.ttest_ind(*relative, equal_var=False).df)


SIDE = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=6)


@given(SIDE, SIDE, st.floats(0.0, 100.0))
def test_a_verdict_does_not_depend_on_which_side_is_the_reference(
    a: list[float], b: list[float], width: float
) -> None:
    one, other = change(a, b, widths=(width, 0.0)), change(b, a, widths=(0.0, width))
    assert one.beyond_noise == other.beyond_noise
    assert one.chance == pytest.approx(other.chance, abs=1e-9)
    assert equivalent(one, 0.05) == equivalent(other, 0.05)
    assert one.low is not None and other.high is not None
    assert one.low == pytest.approx(1 / (1 + other.high) - 1, rel=1e-9, abs=1e-9)


def test_the_referees_pair_is_one_verdict_from_both_sides() -> None:
    """-3.0 % differed and +3.1 % did not, when intervals were symmetric about new / old - 1."""
    wpq, profile = [325.0, 322.0, 328.0], [335.0, 330.0, 340.0]
    assert change(wpq, profile).beyond_noise == change(profile, wpq).beyond_noise


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_chance_is_evenly_spread_where_nothing_changed(spread: float) -> None:
    """One in twenty is below 5 %: repeats of three, whose spread has the shape of latencies'."""
    random = np.random.default_rng(3)
    trials = random.lognormal(0, spread, (3000, 2, 3))
    found = np.array([change(a.tolist(), b.tolist()).chance for a, b in trials])
    assert 0.025 < float(np.mean(found < 0.05)) < 0.065


def test_repeats_in_one_bin_of_the_histogram_are_not_without_noise() -> None:
    """All repeats read 10 ms, from a bin that is 0.131 ms wide."""
    width = bin_width(0.010)
    assert width == pytest.approx(0.000131072)
    found = change([0.010] * 3, [0.010 + width] * 3, widths=(width, width))
    error = width / math.sqrt(12) * math.hypot(1 / 0.010, 1 / (0.010 + width))
    assert found.error == pytest.approx(error)
    assert found.degrees == math.inf
    same = change([0.010] * 3, [0.010] * 3, widths=(width, width))
    assert same.low is not None and same.high is not None
    assert same.low < -0.01 and same.high > 0.01 and not same.beyond_noise


@given(st.integers(1, 16 * 10**9))
def test_a_bin_is_as_wide_as_fios(nanoseconds: int) -> None:
    """fio keeps six bits below the highest."""
    lost = max(0, nanoseconds.bit_length() - 7)
    assert bin_width(nanoseconds * 1e-9 * (1 + 1e-12)) == pytest.approx((1 << lost) * 1e-9)


def test_alike_is_shown_and_not_the_lack_of_a_difference() -> None:
    tight = change([100.0, 100.2, 99.8], [100.0, 100.1, 99.9])
    wide = change([100.0, 110.0, 90.0], [100.0, 105.0, 95.0])
    apart = change([104.0, 104.1, 103.9], [100.0, 100.1, 99.9])
    assert equivalent(tight, 0.02)
    assert not wide.beyond_noise and equivalent(wide, 0.02) is False
    assert equivalent(apart, 0.02) is False and equivalent(apart, 0.10)
    assert equivalent(change([1.0], [1.0]), 0.02) is None


def test_equivalence_is_said_of_unlike_things_once_in_twenty_at_most() -> None:
    random = np.random.default_rng(9)
    pairs = random.lognormal(0, 0.01, (2000, 2, 3)) * [[[1.03], [1.0]]]
    said = sum(equivalent(change(a.tolist(), b.tolist()), 0.03) is True for a, b in pairs)
    assert said / len(pairs) < 0.06


def test_holm_is_worked_out_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.04]) == [True] and holm([]) == []
    assert holm([0.026, 0.026]) == [False, False]


def test_chance_is_that_of_scipy() -> None:
    a, b = [100.0, 103.0, 98.0], [108.0, 111.0, 107.0]
    found = change(a, b)
    assert found.ratio is not None and found.error is not None
    t = math.log1p(found.ratio) / found.error
    assert found.chance == pytest.approx(2 * stats.t.sf(abs(t), found.degrees), rel=1e-6)
    one = found.chance_of_beyond(0.95, sides=1)
    t = (math.log1p(found.ratio) - math.log(0.95)) / found.error
    assert one == pytest.approx(stats.t.sf(abs(t), found.degrees), rel=1e-6)


def test_all_that_was_lost_is_beyond_noise_and_some_that_was_there_is_not_known() -> None:
    assert change([0.0, 0.0], [100.0, 101.0]).beyond_noise
    assert not change([0.0, 0.0], [100.0, 0.0]).known


def test_the_interval_is_near_that_of_welch_where_the_reference_is_steady() -> None:
    new, old = [11000.0, 11150.0, 11300.0, 11200.0], [10000.0, 10002.0, 9999.0, 9999.0]
    found = change(new, old)
    welch = stats.ttest_ind(new, old, equal_var=False).confidence_interval(0.95)
    assert found.low == pytest.approx(welch.low / 10000, rel=0.05)
    assert found.high == pytest.approx(welch.high / 10000, rel=0.05)


def test_an_interval_narrows_with_repeats() -> None:
    random = np.random.default_rng(7)

    def width(repeats: int) -> float:
        found = change(*(random.normal(100, 5, (2, repeats))).tolist())
        assert found.low is not None and found.high is not None
        return found.high - found.low

    widths = [float(np.mean([width(repeats) for _ in range(20)])) for repeats in (3, 6, 12, 48)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 3


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    trials, covered = 400, 0
    for _ in range(trials):
        found = change(random.normal(110, 4, 3).tolist(), random.normal(100, 4, 3).tolist())
        assert found.low is not None and found.high is not None
        covered += found.low <= 0.10 <= found.high
    assert covered / trials > 0.92


def test_the_best_of_several_equal_points_is_seldom_said_to_be_better_than_the_worst() -> None:
    """Two of ten pairs were chosen for being far apart: one in six was, without this."""
    random = np.random.default_rng(5)
    trials, said = 150, 0
    for _ in range(trials):
        points = sorted((random.normal(1000, 30, 3).tolist() for _ in range(5)), key=sum)
        said += change(points[-1], points[0], comparisons=10).beyond_noise
    assert said / trials < 0.06
    assert change([1500.0, 1510.0, 1490.0], [1000.0, 990.0, 1010.0], comparisons=10).beyond_noise


def test_the_same_samples_give_the_same_interval_and_no_difference() -> None:
    values = [101.0, 99.0, 103.5]
    found = change(values, values)
    assert found == change(values, values)
    assert found.absolute == 0 and not found.beyond_noise


def test_no_interval_says_that_more_than_all_was_lost() -> None:
    found = change([900.0, 300.0], [1000.0, 1000.0])
    assert found.low is not None and found.low > -1.0
    assert found.high is not None and found.high > 0


def test_of_one_repeat_there_is_no_interval() -> None:
    found = change([110.0], [100.0])
    assert found.ratio == pytest.approx(0.10)
    assert not found.known and not found.beyond_noise


def test_repeats_without_any_spread_differ_beyond_noise() -> None:
    found = change([110.0, 110.0], [100.0, 100.0])
    assert found.low == pytest.approx(0.10)
    assert found.high == pytest.approx(0.10)
    assert found.beyond_noise
