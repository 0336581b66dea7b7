"""The committed archive of the present format is read, checked and exported; damage is found.

It was recorded by `cephqos run` on a lab of 18.2 with two OSDs and is never rewritten for the
same format: that this version still reads it is the point.
"""

import argparse
import asyncio
import csv
import importlib
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.recorded import ARCHIVE, documents
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.command import main
from cephqos_base.errors import UsageError
from cephqos_loadgen.archive import cli, export
from cephqos_loadgen.archive.cli import describe
from cephqos_loadgen.archive.reader import (
    Archive,
    ArchiveDamaged,
    RecordedRepeat,
    find_archives,
    open_archive,
    problems,
)
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.results.repeat import Found
from cephqos_loadgen.run_recording.columns import ColumnWriter
from cephqos_loadgen.run_recording.layout import FORMAT


def load(repeat: RecordedRepeat) -> LoadFigures:
    result = repeat.record.phases["client"].result
    assert isinstance(result, LoadResult)
    return result.total


@pytest.fixture
def copy(tmp_path: Path) -> Archive:
    return open_archive(Path(shutil.copytree(ARCHIVE, tmp_path / ARCHIVE.name)))


def test_the_committed_archive_is_of_the_present_format_and_sound() -> None:
    archive = open_archive(ARCHIVE)
    assert archive.manifest.format == FORMAT
    assert list(problems(archive)) == []


def test_the_thousandth_repeat_comes_after_those_of_three_digits(tmp_path: Path) -> None:
    folder = Builder(points={"a": [SyntheticRepeat(9.0, seconds=2)] * 3}).write(tmp_path / "a")
    for was, now in (("001", "101"), ("002", "999"), ("003", "1000")):
        for path in folder.glob(f"repeats/{was}-*"):
            path.rename(path.with_name(path.name.replace(was, now, 1)))
    archive = open_archive(folder)
    names = [str(path.relative_to(folder)) for path in folder.glob("repeats/*/repeat.json")]
    archive.manifest.files.update(dict.fromkeys(names))  # type: ignore[attr-defined]
    assert [repeat.record.repeat for repeat in archive.repeats] == [1, 2, 3]


def test_everything_in_it_is_read() -> None:
    archive = open_archive(ARCHIVE)
    assert archive.manifest.status == "complete"
    assert "18.2" in str(archive.environment["cluster"]["versions"])
    assert [repeat.record.status for repeat in archive.repeats] == ["finished"] * 2
    for repeat in archive.repeats:
        client = load(repeat)
        written = Counter[str]()
        for row in repeat.intervals():
            written[row.phase] += row.write.ios if row.write else 0
        assert written["client"] == client.ios > 100
        scrub = repeat.record.phases["scrub"].result
        assert isinstance(scrub, ScrubResult)
        assert scrub.objects >= 40
        assert {row["osds_up"] for row in repeat.cluster()} == {2}
        metrics = repeat.metrics()
        assert metrics.families["cephqos_qos_normalised_ops_total"][0] == "counter"
        grown = [
            samples[-1][1] - samples[0][1]
            for name, samples in metrics.series.items()
            if name.startswith("ceph_osd_op_w{")
        ]
        assert sum(grown) == pytest.approx(written.total(), rel=0.05)
        assert "osd.0" in repeat.host()["client"].processes
        assert b'"clat_ns"' in repeat.output("client.client.0")
        assert repeat.events()[0]["event"] == "phase_started"


def test_it_is_described_for_people() -> None:
    text = "\n".join(describe(open_archive(ARCHIVE)))
    assert "complete" in text
    assert "18.2.7" in text
    assert "IOPS" in text
    assert text.count("host: ") == 4, "two loads of two repeats"
    rows = [line.split() for line in text.splitlines() if line.startswith("      ")]
    assert [row[0] for row in rows if row[0] != "host:"] == [
        *("depth", "1", "4"),
        *("depth", "1", "4"),
    ], "every step of the curve"
    assert "recording took" in text


def test_phases_that_are_named_by_their_point_are_shown(copy: Archive) -> None:
    """`name: load-${depth}`: not all points have the phases of the first."""
    path = copy.folder / "plan.json"
    plan = json.loads(path.read_text())
    other = {"name": "other", "phases": [{"name": "load-1"}]}
    path.write_text(json.dumps({**plan, "points": [other, *plan["points"]]}))
    assert list(describe(open_archive(copy.folder))) == list(describe(open_archive(ARCHIVE)))


def test_changed_missing_and_additional_files_are_found(copy: Archive) -> None:
    repeat = copy.repeats[0].folder
    metrics = repeat / "metrics.columns"
    data = bytearray(metrics.read_bytes())
    data[len(data) // 2] ^= 1
    metrics.write_bytes(bytes(data))
    (repeat / "host.json").unlink()
    (copy.folder / "note.txt").write_text("mine")
    with (copy.folder / "plan.json").open("a") as file:
        file.write(" ")
    found = "\n".join(problems(copy))
    assert "metrics.columns: checksum is" in found
    assert "host.json: missing" in found
    assert "note.txt: not in the manifest" in found
    assert "plan.json: " in found
    assert " bytes, expected " in found


def test_a_changed_manifest_is_found(copy: Archive) -> None:
    path = copy.folder / "archive.json"
    path.write_text(path.read_text().replace('"complete"', '"failed"'))
    assert "archive.json: checksum is" in next(problems(copy))


@pytest.mark.parametrize(
    ("name", "content"), [("plan.json", None), ("plan.json", b"{}{"), ("plan.json", b"{}")]
)
def test_an_archive_that_is_damaged_is_shown_as_far_as_saying_so(
    copy: Archive, name: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is None:
        (copy.folder / name).unlink()
    else:
        (copy.folder / name).write_bytes(content)
    with pytest.raises(ArchiveDamaged, match=r"is damaged, cephqos archive verify names what is"):
        asyncio.run(cli._show(argparse.Namespace(archive=copy.folder, json=False)))
    assert capsys.readouterr().out == ""


def test_a_damaged_archive_is_not_exported_and_a_place_that_is_no_place_is_told_from_it(
    copy: Archive, tmp_path: Path
) -> None:
    def exported(to: Path) -> None:
        asyncio.run(cli._export(argparse.Namespace(archive=copy.folder, format="csv", to=to)))

    with pytest.raises(UsageError, match="cannot write /proc/none"):
        exported(Path("/proc/none"))
    (copy.repeats[0].folder / "metrics.columns").write_bytes(b"nothing of the kind")
    with pytest.raises(ArchiveDamaged, match="is damaged"):
        exported(tmp_path / "to")


def test_an_archive_that_was_cut_off_somewhere_is_not_exported_in_part(
    copy: Archive, tmp_path: Path
) -> None:
    path = copy.repeats[1].folder / "intervals.jsonl.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    target = tmp_path / "to"
    arguments = argparse.Namespace(archive=copy.folder, format="csv", to=target)
    with pytest.raises(ArchiveDamaged, match=r"nothing was exported: .*intervals\.jsonl\.gz: "):
        asyncio.run(cli._export(arguments))
    assert not target.exists()


def test_a_file_beside_the_recorded_ones_does_not_keep_an_archive_from_being_exported(
    copy: Archive, tmp_path: Path
) -> None:
    (copy.folder / "note.txt").write_text("mine")
    arguments = argparse.Namespace(archive=copy.folder, format="csv", to=tmp_path / "to")
    assert asyncio.run(cli._export(arguments)) == 0


def test_a_phase_that_was_interrupted_is_not_called_done_and_one_value_is_no_finding(
    copy: Archive,
) -> None:
    path = copy.repeats[0].folder / "repeat.json"
    outcome = json.loads(path.read_text())
    outcome["phases"]["client"] |= {"result": None, "ended_by": "interrupted"}
    path.write_text(json.dumps(outcome))
    for iops, said in (({"1M": 10.0}, False), ({"1M": 10.0, "4M": 10.0}, True)):
        summary = replace(copy.manifest.summary, found=Found("throttle", "1M", iops, 0.95))
        text = "\n".join(describe(Archive(copy.folder, replace(copy.manifest, summary=summary))))
        assert "    client: not finished" in text
        assert ("smallest throttle" in text) is said


def test_a_load_that_was_cut_off_is_shown_so_with_its_figures(copy: Archive) -> None:
    path = copy.repeats[0].folder / "repeat.json"
    outcome = json.loads(path.read_text())
    outcome["phases"]["client"]["ended_by"] = "cut_off"
    path.write_text(json.dumps(outcome))
    (line, _) = [it for it in describe(open_archive(copy.folder)) if it.startswith("    client: ")]
    assert "IOPS" in line
    assert line.endswith(", cut off by at_most")


def test_another_format_is_refused_and_garbage_is_said(copy: Archive) -> None:
    path = copy.folder / "archive.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": FORMAT + 1}))
    with pytest.raises(UsageError, match=f"has format {FORMAT + 1}; this version reads"):
        open_archive(copy.folder)
    path.write_text("{")
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        open_archive(copy.folder)


def test_a_folder_that_is_no_archive_is_refused_and_an_unfinished_run_is_told_apart(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match=r"is not an archive$"):
        open_archive(tmp_path)
    with pytest.raises(UsageError, match="no such archive"):
        open_archive(tmp_path / "absent")
    unfinished = tmp_path / "x.partial"
    unfinished.mkdir()
    with pytest.raises(UsageError, match="cephqos run --resume"):
        open_archive(unfinished)
    assert find_archives(tmp_path) == [unfinished]


def test_csv_has_every_interval_and_every_sample(tmp_path: Path) -> None:
    archive = open_archive(ARCHIVE)
    _, _, _, intervals, metrics = export.to_csv(archive, tmp_path)
    with intervals.open() as file:
        rows = list(csv.DictReader(file))
    total = sum(load(r).ios for r in archive.repeats)
    assert sum(int(row["ios"]) for row in rows if row["phase"] == "client") == total
    assert float(rows[0]["latency_mean_seconds"]) > 0
    with metrics.open() as file:
        count = sum(1 for _ in csv.DictReader(file))
    assert count == sum(r.record.metrics.samples for r in archive.repeats)


def test_labels_of_the_run_win_over_equal_ones_of_a_series(tmp_path: Path) -> None:
    """The same label twice would be refused."""
    folder = Builder(points={"a": [SyntheticRepeat(9.0, seconds=3)]}).write(tmp_path / "a")
    writer = ColumnWriter(next(folder.glob("repeats/*")) / "metrics.columns")
    writer.add(1e9, {'up{run="x",say="a,point=\\"b\\""}': 1.0})
    writer.close()
    (path,) = export.to_openmetrics(open_archive(folder), tmp_path / "om")
    parsed = text_string_to_metric_families(path.read_text())  # type: ignore[no-untyped-call]
    (family,) = parsed
    (sample,) = family.samples
    assert sample.labels == {
        "exported_run": "x",
        "say": 'a,point="b"',
        "run": "made-up",
        "point": "policy=a",
        "repeat": "1",
    }


def test_csv_has_neither_formulas_nor_latencies_of_nothing(tmp_path: Path) -> None:
    """Of a second in which nothing completed: 0 IOPS, and no latency."""
    points = {"a": [SyntheticRepeat([100.0, 0.0, 100.0], seconds=3)]}
    folder = Builder(points=points).write(tmp_path / "a")
    record = next(folder.glob("repeats/*/repeat.json"))
    data = json.loads(record.read_text()) | {"point": "=HYPERLINK(1)"}
    record.write_text(json.dumps(data))
    _, steps, _, intervals, _ = export.to_csv(open_archive(folder), tmp_path / "csv")
    for path in (steps, intervals):
        with path.open() as file:
            assert {row["point"] for row in csv.DictReader(file)} == {"'=HYPERLINK(1)"}
    with intervals.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["ios"], bool(row["latency_mean_seconds"])) for row in rows] == [
        ("100", True),
        ("0", False),
        ("100", True),
    ]


def test_archives_that_cannot_be_read_hide_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("1-broken", "2-newer", "3-sound"):
        shutil.copytree(ARCHIVE, tmp_path / name)
    (tmp_path / "1-broken" / "archive.json").write_text("{")
    newer = json.loads((tmp_path / "2-newer" / "archive.json").read_text())
    newer |= {"cephqos": "9.1", "weather": "fine"}
    (tmp_path / "2-newer" / "archive.json").write_text(json.dumps(newer))
    assert main(["archive", "ls", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["unreadable", "unreadable", "complete"]
    folders = sorted(str(path) for path in tmp_path.iterdir())
    assert main(["archive", "verify", *folders]) == 1
    said = capsys.readouterr().out
    assert "weather: found 'fine', expected no such key (written by cephqos 9.1, this is " in said
    assert f"{folders[2]}: sound" in said


def test_csv_has_every_step_with_its_depth_and_every_bin(tmp_path: Path) -> None:
    archive = open_archive(ARCHIVE)
    _, steps, bins, _, _ = export.to_csv(archive, tmp_path)
    with steps.open() as file:
        rows = [row for row in csv.DictReader(file) if row["op"] == "total"]
    assert [(row["phase"], row["depth"]) for row in rows] == [
        *(("client", "4"), ("curve", "1"), ("curve", "4")),
        *(("client", "4"), ("curve", "1"), ("curve", "4")),
    ]
    assert all(float(row["latency_p99.9_seconds"]) > 0 for row in rows)
    with bins.open() as file:
        counted = sum(int(row["count"]) for row in csv.DictReader(file) if row["op"] == "total")
    assert counted == pytest.approx(sum(int(row["ios"]) for row in rows), rel=0.01)


def test_bins_of_intervals_and_of_jobs_add_up_to_those_that_fio_wrote_at_its_end() -> None:
    for repeat in open_archive(ARCHIVE).repeats:
        document = documents(repeat.output("client.client.0"))[-1]
        own = Counter[int]()
        for job in document["jobs"]:
            own.update({int(ns): n for ns, n in job["write"]["clat_ns"]["bins"].items()})
        per_second = Counter[int]()
        for interval in repeat.intervals():
            if interval.phase == "client" and interval.write:
                per_second.update(interval.write.latency_bins_ns)
        assert load(repeat).latency_bins_ns == own == per_second
        jobs = repeat.record.phases["client"].result.steps[0].jobs  # type: ignore[union-attr]
        assert sum((Counter(job.latency_bins_ns) for job in jobs.values()), Counter()) == own


def test_an_archive_without_its_checksum_file_is_said_to_lack_it(copy: Archive) -> None:
    (copy.folder / "archive.sha256").unlink()
    assert list(problems(copy)) == [
        "archive.sha256: missing or empty, so archive.json cannot be checked"
    ]


def test_a_record_that_does_not_fit_is_one_line_with_file_and_place(copy: Archive) -> None:
    path = copy.repeats[0].folder / "repeat.json"
    record = json.loads(path.read_text())
    record["phases"]["scrub"]["result"]["objects"] = "many"
    path.write_text(json.dumps(record))
    again = open_archive(copy.folder)
    message = r"repeat\.json: phases\.scrub\.result\.objects: found 'many', expected a whole number"
    with pytest.raises(ArchiveDamaged, match=message):
        _ = again.repeats


def test_openmetrics_are_taken_by_a_strict_parser_with_their_times(tmp_path: Path) -> None:
    archive = open_archive(ARCHIVE)
    (path,) = export.to_openmetrics(archive, tmp_path)
    parsed = text_string_to_metric_families(path.read_text())  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    samples = families["ceph_osd_op_w"].samples
    assert {sample.labels["repeat"] for sample in samples} == {"1", "2"}
    assert {sample.labels["run"] for sample in samples} == {archive.manifest.run}
    first = archive.repeats[0].record
    assert samples[0].timestamp is not None
    assert first.start_unix_seconds - 1 <= float(samples[0].timestamp) <= first.end_unix_seconds + 1


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install '\.\[parquet\]'"):
        export.to_parquet(open_archive(ARCHIVE), tmp_path)
