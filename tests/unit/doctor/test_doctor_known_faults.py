"""Releases with a fault that a setting lets bite."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.doctor.doctor_facts import found, host, mends, recorded

from cephqos_doctor import known_faults
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import diagnose
from cephqos_doctor.host_facts import OsdFacts, version_of

QUICK_FIX = "bluestore_fsck_quick_fix_on_mount"
SHARED_BLOBS = "bluestore_elastic_shared_blobs"
SHARED = {SHARED_BLOBS: "true"}
UNITS = {"bluefs_shared_alloc_size": "4096"}


def osd(version: str, **options: str) -> OsdFacts:
    it = recorded(**options)
    return replace(it, version=version_of(version))


@pytest.mark.parametrize("release", ["pacific", "reef", "tentacle"])
def test_real_osds_say_their_version_and_are_clean(release: str) -> None:
    facts = host(osds=(recorded(release),))
    [one] = facts.osds
    assert len(one.version) == 3 and one.version[0] == one.release
    assert found(known_faults.CHECKS, facts) == {}
    assert diagnose("it", known_faults.CHECKS, facts).skipped == ()


OLD_DISCARDS = {"bdev_enable_discard": "true", "bdev_async_discard": "true"}
DISCARDS = {"bdev_enable_discard": "true", "bdev_async_discard_threads": "1"}


@pytest.mark.parametrize(
    ("versions", "clean", "options"),
    [
        (("16.2.0", "16.2.6"), ("16.2.7", "18.2.7"), {QUICK_FIX: "true"}),
        (("19.2.0", "19.2.3-pve1", "20.2.0"), ("19.1.1", "19.2.4", "20.2.1"), SHARED),
        (("17.2.8", "18.2.5", "18.2.6"), ("17.2.7", "17.2.9", "18.2.4", "18.2.7"), {}),
        (("18.2.5", "18.2.7", "19.2.3"), ("18.2.4", "18.2.8", "19.2.4"), UNITS),
        (("16.2.15", "18.2.7", "19.2.2"), ("18.2.8", "19.2.3"), DISCARDS),
        (("18.2.7",), ("18.2.8",), OLD_DISCARDS),
        (("18.2.3",), ("18.2.2", "18.2.4"), {}),
        (("17.2.0", "17.2.3"), ("17.2.4",), {}),  # with mClock, as recorded
    ],
)  # fmt: skip
def test_a_release_with_a_fault_is_found_where_an_option_lets_it_do_harm(
    versions: Sequence[str], clean: Sequence[str], options: dict[str, str]
) -> None:
    def harms(version: str, **options: str) -> list[str]:
        facts = host(osds=(osd(version, **options),))
        findings = found(known_faults.CHECKS, facts).get("release-faults", [])
        assert all(mends(one) for one in findings)
        return [one.problem.partition(", ")[2] for one in findings]

    for version in versions:
        only_with = set(harms(version, **options)) - set(harms(version) if options else ())
        assert len(only_with) == 1, version
    for version in clean:
        assert set(harms(version, **options)) == set(harms(version)), version
        assert options or not harms(version), version


def test_a_fault_of_mclock_is_none_under_wpq() -> None:
    facts = host(osds=(osd("17.2.3", osd_op_queue="wpq"),))
    assert found(known_faults.CHECKS, facts) == {}


def test_a_release_without_the_option_is_clean_and_one_that_hides_it_is_not_judged() -> None:
    """16.2 to 18.2 have no shared blobs of this kind."""
    for version, why in (("18.2.7", ""), ("19.2.1", f"{SHARED_BLOBS} is not known")):
        facts = host(osds=(osd(version),))
        assert SHARED_BLOBS not in facts.osds[0].options
        skipped = dict(diagnose("it", known_faults.CHECKS, facts).skipped)
        assert skipped.get("release-faults", "") == why
    told = diagnose("it", known_faults.CHECKS, host(osds=(osd(""),)))
    assert told.skipped == (("release-faults", "no OSD's release is known"),)


EC = {"pools": [{"pool_name": "ecp", "flags_names": "hashpspool,ec_optimizations"}]}
RBD = {"pools": [{"pool_name": "ecp", "flags_names": "ec_overwrites,ec_optimizations"}]}
REPLICATED = {"pools": [{"pool_name": "x", "flags_names": "hashpspool"}]}
GROWS = {"pools": [{"pool_name": "y", "pg_autoscale_mode": "on"}]}
STAYS = {"pools": [{"pool_name": "y", "pg_autoscale_mode": "warn"}]}
IPV6 = {
    "osds": [{"up": 1, "public_addrs": {"addrvec": [{"type": "v2", "addr": "[fd00::1]:6800"}]}}]
}
IPV4 = {"osds": [{"up": 1, "public_addrs": {"addrvec": [{"type": "v2", "addr": "10.0.0.1:6800"}]}}]}
FILES = {"fsmap": {"by_rank": [{"rank": 0}]}}


def says(code: str) -> dict[str, Any]:
    return {"health": {"checks": {code: {}}}}


@pytest.mark.parametrize(
    ("versions", "shown", "subjects"),
    [
        ({"osd": "20.2.0"}, EC, ["pool ecp"]),
        ({"osd": "20.2.0"}, RBD, ["pool ecp"]),
        ({"osd": "20.2.0"}, REPLICATED, []),
        ({"osd": "20.2.2"}, EC, ["pool ecp"]),
        ({"osd": "20.2.3"}, EC, []),
        ({"osd": "20.2.0"}, FILES, ["CephFS"]),
        ({"osd": "20.2.1"}, FILES, []),
        ({"osd": "20.2.0"}, {"fsmap": {"by_rank": []}}, []),
        ({"osd": "16.2.10"}, GROWS, ["pool y"]),
        ({"osd": "17.2.3"}, GROWS, ["pool y"]),
        ({"osd": "17.2.4"}, GROWS, []),
        ({"osd": "16.2.10"}, STAYS, []),
        ({"rgw": "19.2.1"}, {}, ["RGW"]),
        ({"rgw": "19.2.2", "osd": "19.2.1"}, {}, []),
        ({"mgr": "16.2.8"}, {}, ["the managers"]),
        ({"mgr": "17.2.2"}, {}, ["the managers"]),
        ({"mon": "17.2.9"}, says("OSD_UNREACHABLE") | IPV6, ["OSD_UNREACHABLE"]),
        ({"mon": "17.2.9"}, says("OSD_UNREACHABLE") | IPV4, []),
        ({"mon": "17.2.9"}, says("OSD_DOWN") | IPV6, []),
        ({"mon": "18.2.6"}, says("OSD_UNREACHABLE") | IPV6, []),
        ({"mgr": "20.2.3", "osd": "19.2.6"}, {}, ["the upgrade"]),
        ({"mgr": "20.2.4", "osd": "19.2.6"}, {}, []),
        ({"mgr": "20.2.3", "osd": "19.2.5"}, {}, []),
        ({"osd": "16.2.15 18.2.7"}, says("OSD_UPGRADE_FINISHED"), ["OSD_UPGRADE_FINISHED"]),
        ({"osd": "16.2.15 17.2.9"}, says("OSD_UPGRADE_FINISHED"), []),
        ({"osd": "18.2.7"}, says("OSD_UPGRADE_FINISHED"), []),
    ],
)
def test_what_a_release_harms_in_a_cluster_is_found(
    versions: dict[str, str], shown: dict[str, Any], subjects: list[str]
) -> None:
    facts = ClusterFacts(
        name="x",
        osd_map={"epoch": 1} | shown,
        status={"fsid": "f"} | shown,
        versions={
            daemon: [f"ceph version {one} (7f793731f1b39eb4f465) x" for one in text.split()]
            for daemon, text in versions.items()
        },
    )
    findings = found(known_faults.CLUSTER_CHECKS, facts).get("cluster-release-faults", [])
    assert [one.subject for one in findings] == subjects
    assert all(mends(one) and "{}" not in one.mend for one in findings)
    assert diagnose("it", known_faults.CLUSTER_CHECKS, facts).skipped == ()
    unknown = replace(facts, versions=None)
    assert len(diagnose("it", known_faults.CLUSTER_CHECKS, unknown).skipped) == 1
