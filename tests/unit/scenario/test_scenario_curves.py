"""Steady state, curves and searches: when a load is measured, and which depth comes next."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_loadgen.load import curves
from cephqos_loadgen.load.curves import Search, Sweep
from cephqos_loadgen.load.start_and_end import is_steady
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.plan.planned import Find
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import PhaseRecord, Step
from cephqos_loadgen.results.repeat import InForce, RepeatRecord, Spread
from cephqos_loadgen.run.one_repeat import new_record
from cephqos_loadgen.run.summary import find, summarise
from cephqos_loadgen.scenario.parse import parse


def rates(values: list[float]) -> list[tuple[float, float]]:
    return [(float(second), value) for second, value in enumerate(values)]


def test_a_flat_window_is_steady_and_a_short_one_is_not_yet() -> None:
    assert is_steady(rates([100, 101, 99, 100, 100, 101]), 5, 0.05)
    assert not is_steady(rates([100, 101, 99]), 5, 0.05)


@pytest.mark.parametrize("moved", [60.0, 3600.0])
def test_a_few_samples_after_a_hole_are_not_steady(moved: float) -> None:
    """The clock was set, or the client hung for a minute: nobody knows what was in between."""
    before = rates([900.0, 400.0, 700.0])
    after = [(moved + second, 100.0) for second in range(4)]
    assert not is_steady([*before, *after], 30, 0.05)
    assert is_steady([*before, *((moved + second, 100.0) for second in range(30))], 30, 0.05)


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


def swept(*depths: int) -> RepeatRecord:
    """A finished repeat, whose curve reached these depths."""
    steps = tuple(step_of(depth, 100.0 * depth, 0.001 * depth) for depth in depths)
    result = FioResult("rbd", "sweep", steps)
    record = new_record("f", PLAN.points[0], 1, InForce({}, {}, {}, {}, ()))
    phase = PhaseRecord("fio", 0.0, 1.0, "done", "", result)
    return replace(record, status="finished", phases={"w": phase})


PLAN = parse("scenario: s\nphases: [{name: w, wait: {}, until: {duration: 1s}}]", "s")


def test_curves_that_ended_at_different_depths_are_summarised_where_all_have_been() -> None:
    """The mean of depths 4 and 16 was never measured."""
    repeats = [swept(1, 4, 16), swept(1, 4), swept(1, 4, 16)]
    figures = summarise(PLAN, repeats).points[PLAN.points[0].name]["w"]
    assert (figures["depth"].mean, figures["iops"]) == (4.0, Spread(400.0, 0.0, 3))
    figures = summarise(PLAN, [repeats[0], repeats[2]]).points[PLAN.points[0].name]["w"]
    assert figures["iops"] == Spread(1600.0, 0.0, 2)


def test_a_value_that_keeps_its_share_by_less_than_a_deviation_is_too_close_to_call() -> None:
    text = (
        "scenario: s\nmatrix: {throttle: {a: {}, b: {flags: [noout]}, c: {flags: [noin]}}}\n"
        "phases: [{name: w, wait: {}, until: {duration: 1s}}]"
    )
    plan, wanted = parse(text, "s"), Find("throttle", 0.95, "w")
    rates = {"a": Spread(900.0, 5.0, 3), "b": Spread(951.0, 20.0, 3), "c": Spread(1000.0, 9.0, 3)}
    points = {point.name: {"w": {"iops": rates[point.axes[0][1]]}} for point in plan.points}
    found = find(wanted, plan, points)
    assert found is not None
    assert (found.value, found.too_close, found.iops["a"]) == ("b", ("b",), 900.0)
    points[plan.points[1].name]["w"]["iops"] = Spread(951.0, None, 1)  # one repeat does not know
    assert (found := find(wanted, plan, points)) and found.too_close == ()


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
    assert any("the greatest of the search" in line for line in found.findings()) is (knee >= most)
    assert len(measured) == len(set(measured)) <= 10, "each depth once, by halving"


async def test_a_target_that_even_depth_one_misses_is_not_reached() -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 100, 1.0)

    spec = Search(target=0.001, percentile=None, least=1, most=64, dwell=1)
    steps = await curves.search(spec, run, nobody)
    assert [step.within_target for step in steps] == [False]
    assert "depth" not in FioResult("rbd", "search", steps, reached=False).headline()
