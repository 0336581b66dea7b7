"""Settings of the cluster role that cannot work are refused before anything is started."""

from pathlib import Path

import pytest

from cephqos_exporter.cli import main

CHECK = ("--role=cluster", "--config.check")


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "ceph.conf"
    path.write_text("[global]\n")
    return f"--cluster.conf={path}"


def test_a_conf_that_is_there_is_enough(conf: str) -> None:
    assert main([*CHECK, conf]) == 0


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--cluster.conf=/nowhere/ceph.conf", "cluster.conf"),
        ("--cluster.keyring=/nowhere/keyring", "cluster.keyring"),
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
