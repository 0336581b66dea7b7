"""What experts look at first: settings without effect, devices and limits that do not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.doctor.doctor_facts import found, host, mends, recorded

from cephqos_doctor import tuning
from cephqos_doctor.cli import HOST_CHECKS
from cephqos_doctor.finding import diagnose
from cephqos_doctor.host_facts import (
    OsdFacts,
    disks_rotate,
    lowering_governor,
    models,
    swapped_bytes,
    wake_seconds,
)
from cephqos_doctor.machine_facts import Machine
from cephqos_exporter.daemon import Host
from cephqos_exporter.sysfs import OsdDevice


def _set(osd: OsdFacts, option: str, value: str, **entry: str) -> OsdFacts:
    """An OSD with an option that somebody set; what it makes of it may differ."""
    final = entry.get("final", value)
    differences = {**osd.config.differences, option: {"mon": value, "final": final, **entry}}
    values = {**osd.config.values, option: final}
    config = replace(osd.config, values=values, differences=differences)
    return replace(osd, config=config, options=values)


@pytest.mark.parametrize(
    ("osd", "check", "said"),
    [
        # As 18.2.7 and 20.2.4 answered after `ceph config set`.
        (
            _set(recorded(), "osd_snap_trim_sleep", "0.3", override="0", final="0"),
            "options-in-effect",
            "osd_snap_trim_sleep is set without effect: mClock replaces every sleep by 0",
        ),
        (
            _set(recorded(), "osd_scrub_cost", "1000000"),
            "options-in-effect",
            "osd_scrub_cost is set without effect",
        ),
        (
            _set(recorded(), "osd_max_backfills", "8"),
            "options-in-effect",
            "undoes every later change",
        ),
        (
            _set(recorded(), "bluestore_cache_size", "8", file="6", final="6"),
            "options-in-effect",
            "is 8 in the cluster's configuration, but ceph.conf sets 6",
        ),
        (
            _set(recorded(), "osd_mclock_scheduler_client_res", "0.4"),
            "options-in-effect",
            "osd_mclock_scheduler_client_res = 0.4 is set for a custom profile, and in force in",
        ),
        (
            replace(recorded(), rotational=True, device_class="ssd"),
            "media-as-it-is",
            "takes its device for a disk (HDD), but its CRUSH class is ssd",
        ),
        (
            replace(recorded(), rotational=False, device_class="hdd"),
            "media-as-it-is",
            "takes its device for an SSD, but its CRUSH class is hdd",
        ),
        (
            replace(recorded(), rotational=False, disks_rotate=True),
            "media-as-it-is",
            "takes its device for an SSD, but there is a disk (HDD) below it",
        ),
        (
            replace(recorded(), rotational=True, disks_rotate=False),
            "media-as-it-is",
            "takes its device for a disk (HDD), but all below it are SSDs",
        ),
        (
            replace(recorded(), rotational=True, disks_rotate=True, model="VENDOR SSD 1"),
            "media-as-it-is",
            "takes its device for a disk (HDD), but its model is VENDOR SSD 1",
        ),
        (
            _set(recorded(), "bluestore_throttle_bytes", str(1 << 32)),
            "throttles-narrow",
            "mClock cannot order what waits there",
        ),
        (
            replace(recorded(osd_mclock_profile="high_recovery_ops"), recovering=False),
            "profile-needed",
            "no recovery runs or waits",
        ),
        (
            replace(recorded(), rotational=False, cpu_limit=0.5),
            "limits-sufficient",
            "may use 0.5 CPUs; an OSD needs 1 at least",
        ),
        (
            replace(recorded(osd_memory_target=str(4 << 30)), memory_limit=4 << 30),
            "limits-sufficient",
            "may use 4.0 GiB of memory, and osd_memory_target is 4.0 GiB",
        ),
    ],
)
def test_what_does_not_fit_is_found_by_one_check_with_its_mend(
    osd: OsdFacts, check: str, said: str
) -> None:
    findings = found(HOST_CHECKS, host(osds=(osd,)))
    assert list(findings) == [check]
    [finding] = findings[check]
    assert said in finding.problem
    assert mends(finding)


def test_shares_that_outlive_their_profile_end_with_a_change_of_the_profile() -> None:
    """Removed, they would stay in force with no option that says so: docs/internals/qos.md."""
    osd = _set(recorded(), "osd_mclock_scheduler_client_lim", "0.1")
    [finding] = found(HOST_CHECKS, host(osds=(osd,)))["options-in-effect"]
    assert finding.mend.splitlines()[-2:] == [
        "ceph config set osd osd_mclock_profile custom",
        "ceph config set osd osd_mclock_profile balanced",
    ]


@pytest.mark.parametrize("version", [(21, 1, 0), ()])
def test_from_21_on_a_built_in_profile_decides(version: tuple[int, ...]) -> None:
    """Then the option has no default of the profile."""
    osd = _set(recorded("tentacle"), "osd_mclock_scheduler_client_res", "0.4", default="0")
    osd = replace(osd, version=version)
    [finding] = found(HOST_CHECKS, host(osds=(osd,)))["options-in-effect"]
    assert "set without effect: the profile balanced decides" in finding.problem
    assert mends(finding)


@pytest.mark.parametrize(
    ("buffered", "rotational"), [("true", False), ("false", False), ("true", True)]
)
def test_below_a_bcache_the_reads_of_the_db_are_to_be_tried_past_the_buffer(
    buffered: str, rotational: bool
) -> None:
    osd = replace(recorded(bluefs_buffered_io=buffered), rotational=rotational, disks_rotate=True)
    osd = replace(osd, model="VENDOR SSD 1")
    [finding] = found(HOST_CHECKS, host(osds=(osd,)))["media-as-it-is"]
    tried = "ceph config set osd.3 bluefs_buffered_io false " in finding.mend
    assert tried == (buffered == "true" and not rotational)


def test_a_disk_with_several_shards_is_found() -> None:
    one = replace(recorded(), rotational=True, device_class="hdd")
    assert one.queues is not None
    several = replace(one, queues=replace(one.queues, shards=list(one.queues.shards) * 5))
    assert "one-shard-per-disk" not in found(HOST_CHECKS, host(osds=(one,)))
    [finding] = found(HOST_CHECKS, host(osds=(several,)))["one-shard-per-disk"]
    assert mends(finding)


def test_what_is_usual_on_a_healthy_cluster_is_no_finding() -> None:
    """An SSD of 3,000 IOPS with Ceph's throttles, and a fast one with a capacity that was set."""
    slow = recorded(osd_mclock_max_capacity_iops_ssd="3000")
    fast = recorded(osd_mclock_max_capacity_iops_ssd="150000")
    for osd in (slow, replace(fast, cpu_limit=4.0)):
        assert found(HOST_CHECKS, host(osds=(replace(osd, rotational=False),))) == {}


def test_recovery_settings_that_are_allowed_and_a_profile_in_use_are_no_findings() -> None:
    allowed = recorded(osd_mclock_override_recovery_settings="true")
    allowed = _set(allowed, "osd_max_backfills", "8")
    busy = replace(recorded(osd_mclock_profile="high_recovery_ops"), recovering=True)
    unknown = replace(busy, recovering=None)
    for osd in (allowed, busy, unknown):
        assert found(HOST_CHECKS, host(osds=(osd,))) == {}


def test_more_than_one_profile_is_told_once_with_the_odd_ones() -> None:
    osds = [replace(recorded(), osd=f"osd.{number}") for number in range(5)]
    odd = replace(recorded(osd_mclock_profile="high_client_ops"), osd="osd.9")
    [finding] = found(HOST_CHECKS, host(osds=(*osds, odd)))["one-scheduler"]
    assert "more than one profile: high_client_ops on osd.9, balanced on 5" in finding.problem


@pytest.mark.parametrize(("capacity", "is_found"), [("2000", True), ("12000", False)])
def test_a_capacity_far_from_that_of_equals_is_found(capacity: str, is_found: bool) -> None:
    equal: dict[str, Any] = {"rotational": False, "model": "A"}
    osds = [replace(recorded(), osd=f"osd.{number}", **equal) for number in range(3)]
    other = recorded(osd_mclock_max_capacity_iops_ssd=capacity)
    other = replace(other, osd="osd.9", **equal)
    findings = found(HOST_CHECKS, host(osds=(*osds, other)))
    assert ("capacity-like-equals" in findings) == is_found
    if is_found:
        [finding] = findings["capacity-like-equals"]
        assert finding.subject == "osd.9"
        assert "the middle of 3 others" in finding.problem


@pytest.mark.parametrize("models", [("A", "B"), ("", "")])
def test_sata_and_nvme_are_no_equals(models: tuple[str, str]) -> None:
    osds = [
        replace(
            recorded(osd_mclock_max_capacity_iops_ssd=capacity),
            osd=f"osd.{2 * number + half}",
            rotational=False,
            model=models[half],
        )
        for number in range(4)
        for half, capacity in enumerate(("9000", "60000"))
    ]
    assert found(HOST_CHECKS, host(osds=osds)) == {}


@pytest.mark.parametrize(
    ("option", "value"),
    [("osd_mclock_scheduler_anticipation_timeout", "0.1"), ("osd_max_backfills", "8")],
)
def test_an_option_that_no_profile_decides_or_no_option_allows_is_no_finding(
    option: str, value: str
) -> None:
    osd = _set(recorded(), option, value)
    values = {k: v for k, v in osd.config.values.items() if "override_recovery" not in k}
    osd = replace(osd, config=replace(osd.config, values=values))
    assert found(HOST_CHECKS, host(osds=(osd,))) == {}


def test_what_mclock_overrides_is_not_said_to_come_from_a_file() -> None:
    both = {"file": "0.3", "override": "0", "final": "0"}
    osd = _set(recorded(), "osd_snap_trim_sleep", "0.3", **both)
    [finding] = found(HOST_CHECKS, host(osds=(osd,)))["options-in-effect"]
    assert "mClock replaces every sleep by 0" in finding.problem


def test_the_model_of_an_osd_is_that_of_all_its_disks(tmp_path: Path) -> None:
    """Its device is a logical volume, as ceph-volume makes them; its DB is on another disk."""
    sys = tmp_path / "sys"
    nodes = sys / "class/block"
    for name, model in (("sda", "DISK 1"), ("nvme0n1", "FLASH 2")):
        (nodes / name / "device").mkdir(parents=True)
        (nodes / name / "device/model").write_text(f"{model}   \n")
    (nodes / "dm-0/slaves/sda").mkdir(parents=True)
    devices = [OsdDevice("block", "dm-0"), OsdDevice("db", "nvme0n1")]
    host_of = Host(proc=tmp_path / "proc", sys=sys)
    assert models(host_of, devices) == "DISK 1 + FLASH 2"
    assert models(host_of, [*devices, OsdDevice("wal", "vda")]) == ""


@pytest.mark.parametrize(
    ("block", "turns"), [("bcache0", True), ("dm-0", False), ("loop0", None), ("vda", None)]
)
def test_what_turns_below_a_device_is_what_the_disks_there_say(
    block: str, turns: bool | None, tmp_path: Path
) -> None:
    nodes = tmp_path / "class/block"
    below = {"bcache0": ("sda", "nvme0n1"), "dm-0": ("nvme0n1",), "loop0": ("sda",)}
    for disk, said in (("sda", "1"), ("nvme0n1", "0")):
        (nodes / disk / "queue").mkdir(parents=True)
        (nodes / disk / "queue/rotational").write_text(f"{said}\n")
    for device, disks in below.items():
        for disk in disks:
            (nodes / device / "slaves" / disk).mkdir(parents=True)
    devices = [OsdDevice("db", "sda"), OsdDevice("block", block)]
    assert disks_rotate(Host(proc=tmp_path, sys=tmp_path), devices) is turns


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "devices/system/cpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("driver", "governor", "lowers"),
    [
        ("acpi-cpufreq", "ondemand", "ondemand"),
        ("acpi-cpufreq", "performance", ""),
        ("intel_pstate", "powersave", ""),
        ("intel_cpufreq", "powersave", "powersave"),
    ],
)
def test_a_governor_that_lowers_the_clock_is_told(
    driver: str, governor: str, lowers: str, tmp_path: Path
) -> None:
    files = {"cpu0/cpufreq/scaling_driver": driver, "cpu0/cpufreq/scaling_governor": governor}
    assert lowering_governor(_tree(tmp_path, files)) == lowers
    facts: Any = host(governor=lowers)
    assert ("cpus-awake" in found(tuning.HOST_CHECKS, facts)) == bool(lowers)


def test_the_deepest_sleep_that_is_allowed_counts(tmp_path: Path) -> None:
    assert wake_seconds(tmp_path) is None
    files = {
        "cpu0/cpuidle/state0/latency": "2",
        "cpu0/cpuidle/state1/latency": "133",
        "cpu0/cpuidle/state2/latency": "600",
        "cpu0/cpuidle/state2/disable": "1",
    }
    assert wake_seconds(_tree(tmp_path, files)) == 133e-6
    flash = (replace(recorded(), rotational=False),)
    assert "cpus-awake" in found(HOST_CHECKS, host(osds=flash, wake_seconds=133e-6))
    assert "cpus-awake" not in found(HOST_CHECKS, host(osds=flash, wake_seconds=50e-6))


@pytest.mark.parametrize(
    ("meminfo", "swapped"),
    [
        (
            "MemTotal:  65000 kB\nSwapCached:  9 kB\nSwapTotal:  8192 kB\nSwapFree:  2048 kB\n",
            6 << 20,
        ),
        ("SwapTotal:       0 kB\nSwapFree:        0 kB\n", 0),
        ("MemTotal:  65000 kB\n", None),
    ],
)
def test_memory_that_lies_in_swap_is_found(
    meminfo: str, swapped: int | None, tmp_path: Path
) -> None:
    (tmp_path / "meminfo").write_text(meminfo)
    assert swapped_bytes(tmp_path) == swapped
    facts = host(swapped_bytes=swapped)
    findings = found(HOST_CHECKS, facts)
    assert list(findings) == (["swap-off"] if swapped else [])
    for [finding] in findings.values():
        assert "6 MiB of its memory lie in swap" in finding.problem
        assert mends(finding)
    skipped = dict(diagnose("host", HOST_CHECKS, facts).skipped)
    assert ("swap-off" in skipped) == (swapped is None)


@pytest.mark.parametrize(
    ("gib", "in_file", "mend"),
    [
        (16, False, ""),
        (8, False, "ceph config set osd/host:HOST osd_memory_target 2576980377   #"),
        (8, True, "osd_memory_target = 2576980377 in ceph.conf of this host"),
    ],
)
def test_osds_that_together_may_take_more_memory_than_the_host_has_are_found(
    gib: int, in_file: bool, mend: str
) -> None:
    """As where it was computed for one OSD of several on a device (ceph-ansible#7435)."""
    target = "4294967296"
    osds = [replace(recorded(osd_memory_target=target), osd=name) for name in ("osd.3", "osd.4")]
    for osd in osds:
        source = {"default": target, "file" if in_file else "mon": target}
        osd.config.differences["osd_memory_target"] = source  # type: ignore[index]
    facts = host(osds=tuple(osds), machine=Machine(memory=gib << 30))
    findings = found(HOST_CHECKS, facts).get("memory-for-targets", [])
    assert len(findings) == bool(mend)
    for finding in findings:
        assert "its 2 OSDs may take 8.0 GiB (osd_memory_target), and it has 8.0" in finding.problem
        assert finding.mend.startswith(mend) and mends(finding)


def test_a_host_knows_no_crush_class_and_says_what_it_could_not_check() -> None:
    skipped = dict(diagnose("host", HOST_CHECKS, host()).skipped)
    assert skipped["media-as-it-is"] == "neither CRUSH classes nor disks are known"
