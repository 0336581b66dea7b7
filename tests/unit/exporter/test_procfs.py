"""Reading /proc: its formats, and what stays open."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.units import format_cpu_list, parse_cpu_list
from cephqos_exporter.procfs import (
    Descriptors,
    Mount,
    mount_of,
    parse_mountinfo,
    parse_stat,
    parse_status,
    read_all,
    read_once,
)


def test_stat_of_this_very_process_agrees_with_psutil() -> None:
    stat = parse_stat(read_once("/proc/self/stat"))
    process = psutil.Process()
    with process.oneshot():
        assert stat.name.decode() == process.name()
        assert stat.threads == process.num_threads()
        assert stat.user / os.sysconf("SC_CLK_TCK") == pytest.approx(
            process.cpu_times().user, abs=0.5
        )
        assert stat.cpu in range(psutil.cpu_count() or 1)
        assert stat.resident_pages * os.sysconf("SC_PAGE_SIZE") == pytest.approx(
            process.memory_info().rss, rel=0.1
        )


def test_a_process_that_is_stopped_is_told_from_one_that_sleeps() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeps:
        try:
            assert not parse_stat(read_once(f"/proc/{sleeps.pid}/stat")).stopped
            sleeps.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, sleeps.pid, os.WSTOPPED)
            assert parse_stat(read_once(f"/proc/{sleeps.pid}/stat")).stopped
        finally:
            sleeps.kill()


def test_a_thread_name_may_hold_blanks_and_parentheses() -> None:
    raw = read_once("/proc/self/stat")
    name = raw[raw.index(b"(") + 1 : raw.rindex(b")")]
    assert parse_stat(raw.replace(name, b"a) R 1 (b", 1)).name == b"a) R 1 (b"
    assert parse_stat(raw.replace(name, b"a) R 1 (b", 1))[1:] == parse_stat(raw)[1:]


def test_status_of_this_thread_agrees_with_the_system_calls() -> None:
    status = parse_status(read_once(f"/proc/self/task/{threading.get_native_id()}/status"))
    assert set(parse_cpu_list(status.allowed)) == os.sched_getaffinity(0)
    switches = psutil.Process().num_ctx_switches()
    assert 0 < status.voluntary + status.involuntary <= switches.voluntary + switches.involuntary


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("3", (3,)),
        ("0-3,8,10-11", (0, 1, 2, 3, 8, 10, 11)),
        ("0-2,56-58\n", (0, 1, 2, 56, 57, 58)),
    ],
)
def test_a_cpu_list_is_read(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@given(st.frozensets(st.integers(0, 1023), max_size=40))
def test_a_cpu_list_written_reads_back_the_same(cpus: frozenset[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


def test_a_mount_is_found_by_the_longest_point_and_the_last_of_equal_ones() -> None:
    mounts = parse_mountinfo(
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "21 20 8:2 / /var rw,noatime shared:3 - xfs /dev/sda2 rw\n"
        "22 20 0:44 /sub /var/lib/ceph rw - btrfs /dev/sdb rw\n"
        "23 20 8:3 / /var/lib/ceph rw - ext4 /dev/sda3 rw\n"
        "24 20 8:4 / /mnt/with\\040blank rw - ext4 /dev/sda4 rw\n"
        "garbage\n"
    )
    assert mount_of("/var/lib/ceph/osd/block", mounts) == Mount("8:3", "/var/lib/ceph", "/dev/sda3")
    assert mount_of("/var/libX", mounts) == Mount("8:2", "/var", "/dev/sda2")
    assert mount_of("/variable", mounts) == Mount("8:1", "/", "/dev/sda1")
    assert mount_of("/mnt/with blank/file", mounts) == Mount("8:4", "/mnt/with blank", "/dev/sda4")
    assert mount_of("/var", []) is None


def test_no_more_descriptors_stay_open_than_allowed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    descriptors = Descriptors(2)
    kept = [descriptors.open(str(file)) for _ in range(3)]
    assert kept[0] >= 0
    assert kept[1] >= 0
    assert kept[2] == -1
    descriptors.close(kept[2])
    descriptors.close(kept[0])
    again = descriptors.open(str(file))
    assert again >= 0
    descriptors.close(again)
    descriptors.close(kept[1])
    assert descriptors.used == 0


def test_running_out_of_descriptors_costs_speed_and_not_the_scrape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descriptors = Descriptors(100)

    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    assert descriptors.open("/proc/self/stat") == -1
    assert descriptors.limit == 0


def test_a_missing_file_is_an_error_and_takes_no_place() -> None:
    descriptors = Descriptors(5)
    with pytest.raises(FileNotFoundError):
        descriptors.open("/proc/self/no-such-file")
    assert descriptors.used == 0


def test_without_a_number_descriptors_leave_room_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    assert Descriptors().limit == 512
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 4096))
    assert Descriptors().limit == 0


def test_a_long_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "long"
    file.write_bytes(b"0123456789" * 30_000)
    assert read_all(str(file)) == file.read_bytes()
    assert len(read_once(str(file))) == 4096
