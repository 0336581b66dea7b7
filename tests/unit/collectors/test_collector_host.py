"""The host collector: CPU time of the whole host, and its pressure where the kernel counts it."""

from pathlib import Path

import pytest
from tests.replay.host_tree import HostTree

from cephqos_exporter.collectors.host import HostCollector
from cephqos_exporter.procfs import CLOCK_TICKS

from .host_views import samples

# user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
LINE = "cpu  600 100 200 9000 50 10 90 300 5 5"


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def shown(tree: HostTree) -> dict[str, float]:
    return samples(HostCollector(host=tree.host).finish())


def test_cpu_time_is_what_all_programs_used_and_what_was_stolen(tree: HostTree) -> None:
    lines = (LINE, "cpu0 300 50", "cpu1 300 50", "intr 12 0 0", "ctxt 9")
    (tree.host.proc / "stat").write_text("\n".join(lines) + "\n")
    assert shown(tree) == {
        "cephqos_host_cpus{}": 2,
        'cephqos_host_cpu_seconds_total{mode="used"}': 1000 / CLOCK_TICKS,
        'cephqos_host_cpu_seconds_total{mode="steal"}': 300 / CLOCK_TICKS,
    }


def test_pressure_is_shown_for_what_the_kernel_counts(tree: HostTree) -> None:
    pressure = tree.host.proc / "pressure"
    pressure.mkdir()
    (pressure / "cpu").write_text("some avg10=9 avg60=9 avg300=9 total=2500000\n")
    (pressure / "io").write_text("")
    assert shown(tree) == {'cephqos_host_pressure_seconds_total{resource="cpu"}': 2.5}


def test_a_tree_without_either_shows_nothing(tree: HostTree) -> None:
    assert shown(tree) == {}
