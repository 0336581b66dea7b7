"""Reports: figures against fio and numpy, the published arithmetic, writers, damaged archives."""

import csv
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.recorded import ARCHIVE, documents
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_base.command import main
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import read_samples
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.figures.attained import attained_by_class
from cephqos_loadgen.report.pages.markdown import to_markdown
from cephqos_loadgen.report.pages.page import to_html
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_changes import targets_table
from cephqos_loadgen.report.tables.of_loads import background_table
from cephqos_loadgen.report.tables.table import Table
from cephqos_loadgen.run_recording import columns


@pytest.fixture(scope="module")
def committed() -> ReportRun:
    return analyse(open_archive(ARCHIVE))


def run(tmp_path: Path, builder: Builder) -> ReportRun:
    return analyse(open_archive(builder.write(tmp_path / "archive")))


def column(table: Table, title: str) -> list[str]:
    (index,) = [n for n, found in enumerate(table.columns) if found.title == title][-1:]
    return [row[index].text for row in table.rows]


# -- figures ---------------------------------------------------------------------------------------


def test_percentiles_are_fios_own_to_the_width_of_a_bin(committed: ReportRun) -> None:
    """fio prints percentiles per job and direction; of one job alone they can be compared."""
    for observed, repeat in zip(committed.observations, open_archive(ARCHIVE).repeats, strict=True):
        fio = documents(repeat.output("curve.client.0"))[-1]["jobs"][0]["write"]["clat_ns"]
        part = next(p for p in observed.loads if (p.phase, p.depth, p.op) == ("curve", 1, "write"))
        for percent in (50.0, 95.0, 99.0):
            printed = fio["percentile"][f"{percent:.6f}"]
            found = part.bins.percentile_seconds(percent)
            assert found == pytest.approx(printed * 1e-9, rel=0.016)
        assert part.mean_seconds == pytest.approx(fio["mean"] * 1e-9, rel=1e-6)
        assert part.deviation_seconds == pytest.approx(fio["stddev"] * 1e-9, rel=1e-6)


def test_repeats_are_merged_completion_by_completion(committed: ReportRun) -> None:
    row = next(r for r in committed.rows if r.key.phase == "client" and r.bins)
    raw = np.concatenate(
        [
            np.repeat(part.bins.centres, part.bins.counts)
            for observed in committed.observations
            for part in observed.loads
            if (part.phase, part.window) == (row.key.phase, row.key.window)
        ]
    )
    assert row.bins is not None and row.bins.total == len(raw)
    for percent in (50.0, 99.0, 99.9, 99.95):
        expected = float(np.percentile(raw, percent, method="inverted_cdf")) * 1e-9
        assert row.percentile_seconds(percent) == pytest.approx(expected)


def test_samples_are_those_of_the_archives_own_reader() -> None:
    path = next(ARCHIVE.glob("repeats/001*/metrics.columns"))
    whole = columns.read(path).series
    families = {name.partition("{")[0] for name in whole}
    found = read_samples(path, families)
    ours = sorted(tuple(s.values.tolist()) for group in found.families.values() for s in group)
    assert ours == sorted(tuple(v for _, v in samples) for samples in whole.values())
    one = read_samples(path, {"cephqos_daemon_up"}).families
    assert set(one) == {"cephqos_daemon_up"}


def test_the_published_half_of_the_baseline_is_kept_and_broken(tmp_path: Path) -> None:
    points = {
        "high_client_ops": [SyntheticRepeat(11209.0)] * 3,
        "wpq_boost": [SyntheticRepeat(2544.0)] * 3,
    }
    found = run(tmp_path, Builder(points=points))
    table = targets_table(Subject([found], ReportSettings((21500.0,), "given", 0.5)))
    assert column(table, "Target") == ["10,750", "10,750"]
    assert column(table, "Throughput") == ["11,209", "2,544"]
    assert column(table, "Result") == ["kept", "broken"]


def test_the_published_losses_are_shown_in_percent(tmp_path: Path) -> None:
    rates = {"high_client_ops": 15007 * 0.76, "wpq": 15007 * 0.73}
    found = run(tmp_path, Builder(points={k: [SyntheticRepeat(v)] * 3 for k, v in rates.items()}))
    table = targets_table(Subject([found], ReportSettings((15007.0,), "given")))
    assert column(table, "Baseline") == ["15,007"] * 2
    assert column(table, "Change") == ["-24.0 %", "-27.0 %"]


def test_twice_the_scrubs_at_once_halve_the_scrub_time(tmp_path: Path) -> None:
    points = {
        str(n): [SyntheticRepeat(1000.0, scrub_seconds=s)] * 3 for n, s in ((5, 28.0), (10, 14.0))
    }
    found = run(tmp_path, Builder(points=points))
    document = build([found], ReportSettings())
    assert column(background_table(Subject([found], ReportSettings())), "Scrub time") == [
        "28.0",
        "14.0",
    ]
    changes = next(table for table in document.tables if table.name == "changes")
    row = next(r for r in changes.rows if r[2].text.startswith("Scrub time"))
    assert [cell.text for cell in row[4:6]] == ["-14.0", "-50.0 %"]


def test_the_part_of_a_load_beside_a_scrub_has_rows_of_its_own(tmp_path: Path) -> None:
    rates = [500.0] * 10 + [1000.0] * 20
    found = run(tmp_path, Builder(points={"a": [SyntheticRepeat(rates, scrub_seconds=10.0)] * 3}))
    by_window = {r.key.window: r.value("iops") for r in found.rows if r.key.phase == "client"}
    assert by_window["during scrub"] == pytest.approx(500, rel=0.01)
    assert by_window["without either"] == pytest.approx(1000, rel=0.01)
    assert by_window["all of it"] == pytest.approx(25000 / 30, rel=0.01)


def test_violated_seconds_need_demand_and_a_shortfall(tmp_path: Path) -> None:
    for name, waiting, attained, violated in (
        ("short", 5.0, 300.0, True),
        ("kept", 5.0, 600.0, False),
        ("idle", 0.0, 300.0, False),
    ):
        osds = Osds(attained=attained, waiting=waiting)
        found = run(tmp_path / name, Builder(points={"a": [SyntheticRepeat(1000.0)]}, osds=osds))
        record = found.observations[0].record
        for result in attained_by_class(
            found.observations[0].samples, record.start_unix_seconds, record.end_unix_seconds
        ):
            assert result.reservation == 500
            assert result.attained == pytest.approx(attained)
            assert bool(result.violated_seconds) is violated


# -- writers ---------------------------------------------------------------------------------------


class ParsedHtml(HTMLParser):
    """Collects the elements of a page, and what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [v or "" for k, v in attrs if k in ("src", "href", "action", "data")]


HOSTILE = '<script>alert(1)</script>"\x1b[31m|`'


def test_nothing_of_an_archive_becomes_markup(tmp_path: Path) -> None:
    found = run(tmp_path, Builder(points={HOSTILE: [SyntheticRepeat(100.0)] * 3}, run=HOSTILE))
    document = build([found], ReportSettings())
    page = ParsedHtml()
    html = to_html(document)
    page.feed(html)
    assert page.tags.count("script") == 1
    assert "\x1b" not in html + to_markdown(document)
    assert "<script>" not in to_markdown(document)


def test_the_page_refers_to_nothing_outside(committed: ReportRun) -> None:
    page = ParsedHtml()
    html = to_html(build([committed], ReportSettings()))
    page.feed(html)
    assert set(page.references) <= {"#caveats"}
    assert not re.findall(r"url\((?!#)|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)", html)
    assert "default-src 'none'" in html
    assert page.tags.count("svg") >= 4


def test_all_files_of_a_report_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["report", str(ARCHIVE), "--out", str(out)]) == 0
    assert "400 IOPS at p99 55.3 ms" in capsys.readouterr().out
    rows = list(csv.DictReader((out / "tables/curves.csv").read_text().splitlines()))
    assert {(row["Depth"], row["Direction"]) for row in rows} >= {("1", "total"), ("4", "read")}
    charts = {chart.name for chart in out.glob("charts/*")}
    assert {"curve.svg", "time-01.svg", "time-01.csv"} <= charts
    assert (out / "report.html").stat().st_size < 5e6


def test_a_folder_of_reports_holds_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    """A table of changes against a baseline that this report does not have would be believed."""
    command = ["report", str(ARCHIVE), "--out", str(tmp_path)]
    assert main([*command, "--baseline", "900"]) == 0
    mine = tmp_path / "tables" / "mine.csv"
    mine.write_text("somebody else's")
    elsewhere = tmp_path.with_name("elsewhere.csv")
    elsewhere.write_text("")
    assert (tmp_path / "tables" / "baseline.csv").exists()
    with (tmp_path / ".written").open("a") as written:
        written.write("\n../elsewhere.csv\n")
    assert main(command) == 0
    assert not (tmp_path / "tables" / "baseline.csv").exists()
    assert mine.exists() and elsewhere.exists()
    assert (tmp_path / "tables" / "loads.csv").exists()


def test_a_target_needs_a_baseline_and_a_reference_must_exist(tmp_path: Path) -> None:
    assert main(["report", str(ARCHIVE), "--target", "50%"]) == 2
    assert main(["report", str(ARCHIVE), "--reference", "nothing"]) == 2
    assert main(["report", str(ARCHIVE), str(ARCHIVE)]) == 2
    assert main(["report", str(tmp_path)]) == 2


# -- damaged and incomplete archives ---------------------------------------------------------------

FILES = ("repeat.json", "intervals.jsonl.gz", "metrics.columns", "host.json", "cluster.jsonl.gz")


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "noise", "other"])
@pytest.mark.parametrize("name", FILES)
def test_damage_is_one_line_or_a_report_that_says_what_is_missing(
    tmp_path: Path, name: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(ARCHIVE, tmp_path / "a")
    path = next(folder.glob(f"repeats/001*/{name}"))
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": data[: len(data) // 2],
            "noise": bytes(range(256)) * 4,
            "other": b'{"a": [1]}\n',
            "gone": b"",
        }[damage]
    )
    if damage == "gone":
        path.unlink()
    status = main(["report", str(folder), "--out", str(tmp_path / "out")])
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    if status:
        assert status in (1, 2) and len(errors.splitlines()) == 1
    else:
        assert name in (tmp_path / "out/report.md").read_text().replace("\\", "")


@pytest.mark.parametrize("name", ["plan.json", "environment.json", "archive.json"])
def test_a_damaged_file_of_the_run_is_one_line(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(ARCHIVE, tmp_path / "a")
    (folder / name).write_text("{")
    assert main(["report", str(folder), "--out", str(tmp_path / "out")]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1


SHAPES: tuple[tuple[str, tuple[str | int, ...], object], ...] = (
    ("environment.json", ("cluster", "osds", 0, "bluestore_bdev_size"), "x"),
    ("environment.json", ("host",), [1]),
    ("environment.json", ("host", "cpu_models"), [[1]]),
    ("environment.json", ("tools",), "x"),
    ("plan.json", ("points",), "x"),
    ("plan.json", ("points", 0, "phases", 0), None),
    ("plan.json", ("points", 0, "phases", 0, "action"), 5),
    ("plan.json", ("points", 0, "pools", 0), [1]),
    ("plan.json", ("points", 0, "lab"), {"device_iops": "x"}),
    ("plan.json", ("variables",), {"a": 1}),
)


@pytest.mark.parametrize("command", ["report", "compare", "baseline"])
@pytest.mark.parametrize(("name", "place", "value"), SHAPES)
def test_json_of_another_shape_is_one_line_that_names_the_archive(
    tmp_path: Path,
    command: str,
    name: str,
    place: tuple[str | int, ...],
    value: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(ARCHIVE, tmp_path / "strange")
    data = inside = json.loads((folder / name).read_text())
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    (folder / name).write_text(json.dumps(data))
    out = ["--out", str(tmp_path / "out")]
    words = {
        "report": ["report", str(folder), *out],
        "compare": ["compare", str(ARCHIVE), str(folder), "--although-different"],
        "baseline": ["report", str(ARCHIVE), "--baseline", str(folder), *out],
    }[command]
    status = main(words)
    said = capsys.readouterr().err
    if status:
        assert "strange" in said and len(said.splitlines()) == 1, said
    assert status in (0, 1, 2)


def test_an_aborted_run_without_a_finished_repeat_says_so(tmp_path: Path) -> None:
    folder = Builder(points={"a": [SyntheticRepeat(100.0)]}, status="aborted").write(tmp_path / "a")
    path = next(folder.glob("repeats/*/repeat.json"))
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "status": "aborted", "phases": {}}))
    document = build([analyse(open_archive(folder))], ReportSettings())
    assert "No repeat finished, so there are no figures." in document.summary
    assert document.caveats[0].text.startswith("The run is aborted: 0 of 1 repeats finished.")
    to_html(document)


@pytest.mark.parametrize(("number", "words"), [(0, "format 0"), (2, "format 2"), ("1", "format")])
@pytest.mark.parametrize("command", ["report", "compare", "replay"])
def test_an_archive_of_another_format_is_one_line(
    tmp_path: Path,
    command: str,
    number: object,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(ARCHIVE, tmp_path / "a")
    manifest = json.loads((folder / "archive.json").read_text())
    (folder / "archive.json").write_text(json.dumps({**manifest, "format": number}))
    more = {"report": ["--out", str(tmp_path / "out")], "replay": ["--into", str(tmp_path / "db")]}
    other = [str(ARCHIVE)] if command == "compare" else []
    status = main([command, *other, str(folder), *more.get(command, [])])
    said = capsys.readouterr().err
    assert status in (1, 2) and words in said and len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "db").exists()


@pytest.mark.parametrize("command", ["report", "compare", "replay"])
def test_a_run_that_did_not_end_is_one_line_that_says_how_to_go_on(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "20261122T001722Z-small-326f.partial"
    folder.mkdir()
    more = {"report": [], "compare": [str(ARCHIVE)], "replay": ["--serve"]}[command]
    assert main([command, str(folder), *more]) == 2
    said = capsys.readouterr().err
    assert "cephqos run --resume takes it up" in said and len(said.splitlines()) == 1


def test_the_report_of_a_failed_run_has_what_finished_and_says_what_did_not(
    tmp_path: Path,
) -> None:
    builder = Builder(
        points={"a": [SyntheticRepeat(100.0)] * 2, "b": [SyntheticRepeat(50.0)]}, status="failed"
    )
    folder = builder.write(tmp_path / "a")
    path = next(folder.glob("repeats/003*/repeat.json"))
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "status": "failed", "error": "osd.1 died"}))
    assert main(["report", str(folder), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/report.md").read_text().replace("\\", "")
    assert "The run is failed: 2 of 3 repeats finished." in page
    assert "Repeat 1 of policy=b failed and is left out.** osd.1 died" in page
    assert "| policy=a | client | all of it" in page and "| policy=b | client" not in page


def test_a_command_cannot_leave_its_block_in_markdown(tmp_path: Path) -> None:
    found = run(tmp_path, Builder(points={"a": [SyntheticRepeat(500.0)] * 3}))
    document = build([found], ReportSettings())
    hostile = replace(document, commands=("cephqos run 'a\n```\n# a heading'",))
    block = to_markdown(hostile).partition("## To repeat it")[2]
    assert block.splitlines()[3:] == ["cephqos run 'a ``` # a heading'", "```"]
