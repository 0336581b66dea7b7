"""Settings of the cluster role that cannot work are refused before anything is started."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cephqos_exporter.cli import main

CHECK = ("--role=cluster", "--config.check")


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "ceph.conf"
    path.write_text("[global]\n")
    return f"--cluster.conf={path}"


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that has the rados module, as far as importing it goes."""
    (tmp_path / "rados.py").touch()
    return f"--cluster.python=env PYTHONPATH={tmp_path} {sys.executable}"


BARE = f"--cluster.python={sys.executable} -IS"


def test_a_conf_and_the_rados_module_are_enough(conf: str, python: str) -> None:
    assert main([*CHECK, conf, python, "--cluster.ceph=no-such-command"]) == 0


def test_a_conf_and_the_ceph_command_are_enough(conf: str) -> None:
    assert main([*CHECK, conf, BARE, f"--cluster.ceph={sys.executable}"]) == 0


@pytest.mark.parametrize(
    ("ceph", "why"), [("no-such-command", "no such command"), ("false", "status 1")]
)
def test_without_module_and_command_the_check_says_what_to_install(
    conf: str, ceph: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CHECK, conf, BARE, f"--cluster.ceph={ceph}"]) == 2
    error = capsys.readouterr().err
    assert f"--cluster.ceph: found '{ceph}' ({why}" in error
    assert "python3-rados" in error and "ceph-common" in error
    assert error.count("\n") == 1


def test_the_probe_needs_the_module(
    conf: str, python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = ["--role=probe", "--probe.pools=p", "--config.check", conf]
    assert main([*probe, python]) == 0
    assert main([*probe, BARE, f"--cluster.ceph={sys.executable}"]) == 2
    assert "No module named 'rados'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["cluster.conf", "cluster.keyring"])
def test_a_file_that_is_missing_is_named_with_its_option(
    option: str, conf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CHECK, conf, f"--{option}=/nowhere/file"]) == 2
    assert capsys.readouterr().err == f"cephqos-exporter: no such file: /nowhere/file ({option})\n"


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--cluster.name=cephqos", "cluster.name"),
        ("--cluster.python=", "cluster.python"),
        ("--cluster.python='unbalanced", "cluster.python"),
        ("--cluster.ceph=", "cluster.ceph"),
        ("--cluster.interval=0", "cluster.interval"),
        ("--cluster.timeout=soon", "cluster.timeout"),
        ("--cluster.schedule-pgs=-1", "cluster.schedule-pgs"),
    ],
)
def test_what_cannot_work_is_one_line_and_status_2(
    flag: str, named: str, conf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*CHECK, flag] if flag.startswith("--cluster.conf") else [*CHECK, conf, flag]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert named in error
    assert "allowed: " in error


def test_without_the_role_nothing_of_it_is_checked() -> None:
    assert main(["--config.check", "--cluster.conf=/nowhere/ceph.conf"]) == 0


def test_a_keyring_in_a_closed_directory_is_one_line_and_status_2(
    conf: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who forgets to become the exporter's user is told so: the keys' directory is closed."""
    really = os.stat

    def closed(path: Any, *more: Any, **others: Any) -> os.stat_result:
        if str(path) == "/closed/keyring":
            raise PermissionError(13, "Permission denied", path)
        return really(path, *more, **others)

    monkeypatch.setattr(os, "stat", closed)
    assert main([*CHECK, conf, "--cluster.keyring=/closed/keyring"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "found /closed/keyring (Permission denied)" in error
    assert "allowed: a readable file" in error
