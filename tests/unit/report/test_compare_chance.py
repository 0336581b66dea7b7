"""How often `cephqos compare` ends with 1 where nothing has changed: by simulation."""

import numpy as np
import pytest

from cephqos_loadgen.report.arrays.statistics import change, holm
from cephqos_loadgen.report.compare.comparison import Difference, judged_together
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Figure, Key, ReportRow
from cephqos_loadgen.report.figures.metrics import FigureKind


def difference(
    name: str, kind: FigureKind, new: list[float], old: list[float], follows: bool = False
) -> Difference:
    row = ReportRow(Key("after", name, "client", "load"), {}, len(new), {})
    figures = [Figure(float(np.mean(side)), tuple(side)) for side in (new, old)]
    found = figures[0].against(figures[1])
    return Difference(row, kind, figures[0].value, figures[1].value, found, follows)


def alarms(trials: int, figures: int, repeats: int) -> tuple[float, float]:
    """The share of comparisons of equal runs with a regression, and with one by its interval
    alone."""
    random = np.random.default_rng(1)
    together, alone = 0, 0
    for _ in range(trials):
        sides = random.lognormal(0, 0.05, (figures, 2, repeats)).tolist()
        found = [difference(str(n), metrics.IOPS, *pair) for n, pair in enumerate(sides)]
        together += any(d.regression for d in judged_together(found))
        alone += any(d.change.beyond_noise and d.change.absolute < 0 for d in found)
    return together / trials, alone / trials


def test_equal_runs_are_said_to_be_worse_in_one_of_twenty_comparisons_at_most() -> None:
    together, alone = alarms(400, figures=20, repeats=3)
    assert together <= 0.05
    assert alone > 0.2, "which is why figures are judged together"


def test_what_is_far_beyond_noise_stands_among_many() -> None:
    random = np.random.default_rng(2)
    sides = random.lognormal(0, 0.01, (20, 2, 3)).tolist()
    sides[7][0] = [value / 2 for value in sides[7][0]]
    found = judged_together([difference(str(n), metrics.IOPS, *s) for n, s in enumerate(sides)])
    assert [n for n, d in enumerate(found) if d.regression] == [7]


@pytest.mark.parametrize(("factor", "worse"), [(2.0, True), (0.5, False)])
def test_latency_that_doubles_is_a_regression_and_latency_that_halves_is_none(
    factor: float, worse: bool
) -> None:
    old = [10.0, 10.1, 9.9]
    (found,) = judged_together([difference("a", metrics.P99, [v * factor for v in old], old)])
    assert found.beyond_chance and found.regression == worse


def test_iops_and_latency_of_a_closed_loop_are_one_measurement() -> None:
    """Its chance is 0.03 to 0.05: alone it stands; counted twice it would not."""
    new, old = [100.0, 104.0, 98.0], [110.0, 109.0, 106.0]
    iops = difference("a", metrics.IOPS, new, old)
    latency = difference("a", metrics.MEAN, [64 / v for v in new], [64 / v for v in old], True)
    chance = change(new, old).chance
    assert chance is not None and 0.025 < chance < 0.05
    assert holm([chance, chance]) == [False, False]
    assert [d.regression for d in judged_together([iops, latency])] == [True, True]
