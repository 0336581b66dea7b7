"""Only a folder that carries our mark is removed."""

import json
import os
from pathlib import Path

import pytest

from cephqos_base import marked
from cephqos_base.marked import MARK, NotOurs


def test_a_folder_that_was_made_with_its_mark_is_removed_with_all_that_is_in_it(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    folder = tmp_path / "below" / "run-1"
    marked.make(folder, "work", pid=7)
    (folder / "sockets").mkdir()
    (folder / "sockets" / "a").touch()
    (folder / "link").symlink_to(outside)
    assert marked.read(folder, "work")["pid"] == 7
    marked.remove(folder, "work")
    assert list(folder.parent.iterdir()) == []
    assert (outside / "file").exists()


def test_a_folder_without_the_mark_is_left(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").touch()
    with pytest.raises(NotOurs, match="has no mark of cephqos"):
        marked.remove(tmp_path / "home", "work")
    assert (tmp_path / "home" / "file").exists()


@pytest.mark.parametrize(
    "mark", ["", "7", "[]", json.dumps({"kind": "lab", "name": "a"}), '{"kind": "work"}']
)
def test_a_mark_of_something_else_is_no_mark(tmp_path: Path, mark: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / MARK).write_text(mark)
    with pytest.raises(NotOurs, match="does not say that cephqos made this folder as work a"):
        marked.remove(tmp_path / "a", "work")
    assert (tmp_path / "a" / MARK).exists()


def test_a_copy_of_the_mark_under_another_name_and_a_link_to_our_folder_are_left(
    tmp_path: Path,
) -> None:
    marked.make(tmp_path / "a", "work")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / MARK).write_text((tmp_path / "a" / MARK).read_text())
    (tmp_path / "c").symlink_to(tmp_path / "a")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / MARK).symlink_to(tmp_path / "a" / MARK)
    for name in "bcd":
        with pytest.raises(NotOurs):
            marked.remove(tmp_path / name, "work")
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
@pytest.mark.parametrize("file", [".", MARK])
def test_a_folder_or_mark_of_another_user_is_left(tmp_path: Path, file: str) -> None:
    marked.make(tmp_path / "a", "work")
    os.chown(tmp_path / "a" / file, 1234, -1)
    with pytest.raises(NotOurs, match="belongs to user 1234"):
        marked.remove(tmp_path / "a", "work")
    assert (tmp_path / "a" / MARK).exists()


def test_a_folder_that_is_there_already_is_not_marked(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileExistsError):
        marked.make(tmp_path / "a", "work")
    assert not (tmp_path / "a" / MARK).exists()
