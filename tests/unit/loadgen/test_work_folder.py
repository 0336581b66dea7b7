"""The folder of a run's temporary files: what is removed was marked by a run that has ended."""

import json
from pathlib import Path

import pytest

from cephqos_base.marked import MARK
from cephqos_loadgen.cluster import work_folder


def say(folder: Path, **changes: object) -> None:
    """Change what the mark of a folder says about its process."""
    says = json.loads((folder / MARK).read_text())
    says["process"] |= changes
    (folder / MARK).write_text(json.dumps(says))


def test_it_is_made_with_a_mark_and_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "run-1"
    work_folder.make(folder)
    (folder / "ceph.conf").write_text("x")
    work_folder.make(tmp_path / "work" / "run-2")
    assert (folder / "ceph.conf").exists(), "its run lives"
    work_folder.remove(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["run-2"]


@pytest.mark.parametrize("changes", [{"started": 1}, {"boot": "0" * 36}])
def test_what_a_run_of_this_host_left_that_died_goes_with_the_next(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    work_folder.make(tmp_path / "dead")
    say(tmp_path / "dead", **changes)
    work_folder.make(tmp_path / "next")
    assert [path.name for path in tmp_path.iterdir()] == ["next"]


def test_folders_of_others_stay_whatever_they_are_called(tmp_path: Path) -> None:
    """`work=/home` in the monitors' key was removed once."""
    (tmp_path / "20260101T000000Z-mini-ab12").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / MARK).write_text(json.dumps({"kind": "lab", "name": "home"}))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / MARK).write_text(json.dumps({"kind": "work", "name": "odd"}))
    work_folder.make(tmp_path / "elsewhere")
    says = json.loads((tmp_path / "elsewhere" / MARK).read_text())
    (tmp_path / "elsewhere" / MARK).write_text(json.dumps(says | {"host": "another"}))
    say(tmp_path / "elsewhere", started=1)
    assert work_folder.remove_dead(tmp_path) == []
    for name in ("home", "20260101T000000Z-mini-ab12"):
        work_folder.remove(tmp_path / name)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_folder_that_was_not_made_by_us_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(Exception, match="has no mark of cephqos"):
        work_folder.make(tmp_path / "run")
