"""Bins, merging and statistics of reports against numpy, scipy and worked examples."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from cephqos_loadgen.report.arrays.bins import Bins, merged
from cephqos_loadgen.report.arrays.statistics import (
    change,
    deviation,
    freedom,
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
    assert freedom(a, b) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).df)


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
    assert found.low == -1.0 and found.high is not None and found.high > 0


def test_of_one_repeat_there_is_no_interval() -> None:
    found = change([110.0], [100.0])
    assert found.ratio == pytest.approx(0.10)
    assert not found.known and not found.beyond_noise


def test_repeats_without_any_spread_differ_beyond_noise() -> None:
    found = change([110.0, 110.0], [100.0, 100.0])
    assert found.low == pytest.approx(0.10)
    assert found.high == pytest.approx(0.10)
    assert found.beyond_noise
