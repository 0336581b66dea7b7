"""Archives from somebody else that are too deep, too long or too large: damage, said at once."""

import asyncio
import json
import os
import shutil
import tracemalloc
import zlib
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import ARCHIVE

from cephqos_loadgen.archive import cli
from cephqos_loadgen.archive.reader import ArchiveDamaged, damage_named, open_archive, problems
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.run_recording import files, regular
from cephqos_loadgen.run_recording.layout import MANIFEST, MANIFEST_SUM, PLAN_FILE, REPEAT_FILE

DEEP = "[" * 100_000


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ARCHIVE, tmp_path / ARCHIVE.name))


def repeat(archive: Path) -> Path:
    return sorted(archive.glob(f"repeats/*/{REPEAT_FILE}"))[0]


def put(file: Path, *path: str, value: Any) -> None:
    """Another value at a place of a JSON file."""
    whole = json.loads(file.read_text())
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    file.write_text(json.dumps(whole))


def test_one_manifest_that_is_too_deep_is_a_line_of_the_list_beside_the_others(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(archive, archive.with_name("whole"))
    (archive / MANIFEST).write_text(DEEP)
    asyncio.run(cli._ls(Namespace(folder=archive.parent, json=False)))
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["unreadable", "complete"]


@pytest.mark.parametrize("name", [PLAN_FILE, REPEAT_FILE])
def test_a_file_that_is_too_deep_is_damage(archive: Path, name: str) -> None:
    (repeat(archive) if name == REPEAT_FILE else archive / name).write_text(DEEP)
    with pytest.raises(ArchiveDamaged, match="deep"):
        analyse(open_archive(archive))


def test_numbers_that_no_machine_holds_are_damage(archive: Path) -> None:
    phases = json.loads(repeat(archive).read_text())["phases"]
    name = next(name for name, it in phases.items() if (it["result"] or {}).get("steps"))
    steps = phases[name]["result"]["steps"]
    steps[0]["total"]["latency_bins_ns"] = {"1000": 10**30}
    put(repeat(archive), "phases", name, "result", "steps", value=steps)
    with pytest.raises(ArchiveDamaged):
        analyse(open_archive(archive))


def test_a_time_that_no_calendar_has_is_damage(archive: Path) -> None:
    put(archive / MANIFEST, "start_unix_seconds", value=1e30)
    with pytest.raises(ArchiveDamaged), damage_named(archive):
        list(cli.describe(open_archive(archive)))


def test_a_hole_of_any_length_is_not_read(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no room on the disk, nor in what carries the archive here."""
    monkeypatch.setattr(regular, "MOST_JSON_BYTES", 1 << 20, raising=False)
    os.truncate(archive / MANIFEST, 64 << 20)
    assert "larger than 1 MiB" in cli._listed(archive)["error"]
    shutil.copy(ARCHIVE / MANIFEST, archive / MANIFEST)
    os.truncate(archive / MANIFEST_SUM, 64 << 20)
    assert any("missing or empty" in line for line in problems(open_archive(archive)))


def test_a_file_of_a_hundred_thousand_empty_members_is_read(tmp_path: Path) -> None:
    """One that copied all behind each of them would not end."""
    empty = zlib.compressobj(1, zlib.DEFLATED, 31).flush()
    (tmp_path / "many.gz").write_bytes(empty * 100_000)
    assert files.read_gzip(tmp_path / "many.gz") == b""


def test_lines_are_not_held_all_at_once(tmp_path: Path) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    path = tmp_path / "lines.gz"
    path.write_bytes(deflate.compress(b"1\n" * (1 << 19)) + deflate.flush())
    tracemalloc.start()
    try:
        assert sum(files.read_lines(path)) == 1 << 19
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 << 20
