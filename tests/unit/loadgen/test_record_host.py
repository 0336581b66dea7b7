"""What is recorded of the host's CPUs: time that heat or a control group took away."""

from pathlib import Path

import pytest

from cephqos_loadgen.record.host import difference, read_host, read_throttled


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
