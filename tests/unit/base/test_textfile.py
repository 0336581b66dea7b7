"""Files that `cephqos rules` and `cephqos dashboards` write and compare."""

import os
from pathlib import Path

import pytest

from cephqos_base import textfile
from cephqos_base.errors import UsageError


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        textfile.write(tmp_path / "rules" / "qos.yml", "new\n")
    finally:
        os.umask(before)
    assert (tmp_path / "rules" / "qos.yml").stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_there_keeps_its_rights_even_if_nobody_may_write_it(tmp_path: Path) -> None:
    file = tmp_path / "board.json"
    file.write_text("old\n")
    file.chmod(0o444)
    textfile.write(file, "new\n")
    assert file.read_text() == "new\n"
    assert file.stat().st_mode & 0o777 == 0o444


def test_what_one_that_was_killed_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    """In a container the same command has the same process number each time."""
    (tmp_path / f".board.json.{os.getpid()}").write_text("half of")
    textfile.write(tmp_path / "board.json", "new\n")
    assert [file.name for file in tmp_path.iterdir()] == ["board.json"]
    assert (tmp_path / "board.json").read_text() == "new\n"


@pytest.mark.timeout(20)
def test_a_fifo_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "board.json")
    with pytest.raises(UsageError, match="not a regular file"):
        textfile.differing({tmp_path / "board.json": "new\n"})


def test_what_cannot_be_written_is_said_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match=r"/taken: cannot be written: Is a directory$"):
        textfile.write(tmp_path / "taken", "new\n")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_files_that_are_missing_or_differ_are_named(tmp_path: Path) -> None:
    same, other, missing = (tmp_path / name for name in ("same", "other", "missing"))
    same.write_text("a")
    other.write_text("a")
    assert textfile.differing({same: "a", other: "b", missing: ""}) == [str(other), str(missing)]


def test_a_file_that_is_no_text_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "qos.yml"
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"/qos\.yml: cannot be read: it is not text$"):
        textfile.differing({file: ""})
