"""Cases of a store that is slow while its device is well, and of what only looks like it."""

from dataclasses import replace
from typing import Any

from .across import CULPRIT, REPLICA, SLOW_1, WAITS, WELL, three
from .cases import RuleCase, firing, silent
from .qos import PROVEN, SLOW, VIOLATED, osd, violated
from .series import CLUSTER, Series, flat, merged

_GIB = 2**30
_COMMITS = replace(SLOW, device_latency=0.001, own_write=0.001)
_DEVICE = violated("critical", "device")
_FINDING = {"cluster": CLUSTER, "ceph_daemon": "osd.0"}


def _then(**changes: Any) -> Series:
    """Twenty minutes of slow commits, after and before an OSD that is well."""
    return merged(osd((8, PROVEN), (20, replace(_COMMITS, **changes)), (20, PROVEN)))


def _by(reason: str) -> dict[str, str]:
    return {**violated("critical", "store"), "by": reason}


_REASONS: dict[str, Any] = {
    "fragmentation": {"fragmented": 1.0},
    "spillover": {"spilled": 12 * _GIB},
    "compaction": {"compaction": 0.9},
}

CASES = [
    *(
        RuleCase(
            name=f"slow commits on a device that is well have cause store, by {by}",
            alert=VIOLATED,
            series=_then(**changes),
            moments=(silent(7), firing(16, _by(by)), firing(27, _by(by)), silent(40)),
        )
        for by, changes in _REASONS.items()
    ),
    RuleCase(
        name="slow commits without a reason that shows in the store have cause device",
        alert=VIOLATED,
        series=_then(),
        moments=(firing(20, _DEVICE), silent(40)),
    ),
    RuleCase(
        name="a device that is slow for all writes of a store that compacts has cause device",
        alert=VIOLATED,
        series=_then(own_write=0.2, compaction=0.9),
        moments=(firing(20, _DEVICE), silent(40)),
    ),
    RuleCase(
        name="a device with slow requests has cause device, whatever the DB has spilled",
        alert=VIOLATED,
        series=_then(device_latency=0.2, spilled=12 * _GIB),
        moments=(firing(20, _DEVICE), silent(40)),
    ),
    RuleCase(
        name="a store that compacts, has spilled and is fragmented alerts nobody if it is quick",
        alert=VIOLATED,
        series=merged(
            osd((30, replace(PROVEN, compaction=0.9, spilled=12 * _GIB, fragmented=1.0)))
        ),
        moments=(silent(12), silent(29)),
    ),
    RuleCase(
        name="an OSD with a slow store that others wait for is critical as one with a slow device",
        alert=REPLICA,
        series=three(
            (10, WELL),
            culprit=replace(CULPRIT, device_latency=0.001, compaction=0.9),
            others=WAITS,
        ),
        moments=(silent(13), firing(25, SLOW_1)),
    ),
    RuleCase(
        name="a tenth of the DB on the slow device is found, and less is not",
        alert="CephQosStoreSpilled",
        series=merged(
            osd(
                (5, replace(PROVEN, spilled=0.05e9)),
                (20, replace(PROVEN, spilled=0.5e9)),
                (15, PROVEN),
            )
        ),
        moments=(silent(4), firing(8, _FINDING), firing(24, _FINDING), silent(30)),
    ),
    RuleCase(
        name="a DB that finds no free pieces is found for an hour, and one such moment is not",
        alert="CephQosStoreFragmented",
        series=merged(
            osd(
                (5, replace(PROVEN, fragmented=0.001)),
                (5, replace(PROVEN, fragmented=1)),
                (100, PROVEN),
            )
        ),
        moments=(silent(4), firing(9, _FINDING), firing(60, _FINDING), silent(80)),
    ),
    RuleCase(
        name="a DB that seldom finds no free piece is not found",
        alert="CephQosStoreFragmented",
        series=merged(osd((80, replace(PROVEN, fragmented=0.0005)))),
        moments=(silent(30), silent(70)),
    ),
    RuleCase(
        name="slow operations of long ago are not found",
        alert="CephQosStoreSlow",
        series=flat(
            "cephqos_qos_store_slow_total", "24x200", **_FINDING, op="commit", instance="host1"
        ),
        moments=(silent(9), silent(40)),
    ),
    RuleCase(
        name="slow operations of a store are found while they happen and for a quarter of an hour",
        alert="CephQosStoreSlow",
        series=flat(
            "cephqos_qos_store_slow_total",
            "3x40 3+1x20 24x200",
            **_FINDING,
            op="commit",
            instance="host1",
        ),
        moments=(
            silent(9),
            firing(12, {**_FINDING, "op": "commit"}),
            firing(25, {**_FINDING, "op": "commit"}),
            silent(36),
        ),
    ),
]
