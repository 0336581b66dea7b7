"""What is recorded of the host's CPUs: time that heat or a control group took away."""

from pathlib import Path

import pytest

from cephqos_loadgen.results.host import DiskUse, HostUse
from cephqos_loadgen.run_recording.host import (
    HostState,
    difference,
    parse_diskstats,
    read_host,
    read_throttled,
)


def tree(folder: Path, *, heat_ms: int, group_usec: int | None) -> Path:
    for cpu in (0, 1):
        heat = folder / f"devices/system/cpu/cpu{cpu}/thermal_throttle"
        heat.mkdir(parents=True, exist_ok=True)
        (heat / "core_throttle_total_time_ms").write_text(f"{heat_ms}\n")
    if group_usec is not None:
        group = folder / "fs/cgroup"
        group.mkdir(parents=True, exist_ok=True)
        (group / "cpu.stat").write_text(f"usage_usec 77\nthrottled_usec {group_usec}\n")
    return folder


def test_heat_and_the_control_group_are_added_up(tmp_path: Path) -> None:
    sys = tree(tmp_path, heat_ms=1500, group_usec=250_000)
    assert read_throttled(sys) == pytest.approx(2 * 1.5 + 0.25)


def test_a_host_that_reports_neither_has_none(tmp_path: Path) -> None:
    assert read_throttled(tmp_path) == 0.0
    assert read_throttled(tree(tmp_path, heat_ms=0, group_usec=None)) == 0.0


def test_a_phase_has_what_was_lost_while_it_ran(tmp_path: Path) -> None:
    before = read_host({}, sys=tree(tmp_path, heat_ms=1000, group_usec=0))
    after = read_host({}, sys=tree(tmp_path, heat_ms=1400, group_usec=500_000))
    use = difference(before, after, 10.0)
    assert use.cpu and use.cpu.throttled_seconds == pytest.approx(1.3)


_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
QUIET_CPU = (1.0, 0.0, 1.0, 10.0, 0.5, 0.0, 0.0, 0.0)  # seconds
# Milliseconds are 32 bits wide in /proc/diskstats; those of requests add up over a deep queue.
NEARLY = (1 << 32) - 1000


def between(before: str, after: str, cpu: tuple[float, ...] = QUIET_CPU) -> HostUse:
    """`before` and `after` are lines of /proc/diskstats, of one disk."""
    first, last = (
        HostState(
            dict(zip(_CPU, spent, strict=True)), 0.0, parse_diskstats(f"8 0 sda {disk}"), {}, {}
        )
        for spent, disk in ((QUIET_CPU, before), (cpu, after))
    )
    return difference(first, last, 10.0)


def test_milliseconds_of_a_disk_that_began_again_at_zero_are_counted_on() -> None:
    use = between(
        f"100 1 800 {NEARLY} 200 2 1600 {NEARLY} 3 {NEARLY} {NEARLY}",
        "150 1 900 1000 260 2 1700 2000 4 3000 4000",
    )
    assert use.disks["sda"] == DiskUse(50, 0, 100, 2000, 60, 0, 100, 3000, 4, 4000, 5000)


def test_a_disk_that_was_made_anew_has_what_it_did_since() -> None:
    """As a device of the network that was attached again: no figure is below zero, or of days."""
    use = between("100 1 800 500 200 2 1600 500 3 500 500", "5 0 40 9 6 0 48 8 1 7 6")
    assert use.disks["sda"] == DiskUse(5, 0, 40, 9, 6, 0, 48, 8, 1, 7, 6)


def test_time_of_cpus_that_the_kernel_takes_back_is_not_below_zero() -> None:
    """The kernel says of iowait that it may fall."""
    use = between("1 0 8 1 1 0 8 1 0 1 1", "2 0 8 1 1 0 8 1 0 1 1", (2, 0, 1, 9.9, 0.4, 0, 0, 0))
    assert use.cpu is not None
    assert (use.cpu.iowait_seconds, use.cpu.idle_seconds, use.cpu.user_seconds) == (0.0, 0.0, 1.0)
