"""A run that is going on, one that ended badly, and copies of both are never taken for a whole
archive."""

import argparse
import asyncio
import errno
import fcntl
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import ARCHIVE

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive import cli
from cephqos_loadgen.archive.reader import ArchiveDamaged, find_archives, open_archive, problems
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.results.repeat import Manifest, RunStatus
from cephqos_loadgen.run_recording import run_folder
from cephqos_loadgen.run_recording.layout import hold, is_running
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter


def manifest(writer: ArchiveWriter, status: RunStatus = "complete") -> Manifest:
    return replace(open_archive(ARCHIVE).manifest, run=writer.run, status=status, files={})


def listed(base: Path) -> dict[str, str]:
    rows = [cli._listed(path) for path in find_archives(base)]
    return {Path(row["archive"]).name: row["status"] for row in rows}


def shown(folder: Path) -> int:
    return asyncio.run(cli._show(argparse.Namespace(archive=folder, json=False)))


def test_a_run_is_running_until_it_ends_and_its_copy_is_unfinished(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "run")
    writer.event("x")
    shutil.copytree(writer.folder, tmp_path / "copy.partial")
    shutil.copytree(writer.folder, tmp_path / "copy")
    assert listed(tmp_path) == {"run.partial": "running", "copy.partial": "unfinished"}
    with pytest.raises(UsageError, match="is not an archive yet: the run is still going on"):
        open_archive(writer.folder)
    with pytest.raises(UsageError, match=r"is not an archive$"):
        open_archive(tmp_path / "copy")
    final = writer.seal(manifest(writer))
    assert listed(tmp_path)["run"] == "complete"
    assert not is_running(final)
    assert list(problems(open_archive(final))) == []


def test_a_reader_that_looks_while_a_run_begins_does_not_leave_it_unlocked(tmp_path: Path) -> None:
    looks = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looks, fcntl.LOCK_SH)
    threading.Timer(0.03, os.close, [looks]).start()
    held = hold(tmp_path)
    assert is_running(tmp_path)
    os.close(held)
    assert not is_running(tmp_path)


@pytest.mark.parametrize("at", ["archive.json.new", "archive.sha256", "rename"])
def test_a_run_whose_seal_fails_is_unfinished_however_far_it_came(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full or broken, at each step of the seal."""
    writer = ArchiveWriter(tmp_path, "run")
    document = manifest(writer)
    ill = OSError(errno.EIO, "Input/output error")

    def fail(*_: object, **__: object) -> Any:
        raise ill

    if at == "archive.json.new":
        monkeypatch.setattr("os.fsync", fail)
    elif at == "archive.sha256":
        monkeypatch.setattr(ArchiveWriter, "text", fail)
    else:
        monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Input/output error"):
        writer.seal(document)
    os.close(writer._held)  # the process ends
    assert listed(tmp_path) == {"run.partial": "unfinished"}
    with pytest.raises(UsageError, match="cephqos run --resume takes it up"):
        open_archive(writer.folder)


def test_a_folder_where_nothing_can_be_written_refuses_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write archives to .*Not a directory"):
        ArchiveWriter(tmp_path / "file", "run")


def test_what_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path / "a" / "b", "run")
    writer.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ARCHIVE, tmp_path / ARCHIVE.name))


@pytest.mark.parametrize("damage", ["a repeat is missing", "a record is other", "a file is short"])
def test_an_archive_that_was_copied_while_it_was_written_is_not_shown(
    copy: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(copy) == 0
    capsys.readouterr()
    repeat = sorted((copy / "repeats").iterdir())[-1]
    if damage == "a repeat is missing":
        shutil.rmtree(repeat)
    elif damage == "a record is other":
        record = repeat / "repeat.json"
        record.write_text(record.read_text().replace('"finished"', '"failed"  '))
    else:
        path = repeat / "metrics.columns"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArchiveDamaged, match="is damaged, cephqos archive verify names what is"):
        shown(copy)
    assert capsys.readouterr().out == ""


def test_a_repeat_that_was_put_into_an_archive_is_none_of_its_repeats(copy: Path) -> None:
    before = [repeat.name for repeat in open_archive(copy).repeats]
    repeat = sorted((copy / "repeats").iterdir())[0]
    shutil.copytree(repeat, copy / "repeats" / "999-x-r9")
    assert [it.name for it in open_archive(copy).repeats] == before
    assert "999-x-r9/repeat.json: not in the manifest" in "\n".join(problems(open_archive(copy)))


def test_a_report_says_when_the_manifest_itself_was_changed(copy: Path) -> None:
    """A failed run could be called complete otherwise."""
    assert analyse(open_archive(copy)).problems == ()
    path = copy / "archive.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"status": "failed"}))
    (said,) = analyse(open_archive(copy)).problems
    assert said.startswith("archive.json: checksum is")


def test_reserve_is_given_back_once(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "run")
    assert (writer.folder / run_folder._RESERVE).stat().st_size == run_folder._RESERVE_BYTES
    final = writer.seal(manifest(writer))
    assert not (final / run_folder._RESERVE).exists()
