"""Archives from somebody else: nothing outside is read, nothing is waited for, nothing is unpacked
without end, and nothing of theirs drives the terminal."""

import asyncio
import hashlib
import json
import os
import shutil
import zlib
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import ARCHIVE

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive import cli
from cephqos_loadgen.archive.reader import ArchiveDamaged, open_archive, problems
from cephqos_loadgen.run_recording import files, regular
from cephqos_loadgen.run_recording.layout import MANIFEST, MANIFEST_SUM


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ARCHIVE, tmp_path / ARCHIVE.name))


def claim(archive: Path, name: str) -> None:
    """The manifest says that this file is one of the archive's."""
    manifest = json.loads((archive / MANIFEST).read_text())
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    seal(archive, manifest)


def seal(archive: Path, manifest: Any) -> None:
    text = json.dumps(manifest).encode()
    (archive / MANIFEST).write_bytes(text)
    (archive / MANIFEST_SUM).write_text(f"{hashlib.sha256(text).hexdigest()}  {MANIFEST}\n")


def found(archive: Path) -> list[str]:
    return list(problems(open_archive(archive)))


def test_the_recorded_archive_is_sound(archive: Path) -> None:
    assert found(archive) == []


@pytest.mark.parametrize("name", ["../../etc/shadow", "/etc/shadow", "a/../../x", "..", "", "a\0b"])
def test_a_name_that_leads_out_is_named_and_not_read(archive: Path, name: str) -> None:
    claim(archive, name)
    (line,) = found(archive)
    assert line.endswith("not a name inside the archive; it was not read")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "a link, not a file"),
        (lambda path: path.symlink_to("/proc/kmsg"), "a link, not a file"),
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
    ],
)
def test_what_is_no_regular_file_is_named_and_not_waited_for(
    archive: Path, make: Callable[[Path], None], said: str
) -> None:
    make(archive / "odd")
    claim(archive, "odd")
    assert found(archive) == [f"odd: {said}"]


def test_a_folder_that_is_a_link_is_not_followed(archive: Path) -> None:
    (archive / "etc").symlink_to("/etc")
    claim(archive, "etc/hostname")
    assert "etc/hostname: not a name inside the archive; it was not read" in found(archive)


def test_a_manifest_that_is_a_pipe_is_damage(archive: Path) -> None:
    (archive / MANIFEST).unlink()
    os.mkfifo(archive / MANIFEST)
    with pytest.raises((ArchiveDamaged, UsageError)):
        open_archive(archive)


def test_what_unpacks_to_more_than_the_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 1 << 20)
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(deflate.compress(bytes(64 << 20)) + deflate.flush())
    assert bomb.stat().st_size < 100_000
    with pytest.raises(ValueError, match="unpacks to more than 1 MiB"):
        files.read_gzip(bomb)


def test_a_file_of_many_members_and_a_torn_one_are_read_as_before(tmp_path: Path) -> None:
    whole = tmp_path / "whole.gz"
    with files.GzipWriter(whole) as writer:
        writer.write(b"one\n")
    data = whole.read_bytes()
    (tmp_path / "twice.gz").write_bytes(data * 2)
    assert files.read_gzip(tmp_path / "twice.gz") == b"one\none\n"
    (tmp_path / "torn.gz").write_bytes(data[:-4])
    assert files.read_gzip(tmp_path / "torn.gz") == b"one\n"
    assert regular.MOST_UNPACKED_BYTES >= 1 << 30


def test_escape_sequences_of_an_archive_do_not_reach_the_terminal(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((archive / MANIFEST).read_text())
    manifest["error"] = "\x1b[31mred"
    seal(archive, manifest)
    assert asyncio.run(cli._show(Namespace(archive=archive, json=False))) == 0
    claim(archive, "\x1b]0;owned\x07\x1b[2J")
    assert asyncio.run(cli._verify(Namespace(archive=[archive]))) == 1
    shown = capsys.readouterr().out
    assert "red" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
