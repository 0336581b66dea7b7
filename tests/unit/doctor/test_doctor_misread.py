"""Hosts of which the doctor could say the wrong thing: a false alarm, or nothing."""

import asyncio
import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.recorded import RECORDINGS
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedHost

from cephqos_doctor import host_facts, machine, sockets
from cephqos_doctor.cli import HOST_CHECKS, file_of
from cephqos_doctor.finding import diagnose
from cephqos_doctor.host_facts import ClosedDirectory, SocketFacts
from cephqos_doctor.processes import OsdProcess, RunningExporter, look
from cephqos_exporter import core_options
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.cli import read_settings

from .doctor_facts import answering, found, host

FSID = "11111111-2222-3333-4444-555555555555"


def process(proc: Path, pid: int, *words: str, comm: str = "", environ: str = "") -> Path:
    directory = proc / str(pid)
    (directory / "net").mkdir(parents=True)
    (directory / "cmdline").write_text("\0".join(words) + "\0")
    (directory / "status").write_text("Uid:\t64045\t64045\t64045\t64045\nCapEff:\t0\n")
    (directory / "environ").write_text(environ)
    if comm:
        (directory / "comm").write_text(comm + "\n")
    return directory


async def test_sixty_osds_of_which_one_hangs_and_one_answers_half_take_one_deadline(
    tmp_path: Path,
) -> None:
    recording = RecordedDaemon.load(RECORDINGS / "reef" / "idle")
    replayed = ReplayedHost(tmp_path / "run")
    daemons = [replayed.add(recording) for _ in range(60)]
    daemons[7].fault = Fault.NEVER_ACCEPT
    # The lock of a shard is held: only what looks into the queues waits for it.
    daemons[9].fault, daemons[9].only = Fault.HANG, ("dump_op_pq_state",)
    async with replayed, asyncio.timeout(60):
        settings = {"discovery.sockets": f"{tmp_path}/run/*.asok", "path.procfs": str(tmp_path)}
        begun = asyncio.get_running_loop().time()
        facts = await host_facts.gather(read_settings(settings, {}))
        took = asyncio.get_running_loop().time() - begun
    assert took < 6 * host_facts.SECONDS, "deadlines of OSDs run at the same time"
    assert set(replayed.asked) <= READ_ONLY_COMMANDS
    assert len(facts.osds) == 59
    problems = {one.subject: one.problem for one in found(sockets.CHECKS, facts)["osds-answer"]}
    assert set(problems) == {"osd.7", "osd.9"}
    assert "it does not answer" in problems["osd.7"]
    assert "dump_op_pq_state (timeout)" in problems["osd.9"]


@contextmanager
def blocked(path: Path) -> Iterator[None]:
    """A file whose reader waits, as that of /proc/PID/cmdline while the process has its memory."""
    path.unlink()
    os.mkfifo(path)
    try:
        yield
    finally:
        with path.open("r+b", buffering=0) as pipe:  # lets the reader go
            pipe.write(b"x")


async def test_a_process_that_hangs_in_the_kernel_does_not_hang_the_doctor(tmp_path: Path) -> None:
    words = ("/usr/bin/ceph-osd", "-f", "--id")
    process(tmp_path, 5, *words, "5", comm="ceph-osd")
    hung = process(tmp_path, 6, *words, "6", comm="ceph-osd")
    # Others are none of our business, however they hang.
    other = process(tmp_path, 7, "mysqld", comm="mysqld")
    with blocked(hung / "cmdline"), blocked(other / "cmdline"):
        async with asyncio.timeout(30):
            settings = {"discovery.sockets": "/none/*.asok", "path.procfs": str(tmp_path)}
            facts = await host_facts.gather(read_settings(settings, {}))
        assert [one.osd for one in facts.processes] == ["osd.5"]
        assert facts.stuck == (6,)
    [finding] = found(sockets.CHECKS, facts)["osds-answer"]
    assert "pid 6" in finding.problem
    assert "/proc/6/" in finding.mend


@pytest.mark.parametrize(
    "words",
    [
        ("-n", "osd.12"),
        ("-nosd.12",),
        ("--name", "osd.12"),
        ("--name=osd.12",),
        ("-i", "12"),
        ("-i12",),
        ("--id", "12"),
        ("--id=12",),
        ("--foreground", "--id", "12", "--fsid", FSID),
    ],
)
def test_an_osd_is_recognised_however_its_number_is_given(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    process(tmp_path, 5, "/usr/bin/ceph-osd", *words)
    assert [one.osd for one in look(tmp_path).osds] == ["osd.12"]


def test_an_osd_that_runs_is_not_said_to_be_down_because_of_a_left_over_socket() -> None:
    """Adopted by cephadm: the old socket stays, the new one is in a directory closed to us."""
    facts = host(
        sockets=(answering("refused"),),
        closed=(ClosedDirectory(path=f"/run/ceph/{FSID}", owner="167"),),
        osds=(),
    )
    findings = found(sockets.CHECKS, facts)
    assert set(findings) == {"directories-readable", "sockets-found"}
    [finding] = findings["sockets-found"]
    assert "it runs (pid 77)" in finding.problem
    assert "left over" in finding.problem


def test_of_two_clusters_with_an_osd_of_the_same_number_the_hidden_one_is_found() -> None:
    first = dataclasses.replace(answering(""), pid=77)
    both = (OsdProcess(pid=77, osd="osd.3"), OsdProcess(pid=88, osd="osd.3"))
    findings = found(sockets.CHECKS, host(sockets=(first,), processes=both))
    [finding] = findings["sockets-found"]
    assert "pid 88" in finding.problem
    second = SocketFacts(path=Path(f"/run/ceph/{FSID}/osd.3.asok"), osd="osd.3", owner="ceph")
    assert found(sockets.CHECKS, host(sockets=(first, second), processes=both)) == {}


def test_directories_closed_to_us_do_not_matter_where_every_osd_that_runs_is_found() -> None:
    """Rook's directory of a monitor, the logs of another cluster: no socket of an OSD in them."""
    closed = (ClosedDirectory(path="/var/lib/rook/mon-a", owner="root"),)
    assert found(HOST_CHECKS, host(closed=closed)) == {}
    # Where no process can be seen (hidepid), nobody knows.
    assert set(found(HOST_CHECKS, host(closed=closed, processes=()))) == {"directories-readable"}


def owned(owner: str, osd: str) -> SocketFacts:
    return SocketFacts(path=Path(f"/run/ceph/{owner}/{osd}.asok"), osd=osd, owner=owner)


def test_an_exporter_for_each_owner_is_right_and_one_for_only_one_of_them_is_not() -> None:
    """Packages and containers on one host: 64045 and 167."""
    facts = host(
        sockets=(owned("ceph", "osd.3"), owned("167", "osd.4")),
        processes=(OsdProcess(pid=77, osd="osd.3"), OsdProcess(pid=78, osd="osd.4")),
    )
    [finding] = found(HOST_CHECKS, facts)["exporter-user"]
    assert "may not connect to the sockets of 167" in finding.problem
    second = (*facts.exporters, RunningExporter(pid=9, user="167"))
    assert found(HOST_CHECKS, dataclasses.replace(facts, exporters=second)) == {}


def test_root_without_its_capabilities_may_not_connect_either() -> None:
    """A container that drops all of them: root there is nobody."""
    exporters = (RunningExporter(pid=9, user="root"),)
    [finding] = found(HOST_CHECKS, host(exporters=exporters))["exporter-user"]
    assert "may not connect to the sockets of ceph" in finding.problem
    exporters = (RunningExporter(pid=9, user="root", overrides=True),)
    [finding] = found(HOST_CHECKS, host(exporters=exporters))["exporter-user"]
    assert "runs as root" in finding.problem


def test_the_role_of_an_exporter_in_a_container_stands_in_its_environment(tmp_path: Path) -> None:
    """The specification for cephadm: no argument at all."""
    words = ("/opt/cephqos-exporter/bin/python3", "/opt/cephqos-exporter/bin/cephqos-exporter")
    process(tmp_path, 5, *words, environ="A=1\0CEPHQOS_EXPORTER_ROLE=cluster\0")
    process(tmp_path, 6, *words, environ="CEPHQOS_EXPORTER_WEB_LISTEN_ADDRESS=:10130\0")
    assert [one.pid for one in look(tmp_path).exporters] == [6]


def test_the_configuration_of_an_exporter_in_a_container_is_that_of_the_container(
    tmp_path: Path,
) -> None:
    words = ("cephqos-exporter", "--config.file=/etc/cephqos/probe.yml")
    root = process(tmp_path, 5, "python3", *words) / "root" / "etc" / "cephqos"
    root.mkdir(parents=True)
    (root / "probe.yml").write_text("role: [probe]\n")
    assert look(tmp_path).exporters == ()


def test_a_clock_that_chrony_keeps_without_telling_the_kernel_has_its_own_mend() -> None:
    [finding] = found(HOST_CHECKS, host(clock_synchronised=False))["clock-synchronised"]
    assert "the kernel" in finding.problem
    assert "chronyc tracking" in finding.mend and "rtcsync" in finding.mend


def test_what_could_not_be_seen_is_said_and_is_no_finding() -> None:
    diagnosis = diagnose("host", HOST_CHECKS, host(clock_synchronised=None))
    assert diagnosis.findings == ()
    assert "not checked: clock-synchronised" in diagnosis.text()
    # The class of a device is in the CRUSH map, which no host has. What a host counts has its own.
    of_machines = [check.name for check in machine.HOST_CHECKS]
    known = [one["check"] for one in diagnose("host", HOST_CHECKS, host()).document()["skipped"]]
    assert known == ["media-as-it-is", "write-cache", "memory-for-targets", *of_machines]
    skipped = [one["check"] for one in diagnosis.document()["skipped"]]
    assert skipped == [*known, "clock-synchronised"]


@pytest.mark.parametrize("user", ["ceph", "root"])
def test_whose_own_socket_is_closed_to_him_is_told_of_selinux_and_not_of_users(user: str) -> None:
    facts = host(user=user, sockets=(answering("permission"),), osds=())
    [finding] = found(sockets.CHECKS, facts)["sockets-permitted"]
    assert "SELinux or AppArmor" in finding.problem
    assert "sudo -u" not in finding.mend and "User=" not in finding.mend
    other = host(user="nobody", sockets=(answering("permission"),), osds=())
    [finding] = found(sockets.CHECKS, other)["sockets-permitted"]
    assert "which belongs to ceph" in finding.problem


def test_a_limit_of_this_command_is_not_blamed_on_an_osd() -> None:
    [finding] = found(sockets.CHECKS, host(sockets=(answering("descriptors"),)))["osds-answer"]
    assert "it does not answer" not in finding.problem
    assert finding.mend.startswith("ulimit -n ")


def test_without_a_file_the_one_of_the_package_is_taken_as_its_service_does(tmp_path: Path) -> None:
    """Sockets that the exporter was told of are not missing, nor is a policy that it has."""
    packaged = tmp_path / "exporter.yml"
    assert file_of(None, {}, packaged) is None
    packaged.write_text("discovery:\n  sockets: [/packaged/*.asok]\n")
    assert file_of(None, {}, packaged) == str(packaged)
    assert file_of("/other.yml", {}, packaged) == "/other.yml"
    # What stands in the environment is read as the exporter reads it.
    assert file_of(None, {"CEPHQOS_EXPORTER_CONFIG_FILE": "/other.yml"}, packaged) is None
    read = read_settings({"config.file": file_of(None, {}, packaged)}, {})
    assert read[core_options.SOCKETS] == ("/packaged/*.asok",)
