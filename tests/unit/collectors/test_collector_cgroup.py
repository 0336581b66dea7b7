"""The cgroup and host collectors on written trees: nested limits, namespaces, both versions."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.replay.host_tree import HostTree

from cephqos_exporter.cgroups import find_cgroups
from cephqos_exporter.collectors.cgroup import CgroupCollector
from cephqos_exporter.collectors.host import HostCollector
from cephqos_exporter.daemon import ReplyMissing
from cephqos_exporter.procfs import CLOCK_TICKS

from .host_views import PID, samples, view

POD = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"
CONTAINER = f"{POD}/cri-containerd-c0ffee.scope"
UNIT = r"system.slice/system-ceph\x2dc0ffee.slice/ceph-c0ffee@osd.3.service"


def write(directory: Path, files: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(f"{text}\n")


def in_cgroup(tree: HostTree, text: str) -> None:
    write(tree.host.proc / str(PID), {"cgroup": text})


def mounted(tree: HostTree, mount: Path, root: str) -> None:
    """What of a hierarchy this process sees at `mount`."""
    line = f"30 1 0:26 {root} {mount} rw - cgroup2 cgroup2 rw"
    write(tree.host.proc / "self", {"mountinfo": line})


def cpu_v2(quota: str = "max 100000", throttled: int = 0) -> dict[str, str]:
    return {
        "cpu.max": quota,
        "cpu.stat": f"usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\nnr_periods 200\n"
        f"nr_throttled {throttled}\nthrottled_usec {throttled * 50_000}\nnr_bursts 0\nburst_usec 0",
    }


def pressure(seconds: int) -> str:
    averages = "avg10=1.00 avg60=0.50 avg300=0.10"
    return f"some {averages} total={seconds}000000\nfull {averages} total=7"


def memory_v2(limit: str, used: int = 1 << 30, hits: int = 0, kills: int = 0) -> dict[str, str]:
    return {
        "memory.max": limit,
        "memory.high": "max",
        "memory.current": str(used),
        "memory.events": f"low 0\nhigh 0\nmax {hits}\noom 0\noom_kill {kills}\noom_group_kill 0",
    }


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


@pytest.fixture
def v2(tree: HostTree) -> Path:
    """A host with version 2 only, and an OSD in a container of a pod."""
    root = tree.host.sys / "fs/cgroup"
    write(root, {"cgroup.controllers": "cpuset cpu io memory", "cpu.stat": "usage_usec 1"})
    for name in ("kubepods.slice", POD, CONTAINER):
        write(root / name, {"cgroup.type": "domain", **cpu_v2(), **memory_v2("max")})
    in_cgroup(tree, f"0::/{CONTAINER}")
    return root


def shown(
    tree: HostTree, collector: CgroupCollector | None = None, time: float = 1000.0
) -> dict[str, float]:
    found = samples((collector or CgroupCollector()).collect(view(tree.host, time)))
    return {name.removeprefix("cephqos_cgroup_"): value for name, value in found.items()}


def test_an_osd_without_limits_has_no_series(tree: HostTree, v2: Path) -> None:
    assert shown(tree) == {}


def test_a_quota_is_shown_in_cpus_with_what_it_held_back(tree: HostTree, v2: Path) -> None:
    write(v2 / CONTAINER, cpu_v2("150000 100000", throttled=40))
    collector = CgroupCollector()
    shown(tree, collector, 1000)
    write(v2 / CONTAINER, cpu_v2("150000 100000", throttled=60))
    assert shown(tree, collector, 1010) == {
        "cpu_limit_cpus{}": 1.5,
        "cpu_periods_total{}": 0,
        "cpu_throttled_periods_total{}": 20,
        "cpu_throttled_seconds_total{}": 1.0,
    }


def test_the_tightest_of_nested_quotas_counts_and_all_that_throttle_are_summed(
    tree: HostTree, v2: Path
) -> None:
    write(v2 / CONTAINER, cpu_v2("400000 100000", throttled=10))
    write(v2 / POD, cpu_v2("50000 25000", throttled=20))
    collector = CgroupCollector()
    shown(tree, collector, 1000)
    write(v2 / CONTAINER, cpu_v2("400000 100000", throttled=20))
    write(v2 / POD, cpu_v2("50000 25000", throttled=40))
    found = shown(tree, collector, 1010)
    assert found["cpu_limit_cpus{}"] == 2
    assert found["cpu_throttled_periods_total{}"] == 30
    assert found["cpu_throttled_seconds_total{}"] == 1.5


def test_a_quota_that_is_set_or_taken_away_is_no_throttling(tree: HostTree, v2: Path) -> None:
    collector = CgroupCollector()
    write(v2 / CONTAINER, cpu_v2("400000 100000", throttled=10))
    write(v2 / POD, cpu_v2(throttled=5000))

    def throttled(time: float) -> float:
        shown(tree, collector, time)  # limits are read anew only at intervals
        return shown(tree, collector, time + 1)["cpu_throttled_periods_total{}"]

    assert throttled(1000) == 0
    write(v2 / POD, cpu_v2("50000 25000", throttled=5000))
    assert throttled(1100) == 0
    write(v2 / POD, cpu_v2("50000 25000", throttled=5007))
    assert throttled(1200) == 7
    write(v2 / POD, cpu_v2(throttled=5010))
    assert throttled(1300) == 10
    write(v2 / CONTAINER, cpu_v2("400000 100000", throttled=11))
    assert throttled(1400) == 11


def test_memory_is_shown_for_the_tightest_limit(tree: HostTree, v2: Path) -> None:
    write(v2 / CONTAINER, memory_v2("8589934592", used=5 << 30))
    write(v2 / POD, memory_v2("4294967296", used=4 << 30, hits=12, kills=2))
    assert shown(tree) == {
        "memory_limit_bytes{}": 4 << 30,
        "memory_used_bytes{}": 4 << 30,
        "memory_limit_hits_total{}": 12,
        "memory_oom_kills_total{}": 2,
    }


def test_memory_high_is_a_limit_as_well(tree: HostTree, v2: Path) -> None:
    files = memory_v2("4294967296")
    events = files["memory.events"].replace("high 0", "high 5")
    write(v2 / CONTAINER, {**files, "memory.high": "2147483648", "memory.events": events})
    found = shown(tree)
    assert found["memory_limit_bytes{}"] == 2 << 30
    assert found["memory_limit_hits_total{}"] == 5


def test_limits_of_devices_are_named_as_the_kernel_names_them(tree: HostTree, v2: Path) -> None:
    tree.disk("sdb", "8:16")
    write(v2 / CONTAINER, {"io.max": "8:16 rbps=max wbps=1048576 riops=max wiops=500"})
    write(v2 / POD, {"io.max": "8:16 rbps=max wbps=max riops=200 wiops=120\n7:99 rbps=5"})
    assert shown(tree) == {
        'io_limit_ops_per_second{device="sdb",op="read"}': 200,
        'io_limit_ops_per_second{device="sdb",op="write"}': 120,
        'io_limit_bytes_per_second{device="sdb",op="write"}': 1048576,
    }


def test_what_a_limited_device_did_is_counted_where_the_limit_is(tree: HostTree, v2: Path) -> None:
    tree.disk("sdb", "8:16")
    write(v2 / CONTAINER, {"io.stat": "8:16 rbytes=1 wbytes=1 rios=1 wios=1"})
    done = "8:0 rbytes=7 wbytes=7 rios=7 wios=7\n8:16 rbytes=8 wbytes=9 rios=3 wios=4"
    write(v2 / POD, {"io.max": "8:16 rbps=500 wbps=max riops=max wiops=120", "io.stat": done})
    found = shown(tree)
    assert found['io_ops_total{device="sdb",op="write"}'] == 4
    assert found['io_bytes_total{device="sdb",op="read"}'] == 8
    assert len(found) == 4


def test_a_file_with_lines_of_many_devices_is_read_to_its_end(tree: HostTree, v2: Path) -> None:
    tree.disk("sdb", "8:16")
    lines = [f"253:{n} rbytes={n} wbytes={n} rios={n} wios={n} dbytes=0 dios=0" for n in range(99)]
    done = "\n".join([*lines, "", "8:16", "8:16 rbytes=8 wbytes=9 rios=3 wios=4"])
    write(v2 / POD, {"io.max": "8:16 rbps=max wbps=max riops=max wiops=120", "io.stat": done})
    assert shown(tree)['io_ops_total{device="sdb",op="write"}'] == 4


def test_a_file_that_lacks_a_count_costs_a_scrape_and_then_its_series(
    tree: HostTree, v2: Path
) -> None:
    collector = CgroupCollector()
    write(v2 / CONTAINER, cpu_v2("150000 100000"))
    shown(tree, collector, 1000)
    write(v2 / CONTAINER, {"cpu.stat": "usage_usec 5000"})
    assert shown(tree, collector, 1001) == {}
    assert shown(tree, collector, 1002) == {"cpu_limit_cpus{}": 1.5}


def test_pressure_is_the_cgroups_own(tree: HostTree, v2: Path) -> None:
    files = {f"{name}.pressure": pressure(n) for n, name in enumerate(("cpu", "memory", "io"), 3)}
    write(v2 / CONTAINER, files)
    assert shown(tree) == {
        'pressure_seconds_total{resource="cpu"}': 3,
        'pressure_seconds_total{resource="memory"}': 4,
        'pressure_seconds_total{resource="io"}': 5,
    }


def test_the_root_cgroup_has_no_pressure_of_an_osd(tree: HostTree, v2: Path) -> None:
    write(v2, {"cpu.pressure": pressure(9)})
    in_cgroup(tree, "0::/")
    assert shown(tree) == {}


def v1(tree: HostTree, path: str) -> Path:
    """Version 1 with the version 2 hierarchy beside it, as systemd has it."""
    root = tree.host.sys / "fs/cgroup"
    unlimited = {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}
    for place in ("", path):
        write(root / "cpu,cpuacct" / place, unlimited)
        write(root / "memory" / place, {"memory.limit_in_bytes": "9223372036854771712"})
        write(root / "blkio" / place, {"blkio.throttle.write_iops_device": ""})
        write(root / "unified" / place, {"cgroup.procs": str(PID)})
    (root / "cpu").symlink_to("cpu,cpuacct")
    names = ("9:name=systemd", "7:blkio", "4:memory", "2:cpu,cpuacct", "0:")
    in_cgroup(tree, "\n".join(f"{name}:/{path}" for name in names))
    return root


def test_version_1_shows_the_same(tree: HostTree) -> None:
    root = v1(tree, UNIT)
    assert shown(tree) == {}
    tree.disk("sdb", "8:16")
    write(
        root / "cpu,cpuacct" / UNIT,
        {
            "cpu.cfs_quota_us": "50000",
            "cpu.stat": "nr_periods 80\nnr_throttled 40\nthrottled_time 2000000000",
        },
    )
    write(
        root / "memory" / UNIT,
        {
            "memory.limit_in_bytes": "4294967296",
            "memory.usage_in_bytes": "1073741824",
            "memory.failcnt": "17",
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
        },
    )
    write(root / "blkio" / UNIT, {"blkio.throttle.write_iops_device": "8:16 600"})
    done = {"blkio.throttle.io_serviced_recursive": "8:16 Read 5\n8:16 Write 77\nTotal 82"}
    write(root / "blkio" / UNIT, done)
    own = {"cgroup.type": "domain", "memory.pressure": pressure(6)}
    write(root / "unified" / UNIT, own)
    collector = CgroupCollector()
    shown(tree, collector, 1000)
    more = "nr_periods 90\nnr_throttled 45\nthrottled_time 2500000000"
    write(root / "cpu,cpuacct" / UNIT, {"cpu.stat": more})
    assert shown(tree, collector, 1001) == {
        "cpu_limit_cpus{}": 0.5,
        "cpu_periods_total{}": 10,
        "cpu_throttled_periods_total{}": 5,
        "cpu_throttled_seconds_total{}": 0.5,
        "memory_limit_bytes{}": 4 << 30,
        "memory_used_bytes{}": 1 << 30,
        "memory_limit_hits_total{}": 17,
        "memory_oom_kills_total{}": 1,
        'io_limit_ops_per_second{device="sdb",op="write"}': 600,
        'io_ops_total{device="sdb",op="write"}': 77,
        'pressure_seconds_total{resource="memory"}': 6,
    }


def test_an_old_kernel_without_counts_of_oom_kills_shows_the_rest(tree: HostTree) -> None:
    root = v1(tree, UNIT)
    limited = {"memory.limit_in_bytes": "4096", "memory.usage_in_bytes": "12"}
    control = {"memory.failcnt": "0", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0"}
    write(root / "memory" / UNIT, {**limited, **control})
    assert set(shown(tree)) == {
        "memory_limit_bytes{}",
        "memory_used_bytes{}",
        "memory_limit_hits_total{}",
    }


# A cgroup namespace: the exporter's own root is four levels below that of the host.
@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/", f"/{CONTAINER}"),  # no namespace
        ("/../../../..", f"/../../../../{CONTAINER}"),  # nothing in common but the host
        ("/../../../..", "/../../kubepods-burstable-pod1.slice/cri-containerd-c0ffee.scope"),
        ("/../../../..", "/../cri-containerd-c0ffee.scope"),  # a container of the same pod
    ],
)
def test_an_osd_outside_of_the_exporters_namespace_is_found_in_the_hosts_tree(
    tree: HostTree, v2: Path, root: str, path: str
) -> None:
    write(v2 / CONTAINER, cpu_v2("150000 100000"))
    mounted(tree, v2, root)
    in_cgroup(tree, f"0::{path}")
    assert shown(tree)["cpu_limit_cpus{}"] == 1.5


def test_a_container_without_a_namespace_sees_its_own_part_only(tree: HostTree) -> None:
    """Docker with version 1: paths are the host's, and the mount is the container's."""
    root = v1(tree, "")
    write(root / "cpu,cpuacct", {"cpu.cfs_quota_us": "300000"})
    write(root / "cpu,cpuacct", {"cpu.stat": "nr_periods 1\nnr_throttled 0\nthrottled_time 0"})
    mounted(tree, root / "cpu,cpuacct", "/docker/c0ffee")
    in_cgroup(tree, "2:cpu,cpuacct:/docker/c0ffee")
    assert shown(tree)["cpu_limit_cpus{}"] == 3
    in_cgroup(tree, "2:cpu,cpuacct:/docker/another")
    assert shown(tree) == {}


@pytest.mark.parametrize("path", ["/../other", "/", "/gone (deleted)", "/.."])
def test_a_cgroup_that_is_not_in_sight_is_absent(tree: HostTree, v2: Path, path: str) -> None:
    write(v2, {"cpu.max": "10000 100000"})  # not the OSD's
    mounted(tree, v2, "/../..") if path == "/" else None
    groups = find_cgroups(tree.host, f"0::{path}")
    assert groups.cpu.levels == ()


def test_two_cgroups_of_one_name_are_not_guessed_between(tree: HostTree, v2: Path) -> None:
    for pod in ("pod1", "pod2"):
        write(v2 / "kubepods.slice" / pod / "osd", cpu_v2("1000 100000"))
    mounted(tree, v2, "/../../..")
    assert find_cgroups(tree.host, "0::/../osd").cpu.levels == ()


def test_limits_are_read_at_intervals_and_counters_at_every_scrape(
    tree: HostTree, v2: Path
) -> None:
    collector = CgroupCollector(interval=30.0)
    write(v2 / CONTAINER, cpu_v2("150000 100000", throttled=1))
    shown(tree, collector, 1000)
    write(v2 / CONTAINER, cpu_v2("300000 100000", throttled=8))
    for time in (1010, 1020):
        now = shown(tree, collector, time)
        assert (now["cpu_limit_cpus{}"], now["cpu_throttled_periods_total{}"]) == (1.5, 7)
    assert shown(tree, collector, 1030)["cpu_limit_cpus{}"] == 3
    write(v2 / CONTAINER, cpu_v2())
    shown(tree, collector, 1040)
    shown(tree, collector, 1050)
    assert shown(tree, collector, 1060) == {}


def test_a_cgroup_that_vanishes_costs_a_scrape_and_the_next_finds_the_new_one(
    tree: HostTree, v2: Path
) -> None:
    collector = CgroupCollector()
    write(v2 / CONTAINER, cpu_v2("150000 100000"))
    shown(tree, collector, 1000)
    # What stays open of a cgroup that has gone gives an error in the kernel; here, nothing.
    (v2 / CONTAINER / "cpu.stat").write_text("")
    (v2 / CONTAINER / "cpu.max").unlink()
    in_cgroup(tree, f"0::/{POD}/again")
    write(v2 / POD / "again", cpu_v2("50000 100000"))
    assert shown(tree, collector, 1001) == {}
    assert shown(tree, collector, 1002)["cpu_limit_cpus{}"] == 0.5


@pytest.mark.parametrize("text", ["", "nonsense", "0", "max", "-1 100000", "50000 0", "1e3 1e3"])
def test_what_is_no_quota_is_absent(tree: HostTree, v2: Path, text: str) -> None:
    write(v2 / CONTAINER, cpu_v2(text))
    assert shown(tree) == {}


def test_a_kernel_without_cgroups_shows_nothing_and_fails_nothing(tree: HostTree) -> None:
    assert shown(tree) == {}


def test_files_that_may_not_be_read_are_absent(
    tree: HostTree, v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(v2 / CONTAINER, {**cpu_v2("150000 100000", throttled=3), **memory_v2("4096")})
    opened = os.open

    def refused(path: str | Path, *more: int) -> int:
        if Path(path).name in ("cpu.stat", "memory.max"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *more)

    monkeypatch.setattr(os, "open", refused)
    assert shown(tree) == {"cpu_limit_cpus{}": 1.5}


def test_an_osd_whose_process_is_unknown_is_a_failure_with_its_reason(tree: HostTree) -> None:
    with pytest.raises(ReplyMissing, match="pid: unknown"):
        samples(CgroupCollector().collect(view(tree.host, pid=None)))


# user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
LINE = "cpu  600 100 200 9000 50 10 90 300 5 5"


def of_host(tree: HostTree) -> dict[str, float]:
    return samples(HostCollector(host=tree.host).finish())


def test_cpu_time_is_what_all_programs_used_and_what_was_stolen(tree: HostTree) -> None:
    lines = (LINE, "cpu0 300 50", "cpu1 300 50", "intr 12 0 0", "ctxt 9")
    (tree.host.proc / "stat").write_text("\n".join(lines) + "\n")
    assert of_host(tree) == {
        "cephqos_host_cpus{}": 2,
        'cephqos_host_cpu_seconds_total{mode="used"}': 1000 / CLOCK_TICKS,
        'cephqos_host_cpu_seconds_total{mode="steal"}': 300 / CLOCK_TICKS,
    }


def test_pressure_is_shown_for_what_the_kernel_counts(tree: HostTree) -> None:
    pressure = tree.host.proc / "pressure"
    pressure.mkdir()
    (pressure / "cpu").write_text("some avg10=9 avg60=9 avg300=9 total=2500000\n")
    (pressure / "io").write_text("")
    assert of_host(tree) == {'cephqos_host_pressure_seconds_total{resource="cpu"}': 2.5}


@pytest.mark.parametrize("text", [None, "btime 1700000000\n"])
def test_a_tree_without_either_shows_nothing(tree: HostTree, text: str | None) -> None:
    if text:
        (tree.host.proc / "stat").write_text(text)
    assert of_host(tree) == {}
