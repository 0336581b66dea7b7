"""Charts that lay policies over one another, and curves of one load with their strategies."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.synthetic_archive import START, Builder, SyntheticRepeat

from cephqos_base.series import RecoverySeries, ScrubSeries
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.charts.svg import logarithmic
from cephqos_loadgen.report.charts.tracks import grown_since
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse


def run_of(folder: Path, points: dict[str, list[SyntheticRepeat]]) -> ReportRun:
    return analyse(open_archive(Builder(points=points).write(folder)))


def drawn(run: ReportRun, begins: str) -> list[Chart]:
    return [it for it in build([run], ReportSettings()).charts if it.name.startswith(begins)]


def column(chart: Chart, title: str) -> list[float | str | None]:
    assert chart.data
    number = [it.title for it in chart.data.columns].index(title)
    return [row[number].value for row in chart.data.rows]


@pytest.fixture
def two(tmp_path: Path) -> ReportRun:
    """Of a, one repeat takes 4 ms and ends after 20 s, the other takes 8 ms for 30 s."""
    a = [SyntheticRepeat(500.0, 4.0, seconds=20), SyntheticRepeat(500.0, 8.0, seconds=30)]
    return run_of(tmp_path / "run", {"a": a, "b": [SyntheticRepeat(500.0, 20.0)] * 2})


def test_each_policy_is_a_line_the_mean_of_the_repeats_that_still_ran(two: ReportRun) -> None:
    (chart,) = drawn(two, "overlaid")
    assert chart.title == "client: over time, mean of 2 repeats"
    a, b = (column(chart, f"Mean latency, {name}") for name in "ab")
    assert len(a) == 30
    assert a[5] == pytest.approx(6.0) and a[25] == pytest.approx(8.0)
    assert b[5] == b[25] == pytest.approx(20.0)
    assert "seconds since client began" in chart.svg
    assert chart.svg.count('class="key"') == 2


def test_scrub_and_recovery_are_drawn_where_there_is_some(two: ReportRun) -> None:
    """Of a 30 objects a second are recovered, and 90 were before the load began."""
    times = START - 3 + np.arange(40.0)
    recovered = Series(RecoverySeries.POOL_OBJECTS, {}, times, np.arange(40.0) * 30)
    observations = tuple(
        replace(it, samples=Samples({recovered.name: [recovered]}))
        if it.record.axes["policy"] == "a"
        else it
        for it in two.observations
    )
    (chart,) = drawn(replace(two, observations=observations), "overlaid")
    assert chart.data
    titles = [it.title for it in chart.data.columns]
    assert "Recovered, a" in titles and "Recovered, b" in titles
    assert not [title for title in titles if title.startswith("Scrub")]
    assert column(chart, "Recovered, a")[9] == pytest.approx(9.5 * 30)
    assert set(column(chart, "Recovered, b")) == {None}, "not known is not 0"


def test_growth_counts_from_the_start_and_over_a_restart() -> None:
    values = np.asarray([50.0, 60.0, 70.0, 5.0, 15.0])
    counter = Series(ScrubSeries.POOL_OBJECTS, {}, np.arange(5.0), values)
    assert grown_since([counter], np.asarray([1.0, 2.0, 4.0]), 1.0).tolist() == [0, 10, 25]


def test_points_that_differ_in_more_than_the_last_axis_have_charts_of_their_own(
    tmp_path: Path,
) -> None:
    run = run_of(tmp_path / "run", {name: [SyntheticRepeat(9.0)] for name in ("a", "b", "c", "d")})
    media = {"a": "ssd", "b": "ssd", "c": "hdd", "d": "hdd"}
    observations = tuple(
        replace(
            it,
            record=replace(
                it.record,
                axes={"media": media[it.record.axes["policy"]], "policy": it.record.axes["policy"]},
            ),
        )
        for it in run.observations
    )
    charts = drawn(replace(run, observations=observations), "overlaid")
    assert [it.title for it in charts] == [
        "client, media ssd: over time, mean of 1 repeat",
        "client, media hdd: over time, mean of 1 repeat",
    ]


def test_more_policies_than_colours_share_several_charts_and_the_first_is_in_each(
    tmp_path: Path,
) -> None:
    names = ("wpq", "a", "b", "c", "d", "e", "f", "g")
    run = run_of(tmp_path / "run", {name: [SyntheticRepeat(9.0)] for name in names})
    charts = drawn(run, "overlaid")
    of_charts = [[it.title.removeprefix("Mean latency, ") for it in chart.data.columns[1:]]
                 for chart in charts if chart.data]  # fmt: skip
    assert of_charts == [["wpq", "a", "b", "c", "d"], ["wpq", "e", "f", "g"]]


def test_lines_are_in_the_order_of_the_plan_and_a_long_legend_has_several_rows(
    tmp_path: Path,
) -> None:
    names = [f"a_policy_with_a_long_name_{number}" for number in range(6)]
    run = run_of(tmp_path / "run", {name: [SyntheticRepeat(9.0)] for name in names})
    shuffled = replace(run, observations=run.observations[3:] + run.observations[:3])
    (chart,) = drawn(shuffled, "overlaid")
    keys = re.findall(r'class="key" data-n="(\d)">.*?<text x="([\d.]+)"[^>]*>([^<]+)<', chart.svg)
    assert [name for _, _, name in keys] == names
    assert [int(number) for number, _, _ in keys] == list(range(6))
    assert max(float(x) for _, x, _ in keys) < 860 - 6 * len(names[0])


def test_one_point_is_laid_over_nothing(tmp_path: Path) -> None:
    assert drawn(run_of(tmp_path / "run", {"a": [SyntheticRepeat(9.0)]}), "overlaid") == []


def test_latency_is_shown_as_the_studies_show_it(two: ReportRun) -> None:
    (chart,) = drawn(two, "latency")
    for name in ("Mean latency", "p95", "p99", "p99.5"):
        assert f">{name}<" in chart.svg
    assert ">p50<" not in chart.svg


def test_the_bars_of_a_curve_are_the_deviation_of_its_latency(tmp_path: Path) -> None:
    repeats = [SyntheticRepeat(100.0 + n, depths=(1, 2)) for n in range(2)]
    run = run_of(tmp_path / "run", {"default": repeats, "by_osd": repeats})
    (row,) = [
        r
        for r in run.rows
        if r.key.depth == 1 and r.axes["policy"] == "default" and r.key.op == "total"
    ]
    spread = row.value("clat_sd")
    assert spread
    curve, *depths = [*drawn(run, "curve"), *drawn(run, "depth")]
    assert "bars up: σ of latency" in curve.title
    assert {it.name for it in depths} >= {"depth-client-cores"}
    ends = [tuple(map(float, it)) for it in _upright(curve.svg)]
    tall = max(abs(y2 - y1) for y1, y2 in ends)
    high = _value_per_pixel(curve.svg)
    assert tall * high == pytest.approx(2 * spread * 1e3, rel=0.05)


def _upright(svg: str) -> list[tuple[str, str]]:
    found = re.findall(
        r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)" class="s\d"', svg
    )
    return [(y1, y2) for x1, y1, x2, y2 in found if x1 == x2]


def _value_per_pixel(svg: str) -> float:
    """By the two lowest ticks of the axis that is upright."""
    ticks = re.findall(r'<text x="68.0" y="([\d.]+)" class="soft end">([\d.,]+)<', svg)
    (y0, v0), (y1, v1) = [(float(y), float(v.replace(",", ""))) for y, v in ticks[:2]]
    return abs((v1 - v0) / (y1 - y0))


@pytest.mark.parametrize("low", [1.1, 3.0, 6.3, 70.0])
def test_an_axis_between_two_round_numbers_still_has_two_ticks_inside(low: float) -> None:
    scale = logarithmic([low, low * 1.2], 0.0, 100.0)
    ticks = scale.ticks()
    assert len(ticks) > 1
    assert all(scale.low <= tick <= scale.high for tick in ticks)
