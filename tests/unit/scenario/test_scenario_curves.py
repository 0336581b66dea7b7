"""Steady state, curves and searches: when a load is measured, and which depth comes next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_loadgen.load import curves
from cephqos_loadgen.load.curves import Search, Sweep
from cephqos_loadgen.load.start_and_end import is_steady
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import Step


def rates(values: list[float]) -> list[tuple[float, float]]:
    return [(float(second), value) for second, value in enumerate(values)]


def test_a_flat_window_is_steady_and_a_short_one_is_not_yet() -> None:
    assert is_steady(rates([100, 101, 99, 100, 100, 101]), 5, 0.05)
    assert not is_steady(rates([100, 101, 99]), 5, 0.05)


def test_a_slow_fall_is_not_steady_though_it_hardly_spreads() -> None:
    falling = [100.0 - n for n in range(11)]
    assert not is_steady(rates(falling), 10, 0.05)


def test_only_the_last_window_counts() -> None:
    assert is_steady(rates([5000, 4000, 900, 100, 100, 100, 100, 100, 100]), 4, 0.05)


def test_nothing_is_steady_at_zero() -> None:
    assert not is_steady(rates([0.0] * 20), 5, 0.05)


def step_of(depth: int, iops: float, mean: float, deviation: float = 0.0) -> Step:
    """A step whose 95th percentile is twice the mean."""
    bins = {round(mean * 2e9): 1}
    total = LoadFigures(1, iops, 0.0, mean, deviation, mean * 2, {"95": mean * 2}, bins)
    return Step(depth, 0.0, 1.0, 1.0, total, None, total, {})


def nobody(*_: object, **__: object) -> None:
    """Takes events."""


async def test_a_sweep_keeps_the_step_that_went_too_far_and_stops_there() -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 1000, 0.001 * depth, 0.0005 * depth if depth >= 4 else 0)

    spec = Sweep((1, 2, 4, 8), 1.0, dispersion=0.5)
    steps, stopped = await curves.sweep(spec, run, nobody)
    assert [step.depth for step in steps] == [1, 2, 4]
    assert "dispersion 0.50" in stopped


@pytest.mark.parametrize(
    ("limit", "depths"), [(0.0035, [1, 2, 4]), (10.0, [1, 2, 4, 8]), (None, [1, 2, 4, 8])]
)
async def test_a_sweep_stops_at_its_latency_limit_if_it_has_one(
    limit: float | None, depths: list[int]
) -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 1000, 0.001 * depth)

    steps, stopped = await curves.sweep(Sweep((1, 2, 4, 8), 1.0, latency=limit), run, nobody)
    assert [step.depth for step in steps] == depths
    assert bool(stopped) is (len(depths) < 4), "a sweep that did all its depths did not stop"


@given(st.integers(1, 256), st.integers(1, 300))
async def test_a_search_finds_the_greatest_depth_within_the_target(most: int, knee: int) -> None:
    measured = []

    async def run(depth: int, _: float) -> Step:
        measured.append(depth)
        return step_of(depth, 100 * depth, 0.001 * depth)

    spec = Search(target=0.002 * knee + 1e-9, percentile=95.0, least=1, most=most, dwell=1)
    found = FioResult("rbd", "search", await curves.search(spec, run, nobody), reached=True)
    assert found.chosen.within_target
    assert found.headline()["depth"] == min(knee, most)
    assert len(measured) == len(set(measured)) <= 10, "each depth once, by halving"


async def test_a_target_that_even_depth_one_misses_is_not_reached() -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 100, 1.0)

    spec = Search(target=0.001, percentile=None, least=1, most=64, dwell=1)
    steps = await curves.search(spec, run, nobody)
    assert [step.within_target for step in steps] == [False]
    assert "depth" not in FioResult("rbd", "search", steps, reached=False).headline()
