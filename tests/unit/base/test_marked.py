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


def test_what_cannot_be_removed_keeps_the_mark_so_that_it_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked.make(tmp_path / "a", "work")
    (tmp_path / "a" / "below").mkdir()
    for name in ("stays", "goes"):
        (tmp_path / "a" / "below" / name).touch()
    really = os.unlink

    def refused(path: str, **more: int) -> None:
        if path == "stays":
            raise PermissionError(1, "Operation not permitted", path)
        really(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        with pytest.raises(OSError, match="Operation not permitted"):
            marked.remove(tmp_path / "a", "work")
    assert [path.name for path in (tmp_path / "a" / "below").iterdir()] == ["stays"]
    marked.remove(tmp_path / "a", "work")
    assert not (tmp_path / "a").exists()


def test_a_folder_with_something_mounted_in_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this, what is mounted would be emptied: another disk, or the host's /sys."""
    folder = tmp_path / "a b"
    marked.make(folder, "work")
    (folder / "home" / "data").mkdir(parents=True)
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(marked, "_MOUNTS", mounts)
    point = f"{tmp_path}/a\\040b/home".replace(" ", "\\040")
    mounts.write_text(f"100 30 8:1 / {point} rw,relatime shared:1 - ext4 /dev/sda1 rw\n")
    with pytest.raises(NotOurs, match="a b/home is mounted inside of"):
        marked.remove(folder, "work")
    assert (folder / "home" / "data").exists()
    mounts.write_text(f"100 30 8:1 / {tmp_path} rw,relatime shared:1 - ext4 /dev/sda1 rw\n")
    marked.remove(folder, "work")
    assert not folder.exists()


def test_a_folder_that_takes_the_place_while_ours_is_removed_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked.make(tmp_path / "a", "work")
    (tmp_path / "a" / "ours").touch()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").touch()
    really = os.listdir

    def exchanged(place: int) -> list[str]:
        (tmp_path / "a").rename(tmp_path / "moved")
        (tmp_path / "theirs").rename(tmp_path / "a")
        return really(place)

    monkeypatch.setattr(os, "listdir", exchanged)
    with pytest.raises(OSError, match="not empty"):
        marked.remove(tmp_path / "a", "work")
    assert (tmp_path / "a" / "file").exists()


def test_only_the_user_who_made_a_folder_can_open_its_mark(tmp_path: Path) -> None:
    """Another user could hold a lock on it."""
    marked.make(tmp_path / "a", "work")
    assert (tmp_path / "a" / MARK).stat().st_mode & 0o077 == 0


def test_a_folder_is_made_anew_in_the_place_of_ours_or_of_an_empty_one_only(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    marked.make(tmp_path / "ours", "out")
    (tmp_path / "ours" / "old").touch()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name in ("new", "empty", "ours"):
        marked.renew(tmp_path / name, "out")
        assert [path.name for path in (tmp_path / name).iterdir()] == [MARK]
    for name in ("home", "link", "home/file"):
        with pytest.raises(NotOurs, match=r"left as it is\. Remove it yourself, or name another"):
            marked.renew(tmp_path / name, "out")
    assert (tmp_path / "home" / "file").exists()
