"""What charts of a report draw: the time of a repeat, causes, the trade."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.synthetic_archive import START, Builder, Osds, SyntheticRepeat, write_metrics

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import Series
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.charts.plot_surface import Grid, surface
from cephqos_loadgen.report.charts.plot_time import Line, Panel, over_time, stretches
from cephqos_loadgen.report.charts.tracks import level, rate
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.figures.attained import Attained, attained_by_class
from cephqos_loadgen.report.figures.causes import causes_within, with_causes
from cephqos_loadgen.report.figures.observe import Observation, ObservedCause
from cephqos_loadgen.report.pages.page import to_html

OSDS = Osds(count=3, attained=300.0, reservation=500.0, waiting=4.0)
SCRUBBED = Builder(
    points={"a": [SyntheticRepeat([500.0] * 40 + [900.0] * 20, seconds=60, scrub_seconds=40.0)]}
)


def analysed(tmp_path: Path, osds: Osds | None = OSDS) -> ReportRun:
    builder = Builder(points=SCRUBBED.points, osds=osds)
    return analyse(open_archive(builder.write(tmp_path / "archive")))


def chart(run: ReportRun, name: str) -> Chart:
    (found,) = [c for c in build([run], ReportSettings()).charts if c.name == name]
    return found


def drawn(run: ReportRun) -> dict[str, list[float | str | None]]:
    """The data of the chart over time, by column."""
    data = chart(run, "time-01").data
    assert data is not None
    return {
        f"{column.title}, {column.unit}": [row[n].value for row in data.rows]
        for n, column in enumerate(data.columns)
    }


def test_a_repeat_is_drawn_second_by_second(tmp_path: Path) -> None:
    found = drawn(analysed(tmp_path))
    assert found["Time, s"] == [n + 0.5 for n in range(60)]
    assert found["throughput, clients, IOPS"] == [500.0] * 40 + [900.0] * 20
    assert found["backlog, clients, requests"][20] == 12.0
    assert found["attained, clients, % of reserved"][20] == pytest.approx(60.0)
    assert found["latency, p50, ms"][5] == pytest.approx(5.0)


def test_the_end_of_a_load_within_a_second_is_no_fall_in_throughput(tmp_path: Path) -> None:
    run = analysed(tmp_path)
    (observed,) = run.observations
    seconds = observed.intervals.seconds.copy()
    seconds[-1] = 0.1
    ios = observed.intervals.ios.copy()
    ios[-1] = 90
    cut = replace(observed, intervals=replace(observed.intervals, seconds=seconds, ios=ios))
    found = drawn(replace(run, observations=(cut,)))
    assert found["throughput, clients, IOPS"][-2:] == [900.0, None]
    assert found["latency, p50, ms"][-1] == pytest.approx(5.0)


def test_seconds_of_clients_that_are_not_in_step_with_the_charts_make_no_spikes(
    tmp_path: Path,
) -> None:
    """Two that end in the same second of the chart once were 742 IOPS of a load of 400."""
    run = analysed(tmp_path)
    (observed,) = run.observations
    table = observed.intervals
    drifting = np.linspace(-0.4, 0.4, len(table.middles))
    moved = replace(table, middles=table.middles + drifting, ios=np.full(len(table.ios), 500))
    found = drawn(replace(run, observations=(replace(observed, intervals=moved),)))
    rates = [float(rate) for rate in found["throughput, clients, IOPS"] if rate is not None]
    assert len(rates) >= 59
    assert min(rates) > 490 and max(rates) < 510
    # One that lasts long, as where fio did not get round to its status.
    late = replace(
        table,
        **{name: getattr(table, name)[:1] for name in ("phase", "job", "depth", "latency_sum")},
        middles=table.middles[:1] + 4.5,
        seconds=np.array([10.0]),
        ios=np.array([5000]),
        bytes=table.bytes[:1],
        owner=np.zeros(1, np.int64),
        centres=table.centres[:1],
        counts=table.counts[:1],
    )
    found = drawn(replace(run, observations=(replace(observed, intervals=late),)))
    assert found["throughput, clients, IOPS"] == [500.0] * 10 + [None] * 50


@pytest.mark.parametrize(("points", "said"), [(12, False), (13, True)])
def test_points_that_are_not_drawn_over_time_are_said_to_be_left_out(
    tmp_path: Path, points: int, said: bool
) -> None:
    names = {f"p{n}": [SyntheticRepeat(100.0, seconds=3)] for n in range(points)}
    run = analyse(open_archive(Builder(points=names).write(tmp_path / "a")))
    document = build([run], ReportSettings())
    assert sum(chart.name.startswith("time-") for chart in document.charts) == 12
    lines = [caveat.text for caveat in document.caveats]
    assert ("Only the first 12 of 13 points are drawn over time." in lines) is said


def test_a_line_is_broken_where_no_load_ran() -> None:
    lines = [Line("clients", ((0.5, 10.0), (1.5, 10.0), (5.5, 10.0), (6.5, 10.0)))]
    drawing = over_time("t", [Panel("throughput, IOPS", lines, 1.0)], [], [], [], 8.0)
    (path,) = re.findall(r'<path d="([^"]*)"[^>]*data-name="clients"', drawing)
    assert re.sub(r"[^LM]", "", path) == "MLML"
    drawing = over_time("t", [Panel("throughput, IOPS", lines)], [], [], [], 8.0)
    (path,) = re.findall(r'<path d="([^"]*)"[^>]*data-name="clients"', drawing)
    assert re.sub(r"[^LM]", "", path) == "MLLL"


def test_phases_are_bars_and_background_work_is_shaded_in_every_panel(tmp_path: Path) -> None:
    svg = chart(analysed(tmp_path), "time-01").svg
    assert svg.count('class="phase"') == 2
    panels = svg.count('class="panel"')
    assert panels == 4 and svg.count('class="band"') == panels


def test_without_samples_of_osds_only_clients_are_drawn(tmp_path: Path) -> None:
    found = drawn(analysed(tmp_path, None))
    assert not [name for name in found if "backlog" in name or "attained" in name]


def test_a_counter_that_begins_again_has_no_negative_rate() -> None:
    times = np.arange(0.0, 40.0)
    values = np.concatenate([np.arange(20.0) * 5, np.arange(20.0) * 5])
    found = rate([Series("a", {}, times, values)], times[15:], 10.0)
    assert float(np.nanmin(found)) >= 4.0 and float(np.nanmax(found)) == pytest.approx(5.0)


def test_a_gauge_is_unknown_where_its_last_sample_is_old() -> None:
    gauge = Series("a", {}, np.asarray([0.0, 1.0, 30.0]), np.asarray([2.0, 3.0, 4.0]))
    found = level([gauge], np.asarray([0.5, 5.0, 20.0, 30.0]))
    assert found.tolist()[:2] == [2.0, 3.0] and np.isnan(found[2]) and found[3] == 4.0


def test_a_sum_over_osds_is_unknown_where_one_of_them_has_a_gap() -> None:
    """The backlog did not fall, and nobody got twice what was reserved: half was not recorded."""
    whole = np.arange(0.0, 60.0)
    parts = np.concatenate([whole[:20], whole[40:]])
    moments = np.asarray([10.0, 30.0, 50.0])
    queues = [Series("q", {}, times, np.full(len(times), 4.0)) for times in (whole, parts)]
    assert level(queues, moments).tolist()[::2] == [8.0, 8.0]
    assert np.isnan(level(queues, moments)[1])
    counters = [Series("c", {}, times, times * 3.0) for times in (whole, parts)]
    found = rate(counters, moments, 5.0)
    assert found.tolist()[::2] == pytest.approx([6.0, 6.0]) and np.isnan(found[1])
    gone = Series("q", {}, whole[:20], np.full(20, 4.0))  # it has ended: the sum is of the others
    assert level([queues[0], gone], moments).tolist() == [8.0, 4.0, 4.0]


def test_a_point_of_one_repeat_is_not_drawn_as_one_without_spread(tmp_path: Path) -> None:
    def titles(*repeats: int) -> list[str]:
        points = {
            str(n): [SyntheticRepeat(9.0 + r, depths=(1, 2)) for r in range(count)]
            for n, count in enumerate(repeats)
        }
        folder = tmp_path / "-".join(map(str, repeats))
        run = analyse(open_archive(Builder(points=points).write(folder)))
        return [
            chart.title for chart in build([run], ReportSettings()).charts if chart.name == "curve"
        ]

    curve = "Response curve of randwrite 4 KiB: depth at each point; bars up: σ of latency"
    assert titles(1) == [curve]
    assert titles(2, 3) == [f"{curve}, across: ± 1 σ over repeats"]
    assert titles(2, 1) == [f"{curve}, across: ± 1 σ over repeats, none where there was one repeat"]


# -- causes ----------------------------------------------------------------------------------------


def seen(osd: str, cause: str, seconds: range, by: str = "") -> ObservedCause:
    return ObservedCause(osd, "client", cause, by, np.asarray(seconds, np.float64) + START)


def clients(observed: Observation, osd: str) -> Attained:
    (found,) = [
        p
        for p in attained_by_class(observed.samples, START, START + 60)
        if (p.osd, p.work) == (osd, "client")
    ]
    return found


def test_causes_end_with_the_demand_though_the_rules_hold_on_to_them(tmp_path: Path) -> None:
    busy = {"in_progress": 20.0, "in_store": 16.0, "busy": (0, 20)}
    osds = Osds(count=1, attained=300.0, reservation=500.0, media="ssd", **busy)  # type: ignore[arg-type]
    run = with_causes(analysed(tmp_path, osds), [seen("osd.0", "capacity", range(10, 30))])
    (observed,) = run.observations
    result = clients(observed, "osd.0")
    assert 0 < result.demand_seconds <= 11
    found = causes_within(observed, result, START, START + 60)
    assert found == {"capacity": result.demand_seconds}


def test_causes_are_seconds_per_osd_and_class(tmp_path: Path) -> None:
    run = with_causes(
        analysed(tmp_path),
        [
            seen("osd.0", "device", range(10, 30)),
            seen("osd.0", "other_osd", range(30, 35), by="osd.1"),
            seen("osd.1", "device", range(20, 30)),
            seen("osd.1", "replica_writes", range(30, 32), by="immediate"),
            seen("osd.1", "cpu", range(900, 950)),  # not of this repeat
            seen("osd.1", "cpu", range(10)),  # the rules still see the repeat before
        ],
    )
    (observed,) = run.observations
    found = causes_within(observed, clients(observed, "osd.0"), START, START + 60)
    assert found == {"device": 20.0, "other_osd by osd.1": 5.0}
    found = causes_within(observed, clients(observed, "osd.0"), START, START + 14)
    assert found == {"device": 5.0}
    table = next(t for t in build([run], ReportSettings()).tables if t.name == "reservations")
    at = [column.title for column in table.columns].index("Main causes")
    assert [row[at].text for row in table.rows] == [
        "device 20, other_osd by osd.1 5",
        "device 10, replica_writes 2",
        "–",
    ]
    svg = chart(run, "time-01").svg
    assert "client: device: 2 of 3 OSDs, 19 to 29 s" in svg and "client: other_osd" in svg


def test_without_their_evaluation_causes_are_not_mentioned_as_absent(tmp_path: Path) -> None:
    table = next(
        t for t in build([analysed(tmp_path)], ReportSettings()).tables if t.name == "reservations"
    )
    assert "Main causes" not in [column.title for column in table.columns]
    assert "cephqos report --causes" in table.note


def test_attainment_is_of_what_was_reserved_in_each_repeat(tmp_path: Path) -> None:
    """A lab for each repeat measures a capacity of its own."""
    osds = Osds(count=1, reservation=400.0, attained=300.0, waiting=1.0)
    builder = Builder(points={"a": [SyntheticRepeat(100.0, seconds=20)] * 2}, osds=osds)
    folder = builder.write(tmp_path / "archive")
    repeats = sorted(folder.glob("repeats/*/metrics.columns"))
    start = START + 20 + 60
    write_metrics(repeats[1], replace(osds, reservation=800.0, attained=300.0), start, 20)
    found = build([analyse(open_archive(folder))], ReportSettings()).tables
    table = next(it for it in found if it.name == "reservations")
    at = {column.title: n for n, column in enumerate(table.columns)}
    (row,) = table.rows
    assert row[at["Reserved"]].value == pytest.approx(600.0)
    assert row[at["Attainment"]].value == pytest.approx(50.0)


def test_equal_counts_that_follow_each_other_are_one_stretch() -> None:
    assert stretches([1, 2, 3, 7, 8], [1, 1, 2, 2, 0]) == ((0, 2, 1), (2, 3, 2), (6, 7, 2))


# -- surfaces --------------------------------------------------------------------------------------


def test_steps_of_a_curve_make_a_surface_over_an_axis_and_depth(tmp_path: Path) -> None:
    axes = {v: {"volumes": v} for v in ("1", "2", "10")}
    points = {v: [SyntheticRepeat(100.0 * int(v), depths=(1, 8, 64))] for v in axes}
    run = analyse(open_archive(Builder(points=points, axes=axes).write(tmp_path / "archive")))
    drawing = chart(run, "surface-01").svg
    assert drawing.count('class="face"') == 4
    assert "volumes 10, depth 64: 3,000 IOPS" in drawing


def test_two_runs_have_surfaces_beside_each_other_on_one_scale(tmp_path: Path) -> None:
    axes = {f"{v}x{d}": {"volumes": v, "queue": d} for v in "12" for d in "48"}
    runs = []
    for name, factor in (("pacific", 1.0), ("reef", 4.0)):
        points = {point: [SyntheticRepeat(100.0 * factor)] for point in axes}
        builder = Builder(run=name, points=points, axes=axes)
        runs.append(analyse(open_archive(builder.write(tmp_path / name))))
    charts = [c for c in build(runs, ReportSettings()).charts if c.name.startswith("surface")]
    assert [c.title.rpartition(" ")[2] for c in charts] == ["pacific", "reef"]
    assert all(' class="soft end">400<' in c.svg for c in charts)


def test_a_missing_value_leaves_a_hole() -> None:
    values = {(x, y): 1.0 for x in "123" for y in "123" if (x, y) != ("1", "1")}
    grid = Grid("t", "IOPS", "x", "y", "123", "123", values, 1.0)
    assert surface(grid).count('class="face"') == 3


# -- tables that took the place of charts ----------------------------------------------------------


def rows_of(runs: list[ReportRun], name: str) -> list[list[str]]:
    (table,) = [it for it in build(runs, ReportSettings()).tables if it.name == name]
    heads = [column.title for column in table.columns]
    return [heads, *([cell.text for cell in row] for row in table.rows)]


def test_steps_of_a_curve_make_a_table_over_an_axis_and_depth(tmp_path: Path) -> None:
    axes = {v: {"volumes": v} for v in ("1", "2", "10")}
    points = {v: [SyntheticRepeat(100.0 * int(v), depths=(1, 8, 64))] for v in axes}
    run = analyse(open_archive(Builder(points=points, axes=axes).write(tmp_path / "archive")))
    assert rows_of([run], "by-volumes-client-iops") == [
        ["depth", "1", "2", "10"],
        ["1", "100", "200", "1,000"],
        ["8", "200", "400", "2,000"],
        ["64", "300", "600", "3,000"],
    ]


def test_two_axes_of_numbers_make_one_table_of_several_runs(tmp_path: Path) -> None:
    """Side by side and on one scale, as for two releases."""
    axes = {f"{v}x{d}": {"volumes": v, "queue": d} for v in "12" for d in "48"}
    runs = []
    for name, factor in (("pacific", 1.0), ("reef", 4.0)):
        points = {point: [SyntheticRepeat(100.0 * factor)] for point in list(axes)[factor > 1 :]}
        builder = Builder(run=name, points=points, axes=axes)
        runs.append(analyse(open_archive(builder.write(tmp_path / name))))
    assert rows_of(runs, "by-queue-client-iops") == [
        ["volumes", "run", "4", "8"],
        ["1", "pacific", "100", "100"],
        ["2", "pacific", "100", "100"],
        ["1", "reef", "–", "400"],
        ["2", "reef", "400", "400"],
    ]
    page = to_html(build(runs, ReportSettings()))
    assert page.count("--shade:60%") == 3 and page.count("--shade:15%") == 4


def test_the_table_of_cpus_has_where_osds_may_run_and_where_their_reactors_do(
    tmp_path: Path,
) -> None:
    osds = Osds(count=2, cpus=("0-3", "4-7"), reactors=(1, 5))
    builder = Builder(points={"a": [SyntheticRepeat(100.0)]}, osds=osds)
    run = analyse(open_archive(builder.write(tmp_path / "archive")))
    assert rows_of([run], "cpus")[1:] == [
        ["policy=a", "osd.0", "0-3", "–", "–", "1"],
        ["policy=a", "osd.1", "4-7", "–", "–", "5"],
    ]


def test_where_all_may_run_everywhere_there_is_no_table_of_cpus(tmp_path: Path) -> None:
    osds = Osds(count=2, cpus=("0-7", "0-7"))
    builder = Builder(points={"a": [SyntheticRepeat(100.0)]}, osds=osds)
    run = analyse(open_archive(builder.write(tmp_path / "archive")))
    assert "cpus" not in [table.name for table in build([run], ReportSettings()).tables]


# -- the trade -------------------------------------------------------------------------------------


def test_what_clients_kept_is_drawn_against_the_time_of_the_work_beside_them(
    tmp_path: Path,
) -> None:
    def repeats(*of: tuple[float, float]) -> list[SyntheticRepeat]:
        return [SyntheticRepeat(iops, scrub_seconds=seconds) for iops, seconds in of]

    points = {"a": repeats((90.0, 20.0), (100.0, 22.0), (110.0, 24.0)), "b": repeats((150.0, 30.0))}
    run = analyse(open_archive(Builder(points=points).write(tmp_path / "archive")))
    first, second = build([run], ReportSettings()).charts[:2]
    assert (first.name, second.name) == ("trade-scrub-iops", "trade-scrub-clat_p99")
    assert first.data is not None
    several, one = first.data.rows
    # 4.303 times the error of the mean, for three repeats.
    assert [cell.value for cell in several] == pytest.approx(
        ["a", 100.0, 75.16, 124.84, 22.0, 17.03, 26.97], abs=0.01
    )
    assert [cell.value for cell in one] == ["b", 150.0, None, None, 30.0, None, None]


def test_there_is_no_trade_between_fewer_than_two_points(tmp_path: Path) -> None:
    document = build([analysed(tmp_path)], ReportSettings())
    assert not [chart for chart in document.charts if chart.name.startswith("trade")]
