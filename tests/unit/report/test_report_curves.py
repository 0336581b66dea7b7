"""Every step of a curve has rows of its own: reservation, attainment, cause, changes, caveats."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.synthetic_archive import START, Builder, Osds, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.figures.causes import with_causes
from cephqos_loadgen.report.figures.observe import ObservedCause
from cephqos_loadgen.report.tables.table import Table
from cephqos_loadgen.results.phase import Step

# Twenty seconds at each depth. Clients got more than their 500 at the first, less at the second.
CURVE = SyntheticRepeat(100.0, seconds=40, depths=(1, 16))
SHORT_AT_16 = Osds(attained_each=[600.0] * 20 + [300.0] * 20, waiting=5.0)


def archive(folder: Path, *, repeats: int = 1, osds: Osds | None = SHORT_AT_16) -> Path:
    return Builder(points={"a": [CURVE] * repeats}, osds=osds).write(folder)


def analysed(folder: Path) -> ReportRun:
    return analyse(open_archive(folder))


def table(run: ReportRun, name: str, settings: ReportSettings | None = None) -> Table:
    document = build([run], settings or ReportSettings())
    return next(found for found in document.tables if found.name == name)


def column(found: Table, title: str) -> list[str]:
    at = [column.title for column in found.columns].index(title)
    return [row[at].text for row in found.rows]


def test_every_step_is_held_against_the_reservation_by_itself(tmp_path: Path) -> None:
    found = table(analysed(archive(tmp_path / "a")), "reservations")
    assert column(found, "Depth") == ["1", "1", "16", "16"]
    assert column(found, "OSD") == ["osd.0", "osd.1"] * 2
    assert column(found, "Attainment") == ["120", "120", "60.0", "60.0"]
    violated = [float(text) for text in column(found, "Violated")]
    assert violated[:2] == [0, 0] and all(9 <= seconds <= 12 for seconds in violated[2:])
    assert column(found, "Of") == ["20.0"] * 4


def test_the_table_of_curves_has_the_worst_osd_of_each_step(tmp_path: Path) -> None:
    found = table(analysed(archive(tmp_path / "a", repeats=3)), "curves")
    shares = column(found, "Clients' attainment, least OSD")
    violated = column(found, "Clients violated, all OSDs")
    rows = list(
        zip(column(found, "Depth"), column(found, "Direction"), shares, violated, strict=True)
    )
    total = {depth: rest for depth, op, *rest in rows if op == "total"}
    assert total["1"] == ["120", "0"]
    assert total["16"][0] == "60.0" and 18 <= float(total["16"][1]) <= 24, "two OSDs, per repeat"


def test_without_reservations_a_curve_has_no_such_columns(tmp_path: Path) -> None:
    found = table(analysed(archive(tmp_path / "a", osds=None)), "curves")
    assert not [column.title for column in found.columns if "attainment" in column.title]


def test_a_load_of_one_depth_has_no_column_for_it(tmp_path: Path) -> None:
    builder = Builder(points={"a": [SyntheticRepeat(100.0)]}, osds=SHORT_AT_16)
    found = table(analysed(builder.write(tmp_path / "a")), "reservations")
    assert "Depth" not in [column.title for column in found.columns]


def test_causes_of_a_step_are_those_that_only_it_can_have(tmp_path: Path) -> None:
    """The rules look back 10 s: in its first ten seconds a step still shows the one before."""
    times = np.arange(START + 15, START + 35)
    seen = ObservedCause("osd.0", "client", "device", "", times)
    found = table(with_causes(analysed(archive(tmp_path / "a")), [seen]), "reservations")
    by_step = zip(
        column(found, "Depth"), column(found, "OSD"), column(found, "Main causes"), strict=True
    )
    assert list(by_step) == [
        ("1", "osd.0", "device 6"),
        ("1", "osd.1", "–"),
        ("16", "osd.0", "device 5"),
        ("16", "osd.1", "–"),
    ]


def test_steps_change_against_those_of_the_reference_at_the_same_depth(tmp_path: Path) -> None:
    slower = SyntheticRepeat(80.0, seconds=40, depths=(1, 16))
    points = {"a": [CURVE] * 3, "b": [slower] * 3}
    run = analysed(Builder(points=points).write(tmp_path / "a"))
    found = table(run, "changes")
    rows = [[cell.text for cell in row] for row in found.rows]
    assert [row[:2] + row[4:6] for row in rows if row[2].startswith("Throughput")] == [
        ["b", "client, depth 1", "-20.0", "-20.0 %"],
        ["b", "client, depth 16", "-40.0", "-20.0 %"],
    ]


def test_a_step_is_compared_with_a_baseline_and_not_judged_by_its_target(tmp_path: Path) -> None:
    run = analysed(archive(tmp_path / "a", repeats=3))
    found = table(run, "baseline", ReportSettings((400.0,), "given", 0.4))
    assert column(found, "Load") == ["client, depth 1", "client, depth 16"]
    changes = [row[-4].text for row in found.rows]
    assert changes == ["-75.0 %", "-50.0 %"]
    assert column(found, "Result") == ["–", "–"]


def test_a_sweep_that_ended_with_its_first_step_is_a_curve_all_the_same(tmp_path: Path) -> None:
    folder = archive(tmp_path / "a")
    path = next(folder.glob("repeats/*/repeat.json"))
    record = json.loads(path.read_text())
    result = record["phases"]["client"]["result"]
    result |= {"mode": "sweep", "steps": result["steps"][:1], "stopped_because": "dispersion"}
    path.write_text(json.dumps(record))
    assert column(table(analysed(folder), "curves"), "Depth")[0] == "1"


@pytest.mark.parametrize(("mode", "steps", "curve"), [("load", 1, False), ("search", 1, True)])
def test_a_mode_says_what_is_a_curve(mode: str, steps: int, curve: bool, tmp_path: Path) -> None:
    (observed,) = analysed(archive(tmp_path / "a")).observations
    result = observed.record.phases["client"].result
    assert isinstance(result, FioResult)
    own: tuple[Step, ...] = result.steps[:steps]
    assert FioResult("rbd", mode, own).is_curve is curve  # type: ignore[arg-type]


def test_cpu_by_group_of_threads_is_that_of_each_step(tmp_path: Path) -> None:
    """Two OSDs, each of whose groups used 0.1 cores all the time."""
    run = analysed(archive(tmp_path / "a", repeats=2))
    found = table(run, "threads")
    assert column(found, "Depth") == ["1", "16"]
    assert column(found, "tp_osd_tp") == ["0.200", "0.200"]
    assert column(found, "all others") == ["0", "0"]
    plain = Builder(points={"a": [SyntheticRepeat(100.0)]}, osds=SHORT_AT_16)
    found = table(analysed(plain.write(tmp_path / "b")), "threads")
    assert "Depth" not in [column.title for column in found.columns]
    assert column(found, "bstore_kv_sync") == ["0.200"]


def test_without_samples_of_threads_there_is_no_table_of_them(tmp_path: Path) -> None:
    document = build([analysed(archive(tmp_path / "a", osds=None))], ReportSettings())
    assert "threads" not in [found.name for found in document.tables]


# -- caveats of a step ----------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "said"), [(0.97, True), (0.80, False)])
def test_a_client_at_its_ceiling_in_one_step_marks_that_step(
    tmp_path: Path, share: float, said: bool
) -> None:
    folder = archive(tmp_path / "a")
    path = next(folder.glob("repeats/*/host.json"))
    host = json.loads(path.read_text())
    step = json.loads(json.dumps(host["client"]))
    step["processes"]["client.client.0"]["threads"]["fio"]["busiest_seconds"] = share * 40
    path.write_text(json.dumps(host | {"client depth 16": step}))
    found = [d for d in caveats(analysed(folder)) if "The client limits" in d.text]
    assert bool(found) is said
    for caveat in found:
        assert "client at depth 16 of policy=a" in caveat.text
        assert {key.depth for key in caveat.rows} == {16}


@pytest.mark.parametrize(("low", "said"), [(0.7, True), (0.9, False)])
def test_unequal_jobs_of_any_step_are_a_caveat_of_that_step(
    tmp_path: Path, low: float, said: bool
) -> None:
    folder = archive(tmp_path / "a")
    path = next(folder.glob("repeats/*/repeat.json"))
    record = json.loads(path.read_text())
    jobs = record["phases"]["client"]["result"]["steps"][0]["jobs"]
    first = next(iter(jobs.values()))
    jobs["client.0/volume.1"] = {**first, "iops": first["iops"] * low}
    path.write_text(json.dumps(record))
    found = [d for d in caveats(analysed(folder)) if "The jobs of" in d.text]
    assert bool(found) is said
    for caveat in found:
        assert {key.depth for key in caveat.rows} == {1}
