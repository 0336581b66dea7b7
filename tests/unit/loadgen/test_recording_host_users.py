"""CPUs and disks that others use during a run: who, how much, and what on the OSDs' disks."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cephqos_exporter.daemon import Host
from cephqos_loadgen.archive.cli import _host
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.host import (
    BytesAsked,
    CpuUse,
    CpuUsers,
    DiskUse,
    DiskUsers,
    HostUse,
    ProcessUse,
    ThreadUse,
)
from cephqos_loadgen.results.host_load import DisksByOthers, disks_by_others
from cephqos_loadgen.results.repeat import MetricsRecording
from cephqos_loadgen.run_recording import host_users
from cephqos_loadgen.run_recording.host_users import (
    HostUserState,
    daemons_changed,
    disks_below,
    other_disks,
    read_host_users,
    users_between,
)

MIB = 1 << 20
INIT, SHELL, RUN, FIO, LAB, OSD, BACKUP = 1, 20, 30, 31, 40, 41, 50
KERNEL = 0x00200000


class Processes:
    """A tree of /proc: process 1, a shell that started the run, a lab with an OSD, a backup."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.add(INIT, "systemd", 0)
        self.add(SHELL, "bash", INIT)
        self.add(RUN, "cephqos", SHELL)
        self.add(LAB, "process_one", INIT)
        self.add(OSD, "ceph-osd", LAB, read=5 * MIB, written=900 * MIB)
        self.add(BACKUP, "back up) it", SHELL, read=700 * MIB)

    def add(
        self, pid: int, name: str, parent: int, *, read: int = 0, written: int = 0,
        flags: int = 0, start: int = 0, ticks: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> None:  # fmt: skip
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        rest = [0] * 50
        rest[1], rest[6], rest[19] = parent, flags, start or pid
        rest[11:15] = ticks  # user and system, then of the children that it waited for
        (folder / "stat").write_text(f"{pid} ({name}) S {' '.join(map(str, rest[1:]))}\n")
        lines = (f"read_bytes: {read}", f"write_bytes: {written}", "cancelled_write_bytes: 0")
        (folder / "io").write_text("rchar: 99\nwchar: 99\n" + "\n".join(lines) + "\n")

    def end(self, pid: int) -> None:
        for file in (self.proc / str(pid)).iterdir():
            file.unlink()
        (self.proc / str(pid)).rmdir()

    def read(self, *daemons: int) -> HostUserState:
        return read_host_users(daemons or (OSD,), self.proc, run=RUN)


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def between(before: HostUserState, after: HostUserState) -> DiskUsers:
    _, found = users_between(before, after, ["sda"], [])
    assert found is not None
    return found


def cpu(before: HostUserState, after: HostUserState) -> CpuUsers:
    return users_between(before, after, ["sda"], [])[0]


def test_what_the_cluster_and_the_run_asked_for_is_own_and_all_else_is_others(
    processes: Processes,
) -> None:
    before = processes.read()
    processes.add(OSD, "ceph-osd", LAB, read=6 * MIB, written=950 * MIB)
    processes.add(FIO, "fio", RUN, written=2 * MIB)
    processes.add(BACKUP, "back up) it", SHELL, read=730 * MIB)
    processes.add(60, "logger", INIT, written=MIB)
    found = between(before, processes.read())
    assert found.own == BytesAsked(1 * MIB, 52 * MIB)
    assert found.others == BytesAsked(30 * MIB, 1 * MIB)
    assert found.most == "back up) it"


def test_a_thread_of_the_kernel_does_what_others_asked_for(processes: Processes) -> None:
    before = processes.read()
    processes.add(70, "kworker/u8:1-loop0", 2, written=500 * MIB, flags=KERNEL)
    assert between(before, processes.read()).others == BytesAsked(0, 0)


def test_what_a_process_asked_for_before_the_phase_is_not_of_the_phase_when_it_ends_in_it(
    processes: Processes,
) -> None:
    """The parent that waited for it has its counters from then on."""
    before = processes.read()
    processes.end(BACKUP)
    processes.add(SHELL, "bash", INIT, read=740 * MIB)
    assert between(before, processes.read()).others == BytesAsked(40 * MIB, 0)


def test_an_osd_that_ends_leaves_its_counters_to_nobody_else(processes: Processes) -> None:
    """Those of all its life go to the process that waited for it, which is none of the run's."""
    before = processes.read()
    processes.end(OSD)
    processes.add(LAB, "process_one", INIT, read=5 * MIB, written=990 * MIB)
    processes.add(80, "ceph-osd", LAB, written=7 * MIB)
    after = processes.read(80)
    assert between(before, after).others == BytesAsked(0, 0)
    assert between(before, after).own == BytesAsked(0, 7 * MIB)


def test_a_number_that_a_second_process_got_does_not_count_backwards(
    processes: Processes,
) -> None:
    before = processes.read()
    processes.end(BACKUP)
    processes.add(BACKUP, "small", SHELL, read=3 * MIB, start=9999)
    processes.add(SHELL, "bash", INIT, read=700 * MIB)
    assert between(before, processes.read()).others == BytesAsked(3 * MIB, 0)


def test_an_osd_that_started_or_ended_is_noticed(processes: Processes) -> None:
    before = processes.read()
    processes.add(90, "cp", SHELL)
    assert not daemons_changed(before, processes.read())
    processes.add(80, "ceph-osd", LAB)
    assert daemons_changed(before, processes.read())


def test_without_the_kernels_counters_nothing_is_claimed(processes: Processes) -> None:
    for pid in (INIT, SHELL, RUN, LAB, OSD, BACKUP):
        (processes.proc / str(pid) / "io").unlink()
    before = processes.read()
    processes.add(BACKUP, "back up) it", SHELL, ticks=(100, 0, 0, 0))
    (processes.proc / str(BACKUP) / "io").unlink()
    found, asked = users_between(before, processes.read(), ["sda"], [])
    assert asked is None and found.others_seconds == 1.0


def test_cpu_time_of_monitors_clients_and_recording_is_own(processes: Processes) -> None:
    """Ticks are hundredths of a second."""
    processes.add(42, "ceph-mon", LAB)
    before = processes.read(OSD, 42)
    processes.add(OSD, "ceph-osd", LAB, ticks=(500, 100, 0, 0))
    processes.add(42, "ceph-mon", LAB, ticks=(20, 10, 0, 0))
    processes.add(RUN, "cephqos", SHELL, ticks=(30, 0, 200, 50))  # a client that it waited for
    processes.add(BACKUP, "back up) it", SHELL, ticks=(300, 100, 0, 0))
    processes.add(SHELL, "bash", INIT, ticks=(0, 0, 50, 0))
    found = cpu(before, processes.read(OSD, 42))
    assert found == CpuUsers(own_seconds=9.1, others_seconds=4.5, most="back up) it")


def test_cpu_time_of_threads_of_the_kernel_is_nobody_elses(processes: Processes) -> None:
    before = processes.read()
    processes.add(70, "kworker/u8:1-loop0", 2, flags=KERNEL, ticks=(0, 900, 0, 0))
    assert cpu(before, processes.read()) == CpuUsers(0.0, 0.0, "")


def test_an_osd_that_ends_leaves_its_cpu_time_to_nobody_else(processes: Processes) -> None:
    processes.add(OSD, "ceph-osd", LAB, ticks=(90_000, 0, 0, 0))
    before = processes.read()
    processes.end(OSD)
    processes.add(LAB, "process_one", INIT, ticks=(0, 0, 90_300, 0))
    processes.add(80, "ceph-osd", LAB, ticks=(100, 0, 0, 0))
    assert cpu(before, processes.read(80)) == CpuUsers(1.0, 0.0, "")


def test_processes_that_hide_their_bytes_are_counted_and_their_cpu_time_is_known(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all of other users do, for who is not root."""
    open_bytes = host_users._bytes_asked

    def hidden(proc: Path, pid: int) -> tuple[int, int]:
        if pid == BACKUP:
            raise PermissionError(13, "Permission denied")
        return open_bytes(proc, pid)

    monkeypatch.setattr(host_users, "_bytes_asked", hidden)
    before = processes.read()
    processes.add(BACKUP, "back up) it", SHELL, read=900 * MIB, ticks=(100, 0, 0, 0))
    after = processes.read()
    found = between(before, after)
    assert (found.others, found.hidden) == (BytesAsked(0, 0), 1)
    assert cpu(before, after).others_seconds == 1.0


def test_this_process_is_found_in_the_real_proc() -> None:
    before = read_host_users([])
    assert os.getpid() in before.own and before.processes[os.getpid()].parent == os.getppid()


WRITES = "import os, sys; f = os.open(sys.argv[1], 66); os.write(f, b'x' * 4194304); os.fsync(f)"


def test_what_an_ended_child_wrote_is_its_parents_in_the_real_proc(tmp_path: Path) -> None:
    before = read_host_users([], run=0)
    subprocess.run([sys.executable, "-c", WRITES, str(tmp_path / "file")], check=True)
    after = read_host_users([], run=0)
    grown = after.processes[os.getpid()].written - before.processes[os.getpid()].written
    assert grown >= 4 * MIB, "or the folder of tests is not on a disk"


# -- disks -----------------------------------------------------------------------------------------


def block(sys: Path, name: str, *, on: str = "", partition_of: str = "") -> None:
    node = sys / "class" / "block" / name
    if partition_of:
        real = sys / "devices" / partition_of / name
        real.mkdir(parents=True)
        (real / "partition").write_text("1\n")
        node.parent.mkdir(parents=True, exist_ok=True)
        node.symlink_to(real)
        return
    (node / "slaves" / on if on else node / "slaves").mkdir(parents=True)


def test_osds_on_volumes_and_partitions_are_on_the_disks_below(tmp_path: Path) -> None:
    host = Host(sys=tmp_path)
    for disk in ("sda", "sdb", "sdc", "nbd0", "zram0"):
        block(tmp_path, disk)
    block(tmp_path, "dm-0", on="sda")
    block(tmp_path, "sdb1", partition_of="sdb")
    below = disks_below(["dm-0", "sdb1"], None, host)
    assert below == ["sda", "sdb"]
    active = ["dm-0", "sda", "sdb", "sdb1", "sdc", "nbd0", "zram0"]
    assert other_disks(active, below, host) == ["sdc"]


# -- what of it was on the OSDs' disks -------------------------------------------------------------

SECONDS = 10.0


def disk(read: int = 0, written: int = 0, busy: float = 0.5) -> DiskUse:
    sectors = (read // 512, written // 512)
    return DiskUse(1, 0, sectors[0], 0, 1, 0, sectors[1], 0, 0, round(busy * SECONDS * 1e3), 0)


def use(disks: dict[str, DiskUse], own: int, others: int, *, most: str = "cp") -> HostUse:
    users = DiskUsers(
        ("sda",), tuple({"sdb"} & disks.keys()), BytesAsked(0, own), BytesAsked(0, others), most, 0
    )
    return HostUse(SECONDS, None, disks, {}, users)


def share(found: DisksByOthers | None) -> float:
    assert found is not None
    return found.share


def test_a_copy_on_the_osds_disk_is_the_part_of_the_bytes_and_of_the_time() -> None:
    found = disks_by_others(use({"sda": disk(written=100 * MIB, busy=0.6)}, 60 * MIB, 40 * MIB))
    assert found is not None
    assert found.share == pytest.approx(0.4)
    assert found.time_share == pytest.approx(0.24)
    assert found.bytes_per_second == pytest.approx(4 * MIB)


def test_the_journal_of_the_file_system_below_a_lab_is_nobody_elses_work() -> None:
    """A quiet lab as measured: OSDs ask for 41 MB/s, the disk moves 50, others ask for 0.4."""
    quiet = use({"sda": disk(written=500 * MIB, busy=0.9)}, 410 * MIB, 4 * MIB)
    assert share(disks_by_others(quiet)) == pytest.approx(0.008)
    assert findings({}, {"client": quiet}, MetricsRecording(10, 100, {}, "")) == ()


def test_a_backup_to_another_disk_is_not_on_those_of_the_osds() -> None:
    disks = {"sda": disk(written=100 * MIB), "sdb": disk(written=300 * MIB)}
    assert share(disks_by_others(use(disks, 90 * MIB, 300 * MIB))) == 0
    both = {"sda": disk(written=150 * MIB), "sdb": disk(written=300 * MIB)}
    assert share(disks_by_others(use(both, 100 * MIB, 350 * MIB))) == pytest.approx(1 / 3)


def test_what_others_send_over_the_network_is_on_no_disk_here() -> None:
    """NFS: asked for, and the OSDs' disk moved no more than OSDs asked for."""
    assert share(disks_by_others(use({"sda": disk(written=90 * MIB)}, 90 * MIB, 500 * MIB))) == 0


def test_clients_on_network_block_devices_do_not_hide_others() -> None:
    """fio writes 50 MiB to an image, which the OSD writes to its disk: asked for twice."""
    disks = {"sda": disk(written=100 * MIB), "nbd3": disk(written=50 * MIB)}
    assert share(disks_by_others(use(disks, 100 * MIB, 50 * MIB))) == 0
    busy = {**disks, "sda": disk(written=150 * MIB)}
    assert share(disks_by_others(use(busy, 100 * MIB, 150 * MIB))) == pytest.approx(2 / 3)


def test_without_osds_or_a_recording_there_is_no_figure() -> None:
    found = use({"sda": disk(written=MIB)}, 0, MIB)
    assert found.disk_users is not None
    assert disks_by_others(replace(found, disk_users=None)) is None
    elsewhere = replace(found.disk_users, osd_disks=())
    assert disks_by_others(replace(found, disk_users=elsewhere)) is None


def said(host: HostUse) -> tuple[str, ...]:
    return findings({}, {"client": host}, MetricsRecording(10, 100, {}, ""))


def test_others_on_the_osds_disks_are_a_finding_with_their_evidence() -> None:
    busy = use({"sda": disk(written=1000 * MIB, busy=0.8)}, 600 * MIB, 400 * MIB)
    assert said(busy) == (
        "client: other programs used 32% of the time of the OSDs' disks,"
        " 40.0 MiB/s at least on sda, most of it by cp",
    )


def test_a_disk_with_nothing_to_do_is_no_finding_whoever_uses_it() -> None:
    assert said(use({"sda": disk(written=4 * MIB, busy=0.02)}, MIB, 3 * MIB)) == ()


def test_cpus_and_disks_are_said_apart() -> None:
    host = CpuUse(2, 12.0, 0.0, 0.0, 0.0, 3.0, 5.0)
    found = replace(
        use({"sda": disk(written=100 * MIB)}, 60 * MIB, 40 * MIB),
        cpu=host,
        cpu_users=CpuUsers(0.0, 12.0, "make"),
    )
    assert [line.partition(",")[0] for line in said(found)] == [
        "client: other programs used 60% of this host's CPUs",
        "client: the hypervisor took 15% of this host's CPUs",
        "client: other programs used 20% of the time of the OSDs' disks",
    ]


@pytest.mark.parametrize(("others", "said_so"), [(2.5, True), (1.5, False)])
def test_cpu_by_others_is_what_was_seen_of_them_and_not_all_but_the_osds(
    others: float, said_so: bool
) -> None:
    """Twenty seconds of CPU in all, twelve of them busy, four of the OSDs: the rest is of monitors,
    recording and the kernel, but for what others used."""
    host = CpuUse(2, 12.0, 0.0, 0.0, 0.0, 0.0, 8.0)
    threads = {"tp_osd_tp": ThreadUse(4.0, 0.0, 2, 2.0)}
    seen = HostUse(
        SECONDS, host, {}, {"osd.0": ProcessUse(1, threads)},
        cpu_users=CpuUsers(7.0, others, "make"),
    )  # fmt: skip
    share = f"{others / 20:.0%}"
    words = (f"client: other programs used {share} of this host's CPUs, most of it by make",)
    assert said(seen) == (words if said_so else ())


@pytest.mark.parametrize(
    ("hidden", "words"),
    [(1, ""), (12, " (not seen: 12 processes)")],
)
def test_a_list_of_an_archive_shows_what_others_had(hidden: int, words: str) -> None:
    host = CpuUse(2, 12.0, 0.0, 2.0, 0.0, 1.0, 5.0)
    found = use({"sda": disk(written=100 * MIB)}, 60 * MIB, 40 * MIB)
    assert found.disk_users is not None
    seen = replace(
        found,
        cpu=host,
        cpu_users=CpuUsers(9.0, 3.0, "make"),
        disk_users=replace(found.disk_users, hidden=hidden),
    )
    assert _host(seen) == (
        "60% CPUs busy, 15% by others, 10% waiting for disks, 5% stolen,"
        f" 20% of the OSDs' disks' time for others{words}"
    )
    older = replace(seen, disk_users=None)
    assert _host(older).endswith("5% stolen")
