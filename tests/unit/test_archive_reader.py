"""The committed archive of the present format is read, checked and exported; damage is found.

It was recorded by `cephqos run` on a lab of 18.2 with two OSDs and is never written anew for the
same format: that this version still reads it is the point.
"""

import argparse
import asyncio
import csv
import importlib
import json
import shutil
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cephqos_loadgen.archive import cli, export
from cephqos_loadgen.archive.cli import describe
from cephqos_loadgen.archive.layout import FORMAT
from cephqos_loadgen.archive.reader import (
    Archive,
    ArchiveDamaged,
    find_archives,
    open_archive,
    problems,
)
from cephqos_loadgen.errors import UsageError

(COMMITTED,) = (Path(__file__).parents[1] / "recordings" / "archive").glob("format-1/*")


@pytest.fixture
def copy(tmp_path: Path) -> Archive:
    return open_archive(Path(shutil.copytree(COMMITTED, tmp_path / COMMITTED.name)))


def test_the_committed_archive_is_of_the_present_format_and_sound() -> None:
    archive = open_archive(COMMITTED)
    assert archive.manifest["format"] == FORMAT
    assert list(problems(archive)) == []


def test_everything_in_it_is_read() -> None:
    archive = open_archive(COMMITTED)
    assert archive.manifest["status"] == "complete"
    assert "18.2" in str(archive.environment["cluster"]["versions"])
    assert [repeat.outcome["status"] for repeat in archive.repeats] == ["finished"] * 2
    for repeat in archive.repeats:
        client = repeat.outcome["phases"]["client"]["total"]
        seconds = [row["write"]["ios"] for row in repeat.intervals()]
        assert sum(seconds) == client["ios"] > 100
        assert repeat.outcome["phases"]["scrub"]["objects_scrubbed"] >= 40
        assert {row["osds_up"] for row in repeat.cluster()} == {2}
        metrics = repeat.metrics()
        assert metrics.families["cephqos_qos_normalised_ops_total"][0] == "counter"
        grown = [
            samples[-1][1] - samples[0][1]
            for name, samples in metrics.series.items()
            if name.startswith("ceph_osd_op_w{")
        ]
        assert sum(grown) == pytest.approx(client["ios"], rel=0.05)
        assert "osd.0" in repeat.host()["client"]["processes"]
        assert b'"clat_ns"' in repeat.output("client.client.0")
        assert repeat.events()[0]["event"] == "phase_started"


def test_it_is_described_for_people() -> None:
    text = "\n".join(describe(open_archive(COMMITTED)))
    assert "complete" in text
    assert "18.2.7" in text
    assert "IOPS" in text
    assert "recording took" in text


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


def test_a_phase_that_was_interrupted_is_not_called_done_and_one_value_is_no_finding(
    copy: Archive,
) -> None:
    path = copy.repeats[0].folder / "repeat.json"
    outcome = json.loads(path.read_text())
    outcome["figures"]["client"] = {}
    del outcome["phases"]["client"]["ok"]
    path.write_text(json.dumps(outcome))
    found = {"axis": "throttle", "keeping": 0.95, "value": "1M", "iops": {"1M": 10, "4M": 10}}
    for iops, said in (({"1M": 10}, False), (found["iops"], True)):
        summary = {**copy.manifest["summary"], "found": {**found, "iops": iops}}
        text = "\n".join(describe(Archive(copy.folder, {**copy.manifest, "summary": summary})))
        assert "    client: not finished" in text
        assert ("smallest throttle" in text) is said


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
    archive = open_archive(COMMITTED)
    intervals, metrics = export.to_csv(archive, tmp_path)
    with intervals.open() as file:
        rows = list(csv.DictReader(file))
    total = sum(r.outcome["phases"]["client"]["total"]["ios"] for r in archive.repeats)
    assert sum(int(row["ios"]) for row in rows) == total
    assert float(rows[0]["latency_mean"]) > 0
    with metrics.open() as file:
        count = sum(1 for _ in csv.DictReader(file))
    assert count == sum(r.outcome["metrics"]["samples"] for r in archive.repeats)


def test_openmetrics_are_taken_by_a_strict_parser_with_their_times(tmp_path: Path) -> None:
    archive = open_archive(COMMITTED)
    (path,) = export.to_openmetrics(archive, tmp_path)
    parsed = text_string_to_metric_families(path.read_text())  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    samples = families["ceph_osd_op_w"].samples
    assert {sample.labels["repeat"] for sample in samples} == {"1", "2"}
    assert {sample.labels["run"] for sample in samples} == {archive.manifest["run"]}
    first = archive.repeats[0].outcome
    assert samples[0].timestamp is not None
    assert first["started"] - 1 <= float(samples[0].timestamp) <= first["ended"] + 1


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'cephqos\[parquet\]'"):
        export.to_parquet(open_archive(COMMITTED), tmp_path)
