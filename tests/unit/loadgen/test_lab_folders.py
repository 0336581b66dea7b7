"""What `lab down`, and each start of a lab, may remove: only what carries the mark of a lab."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cephqos_base import marked
from cephqos_base.command import main
from cephqos_base.errors import UsageError
from cephqos_base.marked import MARK, NotOurs
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab import checks, lab, state
from cephqos_loadgen.lab.isolation import cgroups, process_one
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.paths import LabPaths, labs_dir
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Silent

FOR_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone has labs of others")


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CEPHQOS_LABS", str(tmp_path / "labs"))
    (tmp_path / "labs").mkdir()
    return tmp_path / "labs"


def killed(labs: Path, name: str) -> Path:
    """What a lab leaves whose keeper and process 1 were killed."""
    marked.make(labs / name, "lab")
    (labs / name / "disks").mkdir()
    (labs / name / "disks" / "osd.0.block").touch()
    return labs / name


def theirs(labs: Path) -> dict[Path, str]:
    """Files of others, of every shape, and what they hold."""
    files = {}
    for name in ("photos", "lab", "thesis", "other-name", "other-kind"):
        (labs / name / "below").mkdir(parents=True)
        files[labs / name / "below" / "data"] = name
    (labs / "photos.lock").touch()
    files[labs / "poetry.lock"] = "poetry"
    aside = labs.parent / "aside"
    marked.make(aside, "lab")
    files[aside / "data"] = "aside"
    (labs / "aside").symlink_to(aside)
    (labs / "other-name" / MARK).write_text('{"kind": "lab", "name": "photos"}')
    (labs / "other-kind" / MARK).write_text('{"kind": "tree", "name": "other-kind"}')
    for file, text in files.items():
        file.write_text(text)
    return files


def untouched(files: dict[Path, str]) -> bool:
    return all(file.read_text() == text for file, text in files.items())


def start_a_lab(monkeypatch: pytest.MonkeyPatch, name: str, said: list[str]) -> Lab:
    """A lab whose start does all on the host's files, and then fails."""

    class Notes(Silent):
        def note(self, text: str) -> None:
            said.append(text)

    async def nothing(*_: object) -> Path:
        return Path("/")

    async def failing(*_: object) -> None:
        raise LabError("so far and no further")

    for check in ("check_host", "raise_aio_limit", "check_socket_length"):
        monkeypatch.setattr(checks, check, lambda *_: None)
    monkeypatch.setattr(checks, "check_options", nothing)
    monkeypatch.setattr(lab, "ensure_tree", nothing)
    monkeypatch.setattr(Lab, "_start_process_one", failing)
    return Lab(LabSpec(name=name), Notes())


@FOR_ROOT
def test_down_leaves_what_others_keep_in_the_folder_of_labs(
    labs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = theirs(labs)
    gone = killed(labs, "mine")
    assert main(["lab", "down", "--name", "mine"]) == 0
    said = capsys.readouterr()
    assert untouched(files)
    assert not gone.exists()
    assert f"lab 'mine' had been killed: removed {gone}\n" in said.out
    for name in ("photos", "thesis", "lab", "aside", "other-name", "other-kind", "poetry.lock"):
        assert f"left: {labs / name}" in said.out
    assert "nothing to end" not in said.out + said.err


@FOR_ROOT
@pytest.mark.parametrize("name", ["photos", "lab", "aside", "other-name", "other-kind"])
def test_down_of_a_name_that_is_anothers_says_why_it_is_left(
    name: str, labs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = theirs(labs)
    assert main(["lab", "down", "--name", name]) == 2
    assert f"cephqos: {labs / name}" in capsys.readouterr().err
    assert untouched(files)


@FOR_ROOT
async def test_no_start_of_a_lab_removes_what_others_keep_there(
    labs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lab up`, `demo` and `run` start a lab."""
    files, gone, said = theirs(labs), killed(labs, "mine"), list[str]()
    with pytest.raises(LabError, match="so far"):
        async with start_a_lab(monkeypatch, "new", said):
            pass
    assert untouched(files)
    assert not gone.exists()
    assert said == [f"lab 'mine' had been killed: removed {gone}"]
    assert not (labs / "new").exists()
    with pytest.raises(NotOurs, match=r"photos has no mark of cephqos"):
        async with start_a_lab(monkeypatch, "photos", said):
            pass
    assert untouched(files)


@FOR_ROOT
@pytest.mark.parametrize("file", [".", MARK])
def test_a_lab_of_another_user_is_left(
    file: str, labs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(killed(labs, "mine") / file, 1234, -1)
    assert main(["lab", "down", "--name", "mine"]) == 2
    assert "belongs to user 1234, not 0: it is left as it is" in capsys.readouterr().err
    assert (labs / "mine" / "disks" / "osd.0.block").exists()


def test_down_removes_the_named_lab_only_and_tells_of_the_others(
    labs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(labs, "a")
    other = killed(labs, "b")
    assert main(["lab", "down", "--name", "a"]) == 0
    said = capsys.readouterr().out
    assert [path.name for path in labs.iterdir()] == ["b"]
    assert f"left: {other} of a lab that was killed; `cephqos lab down --name b` removes" in said
    assert main(["lab", "down"]) == 2
    said, error = capsys.readouterr()
    assert "no lab 'lab' is up (up: none); nothing to end" in error
    assert f"left: {other}" in said


@pytest.mark.parametrize("value", ["", "labs", "./labs", "~/labs"])
@pytest.mark.parametrize("line", ["lab down", "lab list", "lab exec ls", "lab fault stop --osd 0"])
def test_a_folder_of_labs_that_depends_on_where_one_stands_is_refused(
    value: str,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """An empty variable meant the present folder, and all in it was removed."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CEPHQOS_LABS", value)
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert "CEPHQOS_LABS: found" in error
    assert "expected the absolute path of a folder for labs" in error
    assert (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["../photos", "", ".", "..", "a/b", "A"])
def test_a_name_that_is_no_labs_is_refused_by_every_command(
    name: str, labs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "down", "--name", name]) == 2
    assert f"name {name!r}: expected at most 30 of" in capsys.readouterr().err
    with pytest.raises(UsageError):
        LabPaths.of(name)


def test_a_lab_that_is_up_is_left_by_every_cleaning(labs: Path) -> None:
    paths = LabPaths.of("mine")
    lock = state.make_lab(paths)
    paths.logs.mkdir()
    said: list[str] = []
    state.clean_dead_labs(said.append)
    assert said == []
    assert not state.clean_dead_lab(paths)
    assert state.is_alive(paths)
    with pytest.raises(state.LockHeld):
        state.make_lab(paths)
    os.close(lock)
    assert not state.is_alive(paths)
    assert state.clean_dead_lab(paths)
    assert list(labs_dir().iterdir()) == []


def test_a_new_lab_takes_the_place_of_one_of_its_name_that_was_killed(labs: Path) -> None:
    killed(labs, "mine")
    lock = state.make_lab(LabPaths.of("mine"))
    assert [path.name for path in (labs / "mine").iterdir()] == [MARK]
    os.close(lock)


@pytest.mark.parametrize("holds", [True, False])
def test_a_signal_reaches_only_the_process_that_holds_the_lock(labs: Path, holds: bool) -> None:
    """The number of a keeper that has ended may be that of another process by now."""
    paths = LabPaths.of("mine")
    lock = state.make_lab(paths)
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    process = subprocess.Popen(program, pass_fds=(lock,) if holds else ())
    try:
        state.signal_holder(paths, process.pid, signal.SIGKILL)
        if holds:
            assert process.wait(20) == -signal.SIGKILL
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.2)
    finally:
        process.kill()
        process.wait()
        os.close(lock)


async def test_the_end_of_a_lab_signals_no_process_that_took_its_keepers_number(
    labs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = LabPaths.of("mine")
    lock = state.make_lab(paths)
    # A lock that other processes hold too: the keeper of this lab is gone, its process 1 ends.
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    state.LabState(LabSpec(name="mine"), "x", 20000, stranger.pid, stranger.pid, "/").save(paths)
    monkeypatch.setattr(lab, "_DOWN_TIMEOUT", 0.1)
    try:
        with pytest.raises(LabError, match="did not end"):
            await lab.end_lab("mine")
        with pytest.raises(subprocess.TimeoutExpired):
            stranger.wait(0.2)
    finally:
        stranger.kill()
        stranger.wait()
        os.close(lock)


def test_process_1_of_a_lab_ends_no_processes_of_the_host(
    labs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kills all that it sees, which is right for the first process of a namespace only."""
    killing: list[Any] = []
    monkeypatch.setattr(os, "kill", lambda *given: killing.append(given))
    monkeypatch.setattr(subprocess, "run", lambda *given, **_: killing.append(given))
    monkeypatch.setattr(sys, "argv", ["process_one", str(labs), "mine", "/", "0", "1", "2"])
    assert process_one.main() == 2
    assert killing == []
    assert "must be the first process of a PID namespace" in capsys.readouterr().err


def test_only_control_groups_that_the_lab_made_are_changed_and_removed(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab of the same name in another folder of labs has groups of the same name."""
    groups = tmp_path / "groups"
    groups.mkdir()
    for place in ("_V1", "_V1_CPU", "_V2"):
        monkeypatch.setattr(cgroups, place, groups)
    of_memory = tmp_path / "memory"
    of_memory.mkdir()
    monkeypatch.setattr(cgroups, "_V1_MEMORY", of_memory)
    paths = LabPaths.of("mine")
    os.close(state.make_lab(paths))
    foreign = groups / "cephqos-mine-osd.1"
    foreign.mkdir()
    cgroups.limit_cpu(paths, 0, 4711, None)
    cgroups._make(paths, cgroups._group(of_memory, paths, 0))
    assert list(of_memory.glob("cephqos-*"))
    with pytest.raises(LabError, match="this lab did not make it"):
        cgroups.limit_cpu(paths, 1, 4711, None)
    cgroups.rejoin(paths, 1, 4711)
    assert list(foreign.iterdir()) == []
    own = groups / "cephqos-mine-osd.0"
    for file in own.iterdir():  # the kernel's files go with their group
        file.unlink()
    cgroups.remove_cgroups(paths)
    assert list(groups.glob("cephqos-*")) == [foreign]
    assert list(of_memory.glob("cephqos-*")) == []
    # One that was removed by others and made again is not ours.
    own.mkdir()
    paths.cgroups.write_text(f"1 {own}\n{own.stat().st_ino} {tmp_path / 'groups' / '..' / 'x'}\n")
    cgroups.remove_cgroups(paths)
    assert own.exists()


@FOR_ROOT
def test_a_lock_on_a_strangers_folder_makes_it_no_lab(labs: Path) -> None:
    (labs / "photos").mkdir()
    with (labs / "photos" / MARK).open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        assert not state.is_alive(LabPaths.of("photos"))


def test_a_daemon_cannot_choose_which_file_root_appends_its_output_to(labs: Path) -> None:
    """With --setuser ceph the folder of logs is the daemons', and so are links in it."""
    paths = LabPaths.of("mine")
    os.close(state.make_lab(paths))
    paths.logs.mkdir()
    roots = labs.parent / "shadow"
    roots.touch()
    paths.output("osd.0").symlink_to(roots)
    one = process_one.ProcessOne(paths, labs, 0)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        one.spawn("osd.0", ["true"], str(paths.output("osd.0")))
    assert roots.read_text() == ""
