"""What `make` asks of a fresh machine: nothing. It says what it installs, and goes on."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BOOTSTRAP = Path("deploy/bootstrap.sh").resolve()
NOBODY = 65534


@pytest.fixture
def stand_ins() -> Iterator[Path]:
    """A folder for stand-ins of programs, which every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def stand_in(folder: Path, name: str, does: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/bash\n{does}\n", encoding="utf-8")
    program.chmod(0o755)


def bootstrap(
    folder: Path, *arguments: str, user: int | None = None, path: str = "/usr/bin:/bin", **env: str
) -> subprocess.CompletedProcess[str]:
    """The script with these stand-ins, with nobody to answer a question."""
    return subprocess.run(
        ["/bin/bash", str(BOOTSTRAP), *arguments],
        env={"PATH": f"{folder}:{path}", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        user=user,
    )


def apt_get(folder: Path) -> None:
    stand_in(folder, "apt-get", f'[[ "$*" == update* ]] || echo "apt-get $*" >>{folder}/called')


def called(folder: Path) -> str:
    log = folder / "called"
    return log.read_text(encoding="utf-8") if log.exists() else ""


def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("changes its user, which needs root: run it with sudo")


def test_what_is_missing_is_installed_without_a_question_and_told_in_one_line(
    stand_ins: Path,
) -> None:
    as_root()
    apt_get(stand_ins)
    done = bootstrap(stand_ins, "system", "no-such-command", "/no/such/file")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if "installing" in line]
    assert len(told) == 1
    assert told[0].endswith("no-such-command /no/such/file …")
    assert "no-such-command /no/such/file" in called(stand_ins)


def test_with_no_install_nothing_is_installed_and_all_that_is_missing_is_listed(
    stand_ins: Path,
) -> None:
    apt_get(stand_ins)
    stand_in(stand_ins, "sudo", "exit 9")
    done = bootstrap(stand_ins, "system", "no-such-a", "no-such-b", NO_INSTALL="1")
    assert done.returncode == 2
    assert "no-such-a no-such-b; NO_INSTALL is set" in done.stderr
    assert not called(stand_ins)


def test_who_is_not_root_installs_by_sudo(stand_ins: Path) -> None:
    as_root()
    apt_get(stand_ins)
    (stand_ins / "called").touch()
    (stand_ins / "called").chmod(0o666)
    stand_in(stand_ins, "sudo", f'echo "sudo $*" >>{stand_ins}/called; exec "$@"')
    done = bootstrap(stand_ins, "system", "no-such-command", user=NOBODY)
    assert done.returncode == 0, done.stderr
    sudo = [line for line in called(stand_ins).splitlines() if line.startswith("sudo ")]
    assert any("apt-get install" in line and "no-such-command" in line for line in sudo)


def test_who_is_not_root_and_has_no_sudo_is_told_so(stand_ins: Path) -> None:
    as_root()
    for name in ("dirname", "bash"):
        (stand_ins / name).symlink_to(shutil.which(name) or name)
    done = bootstrap(stand_ins, "system", user=NOBODY, path="/nonexistent")
    assert done.returncode == 2
    assert "there is no sudo here: run make as root" in done.stderr


def test_a_python_that_is_new_enough_is_found_beside_an_old_one(stand_ins: Path) -> None:
    stand_in(stand_ins, "python3", "exit 1")
    stand_in(stand_ins, "python3.14", f'echo "$*" >>{stand_ins}/called; exit 0')
    (stand_ins / "venv/bin").mkdir(parents=True)
    stand_in(stand_ins / "venv/bin", "pip", "exit 0")
    done = bootstrap(stand_ins, "venv", str(stand_ins / "venv"))
    assert done.returncode == 0, done.stderr
    assert f"-m venv {stand_ins}/venv" in called(stand_ins)


def test_a_python_that_is_too_old_is_named(stand_ins: Path) -> None:
    stand_in(stand_ins, "old", '[[ $1 == --version ]] && echo "Python 3.9.2"; exit 1')
    done = bootstrap(stand_ins, "venv", str(stand_ins / "venv"), PYTHON="old")
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed; found: Python 3.9.2 (set PYTHON=…)" in done.stderr
