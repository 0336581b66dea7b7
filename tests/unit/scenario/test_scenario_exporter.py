"""The exporter that a run starts for itself, and the devices it may change."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.shipped_plans import shipped_plan

from cephqos_exporter.ceph.monclient import MonClient
from cephqos_loadgen.cluster.connection import ConfAccess
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.run_recording import own_exporter
from cephqos_loadgen.scenario.variables import variable_from_text


class Entered(ConfAccess):
    """Reached through other namespaces, as a lab is."""

    def __init__(self, keyring: str | None = None) -> None:
        self.conf = Path("/lab/ceph.conf")
        self.place = ProgramPaths(user="bench", keyring=keyring)

    def argv(self, argv: Sequence[str]) -> list[str]:
        return ["nsenter", "--mount=/a b", *argv]

    def client(self) -> MonClient:
        raise NotImplementedError


def flags(*args: Any) -> dict[str, str]:
    command = own_exporter.argv(9999, *args)
    return dict(flag.split("=", 1) for flag in command if flag.startswith("--") and "=" in flag)


def test_it_reports_the_osds_whose_sockets_are_here_and_the_cluster() -> None:
    found = flags(Entered(), "python3", Path("/sockets"))
    assert found["--role"] == "osd,cluster"
    assert found["--discovery.sockets"] == "/sockets"
    assert found["--cluster.conf"] == "/lab/ceph.conf"
    assert found["--cluster.name"] == "client.bench"
    assert shlex.split(found["--cluster.python"]) == ["nsenter", "--mount=/a b", "python3"]
    assert found["--cluster.interval"] == "1"
    assert "--cluster.keyring" not in found


def test_where_other_exporters_report_the_osds_it_reports_the_cluster_alone() -> None:
    found = flags(Entered("/k"), "/usr/bin/python3", None)
    assert found["--role"] == "cluster"
    assert found["--cluster.keyring"] == "/k"
    assert "--discovery.sockets" not in found


def test_it_ends_with_the_run_however_that_ends() -> None:
    assert own_exporter.argv(1, Entered(), "python3", None)[:3] == [
        "setpriv",
        "--pdeathsig",
        "KILL",
    ]


def filestore(filesystems: str) -> planned.Plan:
    variables = {"objectstore": "filestore", "filesystem": filesystems, "scheduler": "[bfq]"}
    nodes = {name: variable_from_text(value) for name, value in variables.items()}
    return shipped_plan("io-scheduler", variables=nodes)


def test_filesystems_are_a_dimension_each_with_a_lab_of_its_own() -> None:
    points = filestore("[xfs, ext4, btrfs]").points
    assert [point.lab.fs for point in points] == ["xfs", "ext4", "btrfs"]
    assert {(point.lab.objectstore, point.lab.backing) for point in points} == {
        ("filestore", "loop")
    }
    assert len({point.lab for point in points}) == 3


@pytest.mark.parametrize("key", ["nr_requests", "read_ahead"])
def test_queue_dimensions_multiply_the_points_and_are_set_in_each(key: str) -> None:
    variables = {key: variable_from_text("[64, 256]"), "scheduler": variable_from_text("[none]")}
    points = shipped_plan("io-scheduler", variables=variables).points
    name = {"nr_requests": "nr_requests", "read_ahead": "read_ahead_kb"}[key]
    assert [getattr(point.devices, name) for point in points] == [64, 256]
