"""What the disks of a host's OSDs show: a write cache that is on, and discards that take long."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.replay.host_tree import HostTree
from tests.unit.doctor.doctor_facts import found, host, mends, recorded

from cephqos_doctor import disks
from cephqos_doctor.cli import HOST_CHECKS
from cephqos_doctor.finding import diagnose
from cephqos_doctor.host_facts import HostFacts, cached_disks, discard_seconds
from cephqos_exporter.sysfs import OsdDevice

# A volume on a disk that turns, with the DB on flash.
DEVICES = [OsdDevice("block", "dm-0"), OsdDevice("db", "nvme0n1")]


def _skipped(facts: HostFacts) -> dict[str, str]:
    return dict(diagnose("host", disks.HOST_CHECKS, facts).skipped)


def _disk(tree: HostTree, cache: str = "write back", scsi: bool = True, turns: bool = True) -> None:
    tree.disk("sda", "8:0", (0,) * 11 + (4, 0, 0, 300, 9, 9), rotational=turns, write_cache=cache)
    tree.disk("nvme0n1", "259:0", (0,) * 11 + (4, 0, 0, 2, 9, 9))
    tree.mapped("dm-0", "253:0", ["sda"])
    if scsi:
        (tree.host.sys / "class/block/sda/device/scsi_disk/0:0:0:0").mkdir(parents=True)


@pytest.mark.parametrize(
    ("disk", "known"),
    [
        ({}, ("sda",)),
        ({"cache": "write through"}, ()),
        ({"scsi": False}, None),  # a virtual machine's: the cache is its host's
        ({"turns": False}, None),
    ],
)
def test_the_write_cache_of_disks_that_turn_is_read_below_volumes(
    disk: dict[str, Any], known: tuple[str, ...] | None, tmp_path: Path
) -> None:
    tree = HostTree(tmp_path)
    _disk(tree, **disk)
    assert cached_disks(tree.host, DEVICES) == known
    facts = host(osds=(replace(recorded(), cached_disks=known),))
    assert ("write-cache" in found(HOST_CHECKS, facts)) == bool(known)
    assert ("write-cache" in _skipped(facts)) == (known is None)


def test_a_write_cache_is_told_once_with_a_disk_to_try_it_on() -> None:
    osds = [replace(recorded(), osd=f"osd.{n}", cached_disks=(f"sd{n}",)) for n in range(7)]
    findings = found(HOST_CHECKS, host(osds=osds))
    assert list(findings) == ["write-cache"]
    [finding] = findings["write-cache"]
    assert "(sd0, sd1, sd2, sd3, sd4 and 2 more)" in finding.problem
    assert "tee /sys/block/sd0/device/scsi_disk/*/cache_type" in finding.mend
    assert "osd.0" in finding.mend and mends(finding)


def test_discards_are_timed_on_the_disk_where_they_take_longest(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    assert discard_seconds(tree.host, DEVICES) is None
    _disk(tree)
    assert discard_seconds(tree.host, DEVICES) == 0.075
    assert discard_seconds(tree.host, DEVICES[1:]) == 0.0005
    tree.count("nvme0n1", "259:0", (9,) * 11)  # as a kernel that counts no discards
    assert discard_seconds(tree.host, DEVICES[1:]) is None


@pytest.mark.parametrize(
    ("on", "seconds", "is_found", "is_skipped"),
    [
        ("true", 0.075, True, False),
        ("true", 0.0005, False, False),
        ("true", None, False, True),
        ("false", 0.075, False, False),  # of something else on this disk
        ("false", None, False, False),
    ],
)
def test_discards_that_take_long_are_found_while_they_are_on(
    on: str, seconds: float | None, is_found: bool, is_skipped: bool
) -> None:
    osd = replace(recorded(bdev_enable_discard=on), discard_seconds=seconds)
    facts = host(osds=(osd,))
    findings = found(HOST_CHECKS, facts)
    assert list(findings) == (["discards"] if is_found else [])
    for [finding] in findings.values():
        assert "has taken 75 ms on average" in finding.problem
        assert mends(finding)
    assert ("discards" in _skipped(facts)) == is_skipped


def test_an_osd_that_does_not_know_discards_is_not_judged() -> None:
    osd = recorded()
    osd = replace(osd, options={k: v for k, v in osd.options.items() if "discard" not in k})
    assert "discards" in _skipped(host(osds=(osd,)))
