"""What a host counts of its memory and its network, and clients beside OSDs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.replay.host_tree import HostTree
from tests.unit.doctor.doctor_facts import found, host, mends

from cephqos_doctor import machine
from cephqos_doctor.cli import HOST_CHECKS
from cephqos_doctor.finding import diagnose
from cephqos_doctor.machine_facts import Machine, Received, look
from cephqos_exporter import procfs

WELL = Machine(
    uncorrected=0,
    corrected_daily=0.0,
    received={"ens1f0": Received(packets=10**9, missed=0)},
    tracked=(4000, 262144),
    aio_requests=(4000, 1048576),
    page_size=4096,
    kernel_clients=False,
    available=0.5,
)


def _write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_what_a_host_counts_is_read(tmp_path: Path) -> None:
    it = HostTree(tmp_path).host
    assert look(it) == Machine(page_size=procfs.PAGE_SIZE)
    for number, (uncorrected, corrected, seconds) in enumerate(((0, 300, 10 * 86400), (2, 5, 60))):
        controller = it.sys / f"devices/system/edac/mc/mc{number}"
        _write(controller / "ue_count", uncorrected)
        _write(controller / "ce_count", corrected)
        _write(controller / "seconds_since_reset", seconds)
    for name, hardware in (("ens1f0", True), ("lo", False)):
        for kind, count in (("packets", 10**9), ("missed_errors", 425), ("fifo_errors", 7)):
            _write(it.sys / f"class/net/{name}/statistics/rx_{kind}", count)
        if hardware:
            (it.sys / f"class/net/{name}/device").mkdir()
    _write(it.proc / "sys/net/netfilter/nf_conntrack_count", 60_000)
    _write(it.proc / "sys/net/netfilter/nf_conntrack_max", 65_536)
    _write(it.proc / "sys/fs/aio-nr", 4_096)
    _write(it.proc / "sys/fs/aio-max-nr", 65_536)
    _write(it.proc / "meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 50 kB")
    _write(it.proc / "1/mounts", "/dev/sda1 / ext4 rw 0 0\nnone /proc proc rw 0 0")
    assert look(it) == Machine(
        uncorrected=2,
        corrected_daily=35.0,
        received={"ens1f0": Received(packets=10**9, missed=425)},
        tracked=(60_000, 65_536),
        aio_requests=(4_096, 65_536),
        page_size=procfs.PAGE_SIZE,
        kernel_clients=False,
        available=0.05,
        memory=1_024_000,
    )
    _write(it.proc / "1/mounts", "10.0.0.1:6789:/ /mnt/a ceph rw,name=a 0 0")
    assert look(it).kernel_clients
    (it.proc / "1/mounts").unlink()
    assert look(it).kernel_clients is None
    (it.sys / "bus/rbd/devices/0").mkdir(parents=True)
    assert look(it).kernel_clients


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({"uncorrected": 1}, "memory-errors", "1 errors that could not be corrected", "osd out"),
        ({"corrected_daily": 11.0}, "memory-errors", "had 11 errors a day", "maintenance"),
        (
            {"received": {"eth0": Received(packets=10**9, missed=10_001)}},
            "receive-ring",
            "missed 10,001 of 1,000,000,000",
            "ethtool -G eth0 rx",
        ),
        ({"tracked": (60_000, 65_536)}, "connections-tracked", "65,536 fit", "_max=131072"),
        ({"aio_requests": (60_000, 65_536)}, "aio-requests", "of 65,536", "aio-max-nr=1048576"),
        ({"page_size": 65_536}, "page-size", "pages of 64 KiB", "getconf PAGESIZE"),
        (
            {"kernel_clients": True, "available": 0.05},
            "clients-apart",
            "5% of its memory is available",
            "osd_memory_target",
        ),
    ],
)
def test_what_is_wrong_with_a_machine_is_found(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(HOST_CHECKS, host(machine=replace(WELL, **changed)))
    assert list(findings) == [check]
    [finding] = findings[check]
    assert said in finding.problem
    assert mend in finding.mend and mends(finding)


@pytest.mark.parametrize(
    "changed",
    [
        {"corrected_daily": 10.0},
        {"received": {"eth0": Received(packets=10**9, missed=10_000)}},
        {"tracked": (52_000, 65_536)},
        {"aio_requests": (52_000, 65_536)},
        {"kernel_clients": True},
        {"available": 0.05},
    ],
)
def test_what_a_machine_can_bear_is_no_finding(changed: dict[str, Any]) -> None:
    assert found(HOST_CHECKS, host(machine=replace(WELL, **changed))) == {}


def test_what_a_machine_does_not_count_is_not_checked() -> None:
    told = diagnose("host", machine.HOST_CHECKS, host(machine=Machine()))
    assert {name for name, _ in told.skipped} == set(told.checks)
    assert found(machine.HOST_CHECKS, host(machine=Machine())) == {}


def test_a_machine_is_checked_where_no_osd_answers() -> None:
    told = diagnose("host", HOST_CHECKS, host(osds=(), machine=WELL))
    skipped = dict(told.skipped)
    assert [check.name for check in machine.HOST_CHECKS if check.name in skipped] == []
