"""Each figure of a row on a run whose figures are known: worked out by hand, and numpy's."""

import csv
import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic_archive import START, Builder, Osds, SyntheticRepeat

from cephqos_base.command import main
from cephqos_base.series import DaemonSeries, QosSeries
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.bins import Bins
from cephqos_loadgen.report.arrays.samples import Samples, Series, read_samples
from cephqos_loadgen.report.arrays.statistics import change
from cephqos_loadgen.report.figures.analysis import Key, ReportRow, ReportRun, analyse, load_row
from cephqos_loadgen.report.figures.attained import attained_by_class, hold_of
from cephqos_loadgen.report.figures.cost import thread_groups
from cephqos_loadgen.report.figures.loads import WHOLE, LoadPart
from cephqos_loadgen.results.phase import RecoveryFigures
from cephqos_loadgen.run_recording.columns import ColumnWriter
from cephqos_loadgen.run_recording.metrics import labelled

SATURATED = Osds(attained=800.0, waiting=5.0)


def run(folder: Path, **more: Any) -> ReportRun:
    points = {"a": [SyntheticRepeat(1000.0)] * 3}
    builder = Builder(**{"points": points, "osds": SATURATED, **more})
    return analyse(open_archive(builder.write(folder)))


def row(found: ReportRun, window: str = WHOLE, kind: str = "load") -> ReportRow:
    return next(r for r in found.rows if (r.key.window, r.key.kind) == (window, kind))


# -- what a load cost ------------------------------------------------------------------------------


def test_cpu_memory_and_devices_of_a_load_are_those_of_its_seconds(tmp_path: Path) -> None:
    """1,000 IOPS. Two OSDs of 0.4 cores and 1 GB, a client of 0.8 cores, a device per OSD that does
    50 requests and 4,096 bytes a second and spends 0.1 s on them."""
    found = row(run(tmp_path / "a"))
    expected = {
        "osd_cores": 0.8,
        "osd_cpu_per_io": 800e-6,
        "client_cores": 0.8,
        "client_cpu_per_io": 800e-6,
        "osd_memory": 2e9,
        "client_memory": float(1 << 20),
        "device_request": 0.002,
        "device_written": 2 * 4096.0,
    }
    assert {key: found.value(key) for key in expected} == pytest.approx(expected)
    groups = thread_groups(run(tmp_path / "b").observations[0].samples, START, START + 30)
    assert groups == pytest.approx(dict.fromkeys(SATURATED.groups, 2 * 0.1 * 30))


def test_what_recording_cost_is_in_the_table_of_repeats(tmp_path: Path) -> None:
    folder = Builder(points={"a": [SyntheticRepeat(1000.0)]}).write(tmp_path / "a")
    assert main(["report", str(folder), "--out", str(tmp_path / "out")]) == 0
    (line,) = csv.DictReader((tmp_path / "out/tables/repeats.csv").read_text().splitlines())
    assert float(line["Recording, % of a core"]) == pytest.approx(1.0)
    assert float(line["Exporter CPU, s"]) == pytest.approx(0.3)
    assert line["Disks by others, % of time"] == "", "not recorded"


def test_what_others_had_of_the_host_is_in_the_table_of_repeats(tmp_path: Path) -> None:
    busy = {"steal": 0.02, "others": 0.15, "disks": 0.4}
    folder = Builder(points={"a": [SyntheticRepeat(1000.0)]}, busy=busy).write(tmp_path / "a")
    assert main(["report", str(folder), "--out", str(tmp_path / "out")]) == 0
    (line,) = csv.DictReader((tmp_path / "out/tables/repeats.csv").read_text().splitlines())
    assert float(line["CPU by others, %"]) == pytest.approx(15.0)
    assert float(line["Steal, %"]) == pytest.approx(2.0)
    assert float(line["Disks by others, % of time"]) == pytest.approx(40.0)


# -- background work -------------------------------------------------------------------------------


def with_looks(folder: Path, seconds: range, misplaced: int) -> Path:
    """An archive in which placement groups recovered in these seconds of its only repeat."""
    recovery = RecoveryFigures(120, 240 << 20, 12.0, True)
    rates = [400.0 if second in seconds else 1000.0 for second in range(30)]
    points = {"a": [SyntheticRepeat(rates, recovery=recovery)]}
    archive = Builder(points=points).write(folder)
    path = next(archive.glob("repeats/*/cluster.jsonl.gz"))
    lines = []
    for second, text in enumerate(gzip.decompress(path.read_bytes()).splitlines()):
        state = "active+undersized+recovering" if second in seconds else "active+clean"
        look = json.loads(text) | {"pgmap": {"pgs_by_state": [{"state_name": state}]}}
        look["pools"] = {"rbd": {"num_objects_misplaced": misplaced - second}}
        lines.append(json.dumps(look))
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    return archive


def test_the_part_of_a_load_beside_recovery_has_rows_of_its_own(tmp_path: Path) -> None:
    found = analyse(open_archive(with_looks(tmp_path / "a", range(10, 22), 90)))
    assert row(found, "during recovery").value("iops") == pytest.approx(400, rel=0.01)
    assert row(found, "without either").value("iops") == pytest.approx(1000, rel=0.01)


def test_recovery_has_its_objects_bytes_time_and_the_most_that_was_misplaced(
    tmp_path: Path,
) -> None:
    found = row(
        analyse(open_archive(with_looks(tmp_path / "a", range(5, 17), 90))), kind="background"
    )
    expected = {
        "recovery_seconds": 12.0,
        "recovery_objects": 120.0,
        "recovery_object_rate": 10.0,
        "recovery_bandwidth": float(20 << 20),
        "misplaced": 90.0,
    }
    assert {key: found.value(key) for key in expected} == pytest.approx(expected)


def test_a_scrub_has_its_time_and_rates(tmp_path: Path) -> None:
    repeat = SyntheticRepeat(1000.0, scrub_seconds=20.0, scrub_bytes=100 << 20, scrub_objects=50)
    found = row(run(tmp_path / "a", points={"a": [repeat]}), kind="background")
    expected = {
        "scrub_seconds": 20.0,
        "scrub_bandwidth": float(5 << 20),
        "scrub_object_rate": 2.5,
        "scrub_at_once": 5.0,
    }
    assert {key: found.value(key) for key in expected} == pytest.approx(expected)


def test_memory_of_an_osd_that_was_gone_before_a_load_is_not_that_of_the_load() -> None:
    series = Series("m", {}, np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0]))
    assert series.at(100.0, since=0.0) == 7.0
    assert series.at(100.0, since=50.0) is None
    assert series.at(2.5, since=2.0) == 6.0


def test_an_osd_that_did_not_answer_at_the_end_of_a_load_is_judged_by_what_is_known() -> None:
    """300 operations a second, of which the last 9 s are missing: that is not 210."""
    label = {"ceph_daemon": "osd.0", "class": "client"}
    times = np.arange(0.0, 22.0)
    reserved = Series(QosSeries.RESERVATION_OPS, label, times, np.full(22, 400.0))
    attained = Series(QosSeries.OPS, label, times, times * 300)
    samples = Samples({QosSeries.OPS: [attained], QosSeries.RESERVATION_OPS: [reserved]})
    (result,) = attained_by_class(samples, 0.4, 30.4)
    assert (result.attained, result.seconds) == pytest.approx((300.0, 20.6))
    assert result.attainment == pytest.approx(0.75)


def test_the_limit_of_an_earlier_point_is_not_that_of_this_one() -> None:
    """A gauge that is gone, as a class has no limit now, has no value."""
    label = {"ceph_daemon": "osd.0", "class": "client"}
    times = np.arange(0.0, 61.0)
    samples = Samples(
        {
            QosSeries.OPS: [Series(QosSeries.OPS, label, times, times * 300)],
            QosSeries.RESERVATION_OPS: [
                Series(QosSeries.RESERVATION_OPS, label, times[:20], np.full(20, 400.0))
            ],
            QosSeries.LIMIT_OPS: [
                Series(QosSeries.LIMIT_OPS, label, times[:20], np.full(20, 300.0))
            ],
        }
    )
    (before,) = attained_by_class(samples, 0.0, 15.0)
    assert (before.reservation, before.limit) == (400.0, 300.0)
    (after,) = attained_by_class(samples, 30.0, 60.0)
    assert (after.reservation, after.limit) == (None, None)
    ends = np.array([45.0, 60.0])
    hold = hold_of(samples, "osd.0", "client", ends, np.full(2, 300.0))
    assert np.isnan(np.asarray(hold.reserved)) and np.isnan(np.asarray(hold.limit))


_OSD = {"ceph_daemon": "osd.0"}
_SECONDS = np.arange(0.0, 41.0)


def _short_of_its_reservation(work: str, *, restart_at: int | None) -> Samples:
    """A class gets 300 of 400 operations a second, and ten wait for all of the time."""
    of_class = _OSD | {"class": work}

    def counter(name: str, rate: float, labels: dict[str, str] = _OSD) -> Series:
        at = restart_at or 99
        return Series(name, labels, _SECONDS, (_SECONDS - np.where(at > _SECONDS, -9, at)) * rate)

    def gauge(name: str, value: float, labels: dict[str, str] = _OSD) -> Series:
        return Series(name, labels, _SECONDS, np.full(len(_SECONDS), value))

    every = (
        counter(QosSeries.OPS, 300.0, of_class),
        counter(QosSeries.DELIVERED_OPS, 300.0),
        counter(QosSeries.CLIENT_WAIT_SECONDS, 10.0),
        gauge(QosSeries.CLIENT_OPS_IN_PROGRESS, 10.0),
        gauge(QosSeries.QUEUE_LENGTH, 10.0, of_class),
        gauge(QosSeries.RESERVATION_OPS, 400.0, of_class),
    )
    return Samples({it.name: [it] for it in every})


@pytest.mark.parametrize("work", ["client", "background_recovery"])
def test_windows_in_which_an_osd_restarted_are_neither_demand_nor_a_violation(work: str) -> None:
    (steady,) = attained_by_class(_short_of_its_reservation(work, restart_at=None), 0.0, 40.0)
    assert (steady.demand_seconds, steady.violated_seconds) == (31.0, 31.0)
    (restarted,) = attained_by_class(_short_of_its_reservation(work, restart_at=20), 0.0, 40.0)
    assert (restarted.demand_seconds, restarted.violated_seconds) == (21.0, 21.0)
    assert not restarted.had_demand_at(np.array([20.0, 29.0])).any()
    assert restarted.had_demand_at(np.array([19.0, 30.0])).all()
    assert restarted.attained_most == pytest.approx(300.0)


def test_a_counter_that_fell_counts_from_zero_wherever_a_rate_is_read() -> None:
    """BlueStore's counters alone began again, as after `perf reset`."""
    values = np.where(_SECONDS < 20, 1000.0 + 8 * _SECONDS, 8 * (_SECONDS - 20))
    found = Samples({QosSeries.STORE_SECONDS: [Series("s", _OSD, _SECONDS, values)]})
    hold = hold_of(found, "osd.0", "client", np.array([15.0, 25.0, 35.0]), np.zeros(3))
    assert list(np.asarray(hold.store_seconds)) == pytest.approx([8.0, 7.2, 8.0])


def test_a_counter_that_begins_late_has_no_rate_before() -> None:
    """Nothing is known of it before two samples: it did not stand still, and did not count yet."""
    late = Series("s", _OSD, _SECONDS[20:], 8 * _SECONDS[20:])
    used = Series("u", _OSD | {"throttle": "bluestore"}, _SECONDS, np.full(len(_SECONDS), 0.5))
    found = Samples(
        {
            QosSeries.STORE_SECONDS: [late],
            QosSeries.STORE_TRANSACTIONS: [late],
            QosSeries.THROTTLE_USED_RATIO: [used],
        }
    )
    hold = hold_of(found, "osd.0", "client", np.array([10.0, 20.0, 25.0]), np.zeros(3))
    rates = np.asarray(hold.store_seconds)
    assert np.isnan(rates[:2]).all()
    assert rates[2] == pytest.approx(8.0)
    assert list(hold.piling_up) == [False, False, True]


def test_counters_that_add_up_count_as_far_as_they_are_known() -> None:
    early = Series("a", _OSD, _SECONDS, 3 * _SECONDS)
    late = Series("b", _OSD, _SECONDS[20:], 5 * _SECONDS[20:])
    found = Samples(
        {QosSeries.CLIENT_WAIT_SECONDS: [early], QosSeries.THROTTLE_WAIT_SECONDS: [late]}
    )
    hold = hold_of(found, "osd.0", "client", np.array([10.0, 40.0]), np.zeros(2))
    assert list(np.asarray(hold.waiting)) == pytest.approx([3.0, 8.0])


def test_what_a_counter_grew_before_and_after_a_load_is_not_that_of_the_load() -> None:
    """Samples are a second apart, and a load begins between two of them: idle until 10.4, then 100
    a second until 13.4, of which the samples at 10 and 13 show 260."""
    times = np.arange(0.0, 20.0)
    busy = Series("c", {}, times, np.clip(times - 10.4, 0.0, 3.0) * 100)
    assert busy.growth(11.0, 13.0) == pytest.approx(200.0)
    assert busy.growth(10.4, 13.4) == pytest.approx(0.6 * 60 + 200 + 0.4 * 40)
    assert busy.growth(9.0, 15.0) == pytest.approx(300.0)
    restarted = Series("c", {}, times[:4], np.array([100.0, 110.0, 4.0, 9.0]))
    assert restarted.growth(0.0, 3.0) == pytest.approx(10 + 4 + 5)
    assert restarted.growth(5.0, 9.0) == 0.0


def test_an_osd_that_two_exporters_see_is_counted_once(tmp_path: Path) -> None:
    writer = ColumnWriter(tmp_path / "m.columns")
    for second in range(3):
        own = f'{DaemonSeries.CPU_SECONDS}{{ceph_daemon="osd.0",mode="user"}}'
        writer.add(1e9 + second, {own: second, labelled(own, "exporter.1"): second})
    writer.close()
    found = read_samples(tmp_path / "m.columns", {DaemonSeries.CPU_SECONDS})
    assert found.growth(DaemonSeries.CPU_SECONDS, 1e9, 1e9 + 2) == 2.0


@pytest.mark.parametrize(("rate", "known"), [(3000.0, False), (4000.0, True)])
def test_a_percentile_that_so_few_completions_cannot_tell_is_a_dash(
    tmp_path: Path, rate: float, known: bool
) -> None:
    """10,000 are needed for p99.99; here 9,000 and 12,000."""
    points = {"a": [SyntheticRepeat(rate, seconds=3)]}
    archive = Builder(points=points).write(tmp_path / "a")
    wanted = ["--percentile", "99.99", "--percentile", "99", "--out", str(tmp_path / "out")]
    assert main(["report", str(archive), *wanted]) == 0
    with (tmp_path / "out" / "tables" / "loads.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert bool(line["p99.99, ms"]) is known
    assert line["p99.9, ms"]
    header = (tmp_path / "out" / "tables" / "loads.csv").read_text().splitlines()[0]
    assert header.count('"p99, ms"') == 1
    text = (tmp_path / "out" / "report.md").read_text()
    assert ("too few completions to know it" in text) is not known


# -- merging ---------------------------------------------------------------------------------------


def part(raw: list[int]) -> LoadPart:
    """A repeat with these completions, in nanoseconds."""
    values = np.asarray(raw, np.float64) * 1e-9
    bins = Bins.of({value: raw.count(value) for value in raw})
    deviation = float(values.std(ddof=1)) if len(raw) > 1 else 0.0
    mean = float(values.mean())
    return LoadPart(
        "client", 1, "total", WHOLE, False, 0.0, 1.0, 1.0, len(raw), float(len(raw)), 0.0,
        mean, deviation, bins, {},
    )  # fmt: skip


RAW = st.lists(st.integers(1000, 10**8), min_size=1, max_size=60)


@given(st.lists(RAW, min_size=1, max_size=5))
def test_mean_and_deviation_of_repeats_are_those_of_all_completions_together(
    repeats: list[list[int]],
) -> None:
    """Repeats of different length weigh as much as their completions."""
    raw = np.concatenate(repeats) * 1e-9
    found = load_row(Key("r", "p", "client", "load"), {}, [part(each) for each in repeats])
    assert found.value("clat_mean") == pytest.approx(float(raw.mean()))
    if len(raw) > 1:
        expected = float(raw.std(ddof=1))
        assert found.value("clat_sd") == pytest.approx(expected, rel=1e-6, abs=1e-12)
    else:
        assert found.value("clat_sd") is None


def test_a_repeat_in_which_nothing_completed_counts_for_throughput_and_not_for_latency() -> None:
    key = Key("r", "p", "client", "load")
    nothing = replace(part([5000]), ios=0, iops=0.0, bins=Bins.of({}), mean_seconds=0.0)
    found = load_row(key, {}, [part([4000, 4000]), part([6000, 6000]), nothing]).figures
    assert found["iops"].samples == (2.0, 2.0, 0.0)
    assert found["clat_mean"].samples == pytest.approx((4e-6, 6e-6))
    assert found["clat_mean"].value == pytest.approx(5e-6)


# -- intervals -------------------------------------------------------------------------------------


def test_an_interval_worked_out_by_hand() -> None:
    """96, 100 and 104 against exactly 100: σ 4, its standard error 4/√3 = 2.309, Student's t of two
    degrees of freedom 4.303, so a factor of exp(0.0994) to each side."""
    found = change([96.0, 100.0, 104.0], [100.0], exact_reference=True)
    assert found.ratio == pytest.approx(0.0)
    assert found.low == pytest.approx(math.exp(-0.0994) - 1, rel=1e-3)
    assert found.high == pytest.approx(math.exp(0.0994) - 1, rel=1e-3)
    assert not found.beyond_noise


@settings(max_examples=40)
@given(st.lists(st.floats(50.0, 150.0), min_size=2, max_size=6), st.integers(2, 6))
def test_the_same_spread_over_more_repeats_makes_a_narrower_interval(
    values: list[float], times: int
) -> None:
    if float(np.std(values)) < 0.5:
        return
    few = change(values, [100.0], exact_reference=True)
    many = change(values * times, [100.0], exact_reference=True)
    assert few.low is not None and few.high is not None
    assert many.low is not None and many.high is not None
    assert many.high - many.low < few.high - few.low


# -- the baseline's own caveats -------------------------------------------------------------------


@pytest.mark.parametrize(("spread", "said"), [(0.3, True), (0.01, False)])
def test_an_unstable_baseline_is_a_caveat_of_the_report(
    tmp_path: Path, spread: float, said: bool
) -> None:
    repeats = [SyntheticRepeat(2000.0 * share) for share in (1 - spread, 1.0, 1 + spread)]
    base = Builder(run="alone", points={"none": repeats}, osds=SATURATED).write(tmp_path / "base")
    points = {"a": [SyntheticRepeat(1000.0)] * 3}
    archive = Builder(run="a", points=points, osds=SATURATED).write(tmp_path / "a")
    out = tmp_path / "out"
    assert main(["report", str(archive), "--baseline", str(base), "--out", str(out)]) == 0
    page = (out / "report.md").read_text()
    assert ("Baseline: Throughput differs much between repeats" in page) is said


RISING = [500.0] * 10 + [750.0] * 10 + [1000.0] * 10


@pytest.mark.parametrize(("rates", "said"), [(RISING, True), ([1000.0] * 30, False)])
def test_a_baseline_that_drifts_is_a_caveat_of_the_report(
    tmp_path: Path, rates: list[float], said: bool
) -> None:
    repeats = [replace(SyntheticRepeat(1000.0), iops=rates)] * 3
    base = Builder(run="alone", points={"none": repeats}, osds=SATURATED).write(tmp_path / "base")
    points = {"a": [SyntheticRepeat(700.0)] * 3}
    archive = Builder(run="a", points=points, osds=SATURATED).write(tmp_path / "a")
    out = tmp_path / "out"
    assert main(["report", str(archive), "--baseline", str(base), "--out", str(out)]) == 0
    assert ("Baseline: Throughput drifts" in (out / "report.md").read_text()) is said
