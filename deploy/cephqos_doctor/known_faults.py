"""Checks for releases of Ceph with a fault that does harm only with a certain setting."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import OsdFacts, Osds, of_each, version_of

_OPTIMIZED: Final = "ec_optimizations"
_OPTIMIZED_FAULT: Final = (20, 2, 0)  # Clyso's knowledge base, "OSD crash on 20.2.0"; ceph#66543


@dataclass(frozen=True, slots=True)
class Fault:
    """From the first to the last release an OSD has it, if the option is true."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    option: str
    harm: str
    end: str  # after the command that turns the option off

    def concerns(self, osd: OsdFacts) -> bool:
        return bool(osd.version) and self.first <= osd.version <= self.last


FAULTS: Final = (
    # Rook's upgrade guide; tracker.ceph.com/issues/53062
    Fault(
        (16, 2, 0),
        (16, 2, 6),
        "bluestore_fsck_quick_fix_on_mount",
        "at its next start it converts its omap, and spoils it if it was made before 16.2",
        "before it restarts. 16.2.7 has no such fault",
    ),
    # Clyso's known bugs of Squid; tracker.ceph.com/issues/70390
    Fault(
        (19, 2, 0),
        (19, 2, 3),
        "bluestore_elastic_shared_blobs",
        "OSDs that were made with it may crash or keep wrong data, above all with erasure code",
        "before more OSDs are made. 19.2.4 has no such fault, and mends no OSD: take those of"
        " 19.2.0 to 19.2.3 out and make them again, one at a time",
    ),
)


def _faulty(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    for fault in FAULTS:
        if fault.concerns(osd) and osd.options.get(fault.option) == "true":
            release = ".".join(str(part) for part in osd.version)
            yield Finding(
                osd.osd,
                f"it runs Ceph {release} with {fault.option}: {fault.harm}",
                f"ceph config set osd {fault.option} false   # {fault.end}",
            )


def _not_known(facts: Osds) -> str:
    if not any(osd.version for osd in facts.osds):
        return "no OSD's release is known"
    for fault in FAULTS:
        if any(fault.concerns(osd) and fault.option not in osd.options for osd in facts.osds):
            return f"{fault.option} is not known"
    return ""


def _faulty_pools(facts: ClusterFacts) -> Iterator[Finding]:
    if _OPTIMIZED_FAULT not in {version_of(text) for text in facts.osd_versions or ()}:
        return
    for pool in facts.pools:
        flags = str(pool.get("flags_names", "")).split(",")
        if _OPTIMIZED in flags and "ec_overwrites" not in flags:
            name = pool.get("pool_name")
            yield Finding(
                f"pool {name}",
                "it has allow_ec_optimizations and not allow_ec_overwrites: OSDs of Ceph 20.2.0"
                " crash at some writes to it, and the flag cannot be taken back",
                f"ceph osd pool application get {quoted(name)}   # stop the clients of these until"
                " all OSDs run a release with https://github.com/ceph/ceph/pull/66543",
            )


def _versions_unknown(facts: ClusterFacts) -> str:
    known = facts.osd_map and facts.osd_versions is not None
    return "" if known else "the pools, or the releases of the OSDs, are not known"


CHECKS: Final[tuple[Check[Osds], ...]] = (Check("release-faults", of_each(_faulty), _not_known),)
CLUSTER_CHECKS: Final = (Check("pool-flags-safe", _faulty_pools, _versions_unknown),)
