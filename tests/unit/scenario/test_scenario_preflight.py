"""What refuses a run before it begins: said in one line, with a status of its own, nothing left."""

import asyncio
import errno
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_loadgen.check import preflight
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.plan.errors import ClusterUnfit, HostLacks
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter
from cephqos_loadgen.scenario.parse import Choices, parse

FSID = "11111111-2222-3333-4444-555555555555"
OTHER = FSID.replace("1", "9")
TEXT = """\
scenario: mini
pools: [{name: client, images: {size: 32M}}, {name: objects, objects: {count: 4, size: 4K}}]
phases:
  - name: client
    fio: {engine: nbd, pool: client, rw: randwrite, bs: 4K}
    until: {duration: 5s}
  - {name: scrub, scrub: {pool: objects}}
"""


def plan(keep: bool = False, release: str = "reef") -> Plan:
    return parse(TEXT, "mini.yaml", Choices(keep=keep, release=release))


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """A cluster whose monitors nobody could reach, and a host with all programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("fio", "rados", "rbd", "qemu-nbd", "setpriv", "python3"):
        (programs / name).write_text("#!/bin/sh\nexit 0\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    conf = tmp_path / "ceph.conf"
    conf.write_text(f"[global]\nfsid = {FSID}\nmon_host = 127.0.0.1:1\n")
    return RunOptions(
        out=tmp_path / "deep" / "out",
        conf=conf,
        known_fsid=FSID,
        python=str(programs / "python3"),
        work=tmp_path / "work",
    )


async def refused(options: RunOptions, kind: type[UsageError] = UsageError) -> str:
    with pytest.raises(kind) as error:
        async with asyncio.timeout(10):
            await Runner(plan(), options, Silent()).run()
    assert type(error.value) is kind
    assert not (options.out.parent).exists(), "no archive, and no folder made for one"
    return str(error.value)


async def test_a_run_that_could_begin_passes(options: RunOptions) -> None:
    await preflight.check(plan(), options)


async def test_a_cluster_that_was_not_named_is_not_connected_to(options: RunOptions) -> None:
    said = await refused(replace(options, known_fsid=None))
    assert f"loads the cluster {FSID}; if that is what you want, add --i-know-this" in said
    said = await refused(replace(options, known_fsid=OTHER), ClusterUnfit)
    assert f"is of the cluster {FSID}" in said
    said = await refused(replace(options, known_fsid="yes"))
    assert "--i-know-this-cluster yes: expected an FSID" in said


async def test_programs_of_a_lab_do_not_load_another_cluster(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its folder may be first in PATH; its fio sets the lab's conf file over the run's."""
    monkeypatch.setenv("CEPHQOS_LABS", str(tmp_path))
    said = await refused(options, HostLacks)
    assert "which runs in that lab and loads it, not the cluster of --conf" in said


@pytest.mark.parametrize("known", [None, FSID])
async def test_a_conf_without_an_fsid_says_where_to_get_it(
    options: RunOptions, known: str | None
) -> None:
    assert options.conf
    options.conf.write_text("[global]\nmon_host = 127.0.0.1:1\n")
    with pytest.raises(UsageError) as error:
        await preflight.check_plan(plan(), replace(options, known_fsid=known))
    assert f"--conf {options.conf}: expected a line `fsid = FSID`" in str(error.value)
    assert f"`ceph --conf {options.conf} fsid`" in str(error.value)


async def test_an_fsid_may_have_a_comment(options: RunOptions) -> None:
    assert options.conf
    options.conf.write_text(f"[global]\nfsid = {FSID} ; ours\nmon_host = 127.0.0.1:1\n")
    await preflight.check_plan(plan(), options)


async def test_files_that_cannot_be_read_are_named(options: RunOptions, tmp_path: Path) -> None:
    for change in ({"conf": tmp_path / "no"}, {"keyring": tmp_path / "no"}, {"keyring": tmp_path}):
        said = await refused(replace(options, **change))  # type: ignore[arg-type]
        (option, path) = next(iter(change.items()))
        assert said.startswith(f"--{option} {path}: expected ")
    said = await refused(replace(options, sockets=tmp_path / "no"))
    assert said.startswith(f"--sockets {tmp_path / 'no'}: expected a folder")


async def test_a_folder_that_cannot_be_written_to_is_named(options: RunOptions) -> None:
    out = Path("/proc/sys/out")
    with pytest.raises(UsageError, match=r"--out /proc/sys/out: expected a folder that can be wri"):
        await preflight.check(plan(), replace(options, out=out))
    with pytest.raises(UsageError, match=r"--work /proc/self: expected a folder that can be writt"):
        await preflight.check(plan(), replace(options, work=Path("/proc/self")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"out": Path("/proc/sys/out")}, "--out /proc/sys/out: expected a folder that can be writ"),
        ({"listen": "nonsense"}, "--listen 'nonsense': expected HOST:PORT"),
        (
            {"grafana": Address("http://127.0.0.1:1")},
            "--grafana http://127.0.0.1:1: .*expected",
        ),
        ({"known_fsid": None}, f"loads the cluster {FSID}; .*add --i-know-this-cluster {FSID}"),
    ],
)
async def test_what_would_refuse_the_run_refuses_its_check_too(
    options: RunOptions, change: dict[str, Any], said: str
) -> None:
    await preflight.check_plan(plan(), options)
    with pytest.raises(UsageError, match=said):
        await preflight.check_plan(plan(), replace(options, **change))


async def test_a_folder_that_this_user_may_not_look_into_is_named_too(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /root/out is for everybody else; these tests may be root's."""
    exists = Path.exists

    def hidden(path: Path) -> bool:
        if path.name in ("out", "sockets"):
            raise PermissionError(13, "Permission denied")
        return exists(path)

    monkeypatch.setattr(Path, "exists", hidden)
    with pytest.raises(UsageError, match=r"--sockets .*expected a folder"):
        await preflight.check(plan(), replace(options, sockets=options.out / "sockets"))
    with pytest.raises(UsageError, match=r"--out .*expected a folder that can be written to"):
        await preflight.check(plan(), replace(options, out=Path("/proc/out")))


class Usage(NamedTuple):
    total: int
    used: int
    free: int


async def test_a_disk_with_hardly_any_room_is_found(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 30, 1 << 30, 5_000_000))
    said = await refused(options, HostLacks)
    assert "5 MB are free there; expected at least 3" in said


@pytest.mark.parametrize(
    ("program", "package"),
    [("fio", "fio"), ("rados", "ceph-common"), ("rbd", "ceph-common"), ("qemu-nbd", "qemu-utils")],
)
async def test_a_program_that_is_missing_is_named_with_its_package(
    options: RunOptions, program: str, package: str
) -> None:
    Path(options.python).with_name(program).unlink()
    said = await refused(options, HostLacks)
    assert said.startswith(f"{program} is not in PATH")
    assert f"install {package}" in said


async def test_an_fio_without_the_engine_is_found(options: RunOptions) -> None:
    fio = Path(options.python).with_name("fio")
    fio.write_text('#!/bin/sh\n[ "$1" != --enghelp=nbd ]\n')
    assert "this host's fio has no engine nbd" in await refused(options, HostLacks)


@pytest.mark.parametrize("python", ["/nowhere/python3", sys.executable])
async def test_a_python_without_the_bindings_is_named_with_the_option_for_another(
    options: RunOptions, python: str
) -> None:
    said = await refused(replace(options, python=python), HostLacks)
    assert said.startswith(f"--python {python}: expected a Python that can import rados")
    assert "python3-rados" in said


async def test_a_release_or_a_lab_that_there_is_not_refuses_the_plan_too(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    lab = replace(options, conf=None, known_fsid=None)
    with pytest.raises(UsageError, match="unknown release 'foo': the lab has pacific"):
        await preflight.check_plan(plan(release="foo"), lab)
    with pytest.raises(UsageError, match="no lab 'nope' is up"):
        await preflight.check_plan(plan(), replace(lab, lab="nope"))


async def test_keeping_pools_of_a_lab_that_ends_with_the_run_is_refused(
    options: RunOptions,
) -> None:
    lab = replace(options, conf=None, known_fsid=None)
    await preflight.check_plan(plan(), lab)
    with pytest.raises(UsageError, match=r"to be kept \(client, objects\), but a lab that is made"):
        await preflight.check_plan(plan(keep=True), lab)


@pytest.mark.parametrize(
    ("number", "why"),
    [(errno.EBUSY, "a file system or an OSD uses it"), (errno.EACCES, "Permission denied")],
)
async def test_a_device_that_is_in_use_is_not_overwritten(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    def refuse(path: Path, flags: int) -> int:
        assert flags & os.O_EXCL
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "is_block_device", lambda path: path.name == "disk")
    monkeypatch.setattr(os, "open", refuse)
    preflight.check_unused(Path("/a/file"))
    with pytest.raises(UsageError, match=f"--path /a/disk: {why}; expected a device that nothing"):
        await preflight.check(plan(), replace(options, paths=("/a/disk",)))


async def test_an_exporter_that_is_down_refuses_the_run(options: RunOptions) -> None:
    down = Address("http://127.0.0.1:1/metrics")
    said = await refused(replace(options, exporters=(down,)))
    assert said.startswith("--exporter http://127.0.0.1:1/metrics: connection refused; expected a")


async def test_what_is_refused_later_leaves_nothing_either(
    options: RunOptions, tmp_path: Path
) -> None:
    """Here nobody answers at the conf's address: the programs are not even real."""
    said = await refused(options, ClusterUnfit)
    assert said.startswith("cannot reach the cluster")
    said = await refused(replace(options, resume=tmp_path))
    assert said == f"--resume {tmp_path}: expected the folder of an archive (cephqos archive ls)"


def test_an_archive_that_is_discarded_takes_along_the_folders_it_made(tmp_path: Path) -> None:
    base = tmp_path / "a" / "b"
    first = ArchiveWriter(base, "one")
    second: Any = ArchiveWriter(base, "two")
    first.discard()
    assert [path.name for path in base.iterdir()] == ["two.partial"], "not what others use"
    second.discard()
    assert base.exists(), "the second run found it there"
