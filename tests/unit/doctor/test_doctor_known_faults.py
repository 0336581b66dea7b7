"""Releases with a fault that a setting lets bite."""

from dataclasses import replace

import pytest
from tests.unit.doctor.doctor_facts import found, host, mends, recorded

from cephqos_doctor import known_faults
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import diagnose
from cephqos_doctor.host_facts import OsdFacts, version_of

QUICK_FIX = "bluestore_fsck_quick_fix_on_mount"
SHARED_BLOBS = "bluestore_elastic_shared_blobs"


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


@pytest.mark.parametrize(
    ("version", "option", "is_found"),
    [
        ("16.2.0", QUICK_FIX, True),
        ("16.2.6", QUICK_FIX, True),
        ("16.2.7", QUICK_FIX, False),
        ("18.2.7", QUICK_FIX, False),
        ("19.1.1", SHARED_BLOBS, False),
        ("19.2.0", SHARED_BLOBS, True),
        ("19.2.3-pve1", SHARED_BLOBS, True),
        ("19.2.4", SHARED_BLOBS, False),
    ],
)
def test_a_release_with_a_fault_is_found_while_the_option_is_on(
    version: str, option: str, is_found: bool
) -> None:
    on = host(osds=(osd(version, **{option: "true"}),))
    off = host(osds=(osd(version, **{option: "false"}),))
    findings = found(known_faults.CHECKS, on).get("release-faults", [])
    assert found(known_faults.CHECKS, off) == {}
    assert len(findings) == is_found
    for finding in findings:
        assert finding.mend.startswith(f"ceph config set osd {option} false ")
        assert mends(finding)


def test_a_release_without_the_option_is_clean_and_one_that_hides_it_is_not_judged() -> None:
    """16.2 to 18.2 have no shared blobs of this kind."""
    for version, why in (("18.2.7", ""), ("19.2.1", f"{SHARED_BLOBS} is not known")):
        facts = host(osds=(osd(version),))
        assert SHARED_BLOBS not in facts.osds[0].options
        skipped = dict(diagnose("it", known_faults.CHECKS, facts).skipped)
        assert skipped.get("release-faults", "") == why
    told = diagnose("it", known_faults.CHECKS, host(osds=(osd(""),)))
    assert told.skipped == (("release-faults", "no OSD's release is known"),)


@pytest.mark.parametrize(
    ("flags", "version", "is_found"),
    [
        # As `osd dump` of 20.2 has them after `osd pool set`.
        ("hashpspool,ec_optimizations", "20.2.0", True),
        ("hashpspool,ec_overwrites,ec_optimizations", "20.2.0", False),
        ("hashpspool", "20.2.0", False),
        ("hashpspool,ec_optimizations", "20.2.4", False),
    ],
)
def test_a_pool_whose_flags_crash_osds_of_its_release_is_found(
    flags: str, version: str, is_found: bool
) -> None:
    facts = ClusterFacts(
        name="x",
        osd_map={"pools": [{"pool_name": "ecp", "flags_names": flags}]},
        osd_versions=[f"ceph version {version} (7f793731f1b39eb4f465e960113d2363c311b964) x"],
    )
    findings = found(known_faults.CLUSTER_CHECKS, facts).get("pool-flags-safe", [])
    assert [one.subject for one in findings] == ["pool ecp"] * is_found
    assert all(mends(one) for one in findings)
    assert diagnose("it", known_faults.CLUSTER_CHECKS, facts).skipped == ()
    unknown = replace(facts, osd_versions=None)
    assert len(diagnose("it", known_faults.CLUSTER_CHECKS, unknown).skipped) == 1
