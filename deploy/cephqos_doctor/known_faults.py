"""Releases of Ceph with a known fault, where something that can be seen lets it do harm.

Each was read in release notes or in the change that mends it; the line above names which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.cluster_state import addresses
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import OsdFacts, Osds, of_each, version_of

_Version = tuple[int, ...]
_Releases = tuple[tuple[_Version, _Version], ...]  # the first and the last that have it
_Options = Mapping[str, str]

_UPGRADE: Final = "ceph orch upgrade start --ceph-version"


def _have(releases: _Releases, version: _Version) -> bool:
    return bool(version) and any(first <= version <= last for first, last in releases)


def _only(*version: int) -> tuple[_Version, _Version]:
    return version, version


@dataclass(frozen=True, slots=True)
class Fault:
    """Of an OSD, if its options let it do harm; without `option`, always."""

    releases: _Releases
    harm: str
    mend: str
    option: str = ""  # has to be known
    when: Callable[[_Options], bool] = lambda _: True

    def concerns(self, osd: OsdFacts) -> bool:
        return _have(self.releases, osd.version)


def _is(option: str, value: str = "true") -> Callable[[_Options], bool]:
    return lambda options: options.get(option) == value


def _discards_wait(options: _Options) -> bool:
    threads = options.get("bdev_async_discard_threads", "0")
    waits = threads != "0" or options.get("bdev_async_discard") == "true"
    return options.get("bdev_enable_discard") == "true" and waits


def _bluefs_units(options: _Options) -> bool:
    defaults = {"bluefs_shared_alloc_size": "65536", "bluefs_alloc_size": "1048576"}
    return any(options.get(name, default) != default for name, default in defaults.items())


FAULTS: Final = (
    # Rook's upgrade guide; tracker 53062
    Fault(
        (((16, 2, 0), (16, 2, 6)),),
        "with bluestore_fsck_quick_fix_on_mount: at its next start it converts its omap, and"
        " spoils it if it was made before 16.2",
        "ceph config set osd bluestore_fsck_quick_fix_on_mount false   # before it restarts."
        " 16.2.7 has no such fault",
        "bluestore_fsck_quick_fix_on_mount",
        _is("bluestore_fsck_quick_fix_on_mount"),
    ),
    # tracker 70390; notes of 19.2.4 and 20.2.1: extent map resharding
    Fault(
        (((19, 2, 0), (19, 2, 3)), _only(20, 2, 0)),
        "with bluestore_elastic_shared_blobs: OSDs that were made with it may crash or keep wrong"
        " data, above all with erasure code",
        "ceph config set osd bluestore_elastic_shared_blobs false   # before more OSDs are made."
        " 19.2.4 and 20.2.1 have no such fault, and mend no OSD: take those that were made with it"
        " out and make them again, one at a time",
        "bluestore_elastic_shared_blobs",
        _is("bluestore_elastic_shared_blobs"),
    ),
    # notes of 17.2.9 and 18.2.7, which were made for this; ceph#61653
    Fault(
        (_only(17, 2, 8), ((18, 2, 5), (18, 2, 6))),
        "after BlueFS has extended its log, it may not start any more",
        f"{_UPGRADE} VERSION   # 17.2.9 or 18.2.7, or later; packages and Rook have their own way."
        " One host at a time, all placement groups clean before each. Nothing else restarts before",
    ),
    # notes of 18.2.8 and 19.2.4: BlueFS::truncate; ceph#62121
    Fault(
        (((18, 2, 5), (18, 2, 7)), _only(19, 2, 3)),
        "with a changed unit of BlueFS: it may end in BlueFS::truncate, and again at each start",
        f"{_UPGRADE} VERSION   # 18.2.8 or 19.2.4, or later, with which it starts: its data is"
        " whole. Until then change bluefs_alloc_size and bluefs_shared_alloc_size no more, not"
        " back either",
        "bluefs_alloc_size",
        _bluefs_units,
    ),
    # ceph#61455; notes of 18.2.8 and 19.2.3
    Fault(
        (((16, 2, 0), (18, 2, 7)), ((19, 2, 0), (19, 2, 2))),
        "with asynchronous discards: where its device is slow at them, they pile up, and space"
        " that was deleted is not free",
        "ceph config set osd bdev_enable_discard false   # 18.2.8 and 19.2.3 let only so many wait",
        "bdev_enable_discard",
        _discards_wait,
    ),
    # notes of 17.2.4; ceph#47216
    Fault(
        (((17, 2, 0), (17, 2, 3)),),
        "with mclock_scheduler: while it recovers, its threads take the CPU and do no work",
        f"{_UPGRADE} VERSION   # 17.2.4 or later. Until then: ceph config set osd osd_op_queue wpq,"
        " and restart OSDs one host at a time",
        "osd_op_queue",
        _is("osd_op_queue", "mclock_scheduler"),
    ),
    # notes of 18.2.4
    Fault(
        (_only(18, 2, 3),),
        "an early build that was packaged by mistake",
        f"{_UPGRADE} VERSION   # 18.2.4 or later",
    ),
)


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """Of the daemons of a kind that run such a release. `subjects`: what it harms here."""

    daemon: str
    releases: _Releases
    subjects: Callable[[ClusterFacts], Iterable[str]]
    harm: str
    mend: str  # {} stands for the name of a pool


def _pools(having: Callable[[Mapping[str, Any]], bool]) -> Callable[[ClusterFacts], Iterator[str]]:
    return lambda facts: (f"pool {pool.get('pool_name')}" for pool in facts.pools if having(pool))


def _optimized(pool: Mapping[str, Any]) -> bool:
    return "ec_optimizations" in str(pool.get("flags_names", "")).split(",")


def _autoscaled(pool: Mapping[str, Any]) -> bool:
    return pool.get("pg_autoscale_mode") == "on"


def _file_system(facts: ClusterFacts) -> Iterator[str]:
    fsmap = facts.status.get("fsmap")
    if isinstance(fsmap, dict) and fsmap.get("by_rank"):
        yield "CephFS"


def _always(subject: str) -> Callable[[ClusterFacts], Iterable[str]]:
    return lambda _: (subject,)


def _unreachable_by_ipv6(facts: ClusterFacts) -> Iterator[str]:
    ipv6 = any(address.startswith("[") for address in addresses(facts.osd_map))
    if ipv6 and facts.health_check("OSD_UNREACHABLE") is not None:
        yield "OSD_UNREACHABLE"


def _upgrade_from_19_2_6(facts: ClusterFacts) -> Iterator[str]:
    if any((19, 2, 6) in _versions(facts, daemon) for daemon in ("mon", "osd")):
        yield "the upgrade"


def _finished_too_soon(facts: ClusterFacts) -> Iterator[str]:
    later = any(version >= (18,) for version in _versions(facts, "osd"))
    if later and facts.health_check("OSD_UPGRADE_FINISHED") is not None:
        yield "OSD_UPGRADE_FINISHED"


CLUSTER_FAULTS: Final = (
    # notes of 20.2.1; ceph#66543; ceph.io#986: with RBD, too
    ClusterFault(
        "osd",
        (_only(20, 2, 0),),
        _pools(_optimized),
        "it has allow_ec_optimizations: OSDs of 20.2.0 crash at some writes to it, and the flag"
        " cannot be taken back",
        "ceph osd pool application get {}   # stop the clients of these until all OSDs run 20.2.3"
        " or later",
    ),
    # ceph#69663; notes of 20.2.3
    ClusterFault(
        "osd",
        (((20, 2, 1), (20, 2, 2)),),
        _pools(_optimized),
        "it has allow_ec_optimizations: below 20.2.3, `rbd sparsify` can spoil its data",
        f"{_UPGRADE} 20.2.3   # or later. Until then no rbd sparsify",
    ),
    # rook#16839; notes of 20.2.1
    ClusterFault(
        "osd",
        (_only(20, 2, 0),),
        _file_system,
        "with OSDs of 20.2.0, clients that read from replicas (read_from_replica, Rook's"
        " csi.readAffinity) lose data without an error",
        f"{_UPGRADE} 20.2.3   # or later. Until then mount without read_from_replica",
    ),
    # notes of 16.2.11 and 17.2.4; tracker 53729
    ClusterFault(
        "osd",
        (((16, 2, 0), (16, 2, 10)), ((17, 2, 0), (17, 2, 3))),
        _pools(_autoscaled),
        "once its pg_num changes, logs of its placement groups may keep duplicates: OSDs take ever"
        " more memory, and do not start",
        "ceph osd pool set {} pg_autoscale_mode off   # until all OSDs run 16.2.11 or 17.2.4, or"
        " later",
    ),
    # notes of 19.2.2, which was made for this
    ClusterFault(
        "rgw",
        (_only(19, 2, 1),),
        _always("RGW"),
        "with 19.2.1, objects that are copied onto themselves lose their data",
        f"{_UPGRADE} 19.2.2   # or later, at once",
    ),
    # notes of 16.2.9, which was made for this
    ClusterFault(
        "mgr",
        (_only(16, 2, 8),),
        _always("the managers"),
        "those of 16.2.8 can hang",
        f"{_UPGRADE} 16.2.9   # or later. Until then, if one hangs: ceph mgr fail",
    ),
    # rook#10627; tracker 56700
    ClusterFault(
        "mgr",
        (_only(17, 2, 2),),
        _always("the managers"),
        "those of 17.2.2 crash in the module devicehealth",
        f"{_UPGRADE} 17.2.3   # or later",
    ),
    # notes of 18.2.6; ceph#61207
    ClusterFault(
        "mon",
        (((17, 2, 8), (17, 2, 9)), _only(18, 2, 5), ((19, 2, 0), (19, 2, 2))),
        _unreachable_by_ipv6,
        "a false alarm: these monitors do not understand addresses of IPv6",
        "ceph health mute OSD_UNREACHABLE   # until they run 18.2.6 or 19.2.3, or later",
    ),
    # notes of 20.2.4
    ClusterFault(
        "mgr",
        (((20, 2, 0), (20, 2, 3)),),
        _upgrade_from_19_2_6,
        "from 19.2.6 to releases before 20.2.4 it stands still once the managers are done",
        "ceph orch daemon redeploy MANAGER IMAGE   # each with the image of 19.2.6, then upgrade to"
        " 20.2.4 or later",
    ),
    # notes of 18.2.8, known issues
    ClusterFault(
        "osd",
        (((16, 2, 0), (16, 3)),),
        _finished_too_soon,
        "Ceph says so too soon, OSDs of 16.2 are left; what it asks for cannot be taken back",
        "ceph versions   # until no OSD of 16.2 is left; then require_osd_release",
    ),
)


def _faulty(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    for fault in FAULTS:
        if fault.concerns(osd) and fault.when(osd.options):
            release = ".".join(str(part) for part in osd.version)
            yield Finding(osd.osd, f"it runs Ceph {release}, {fault.harm}", fault.mend)


def _not_known(facts: Osds) -> str:
    if not any(osd.version for osd in facts.osds):
        return "no OSD's release is known"
    for fault in FAULTS:
        concerned = (osd for osd in facts.osds if fault.option and fault.concerns(osd))
        if any(fault.option not in osd.options for osd in concerned):
            return f"{fault.option} is not known"
    return ""


def _versions(facts: ClusterFacts, daemon: str) -> set[_Version]:
    return {version_of(text) for text in (facts.versions or {}).get(daemon, ())}


def _faults_here(facts: ClusterFacts) -> Iterator[Finding]:
    for fault in CLUSTER_FAULTS:
        if any(_have(fault.releases, one) for one in _versions(facts, fault.daemon)):
            for subject in fault.subjects(facts):
                pool = quoted(subject.removeprefix("pool "))
                yield Finding(subject, fault.harm, fault.mend.format(pool))


def _versions_unknown(facts: ClusterFacts) -> str:
    known = facts.osd_map and facts.status and facts.versions is not None
    return "" if known else "the daemons' releases, or the OSDs' map, are not known"


CHECKS: Final[tuple[Check[Osds], ...]] = (Check("release-faults", of_each(_faulty), _not_known),)
CLUSTER_CHECKS: Final = (Check("cluster-release-faults", _faults_here, _versions_unknown),)
