"""A lab's programs with its folder first in the PATH: the folder has the same name inside."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.lab.daemons import bringup
from cephqos_loadgen.lab.isolation import namespaces

# Stand-ins that enter nothing: they leave their options out and go on with the rest.
ENTERING = {
    "nsenter": 'while [ "$1" != --root ]; do shift; done; shift; exec "$@"',
    "chroot": 'shift; exec "$@"',
    "setpriv": 'while [ "${1#-}" != "$1" ] || [ "$1" = KILL ]; do shift; done; exec "$@"',
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab with one program, uname, and a PATH that finds the lab's first."""
    for folder in ("bin", "entering", "root"):
        (tmp_path / folder).mkdir()
    for name, text in ENTERING.items():
        (tmp_path / "entering" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "entering" / name).chmod(0o755)
    monkeypatch.setattr(bringup, "_WRAPPED", ("uname",))
    monkeypatch.setattr(bringup, "render_conf", lambda *_: "")
    paths = SimpleNamespace(bin=tmp_path / "bin", root=tmp_path / "root", conf=tmp_path / "conf")
    one: Any = SimpleNamespace(
        lab=SimpleNamespace(state=SimpleNamespace(fsid="f", port=1, init_pid=os.getpid())),
        spec=SimpleNamespace(auth="none"),
        paths=paths,
    )
    bringup.BringUp._write_files(one)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{tmp_path}/entering:{os.environ['PATH']}")
    return tmp_path


def said(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.strip()


def test_a_wrapper_does_not_find_itself_again_inside(lab: Path) -> None:
    assert said(["uname", "-s"]) == "Linux"


def test_a_command_inside_is_the_trees_own_and_not_the_wrapper(lab: Path) -> None:
    argv = namespaces.enter_argv(os.getpid(), lab / "root", ["sh", "-c", "command -v uname"])
    assert not Path(said(argv)).is_relative_to(lab)
