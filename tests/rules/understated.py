"""Cases of the alert on capacities that are too low."""

from dataclasses import replace
from typing import Any

from .cases import RuleCase, firing, silent
from .qos import osd, without
from .series import BUSY, CLUSTER, IDLE, State, flat, merged

UNDERSTATED = "CephQosCapacityUnderstated"

# Far more than it is configured for; and a recovery that its limit holds back.
_TOO_LOW: dict[str, Any] = {"capacity": 300, "reserved": {"client": 150}}
_CRAWLS = State(recovery=265, recovery_queue=20, depth=0.1, kv_commit=0.0005, thread=0.1)
_CRAWLING: dict[str, Any] = {**_TOO_LOW, "limit": {"background_recovery": 270}}
_TOO_LITTLE = {
    "ceph_daemon": "osd.0",
    "cluster": CLUSTER,
    "severity": "warning",
    "seen": "delivered",
}
_CPU_DENIED = {**_TOO_LITTLE, "seen": "limit"}

CASES = [
    RuleCase(
        name="an OSD that delivers three times its capacity, and later does little",
        alert=UNDERSTATED,
        series=merged(osd((5, IDLE), (10, BUSY), (10, IDLE), **_TOO_LOW)),
        moments=(silent(10), firing(12, _TOO_LITTLE), firing(24, _TOO_LITTLE)),
        only=True,
    ),
    RuleCase(
        name="a capacity that is set right ends it at once",
        alert=UNDERSTATED,
        series=merged(
            without(("cephqos_qos_capacity",), osd((5, IDLE), (20, BUSY), **_TOO_LOW)),
            flat(
                "cephqos_qos_capacity_normalised_ops_per_second",
                "300x59 1000x40",
                ceph_daemon="osd.0",
                cluster=CLUSTER,
                instance="host1",
                job="cephqos",
            ),
        ),
        moments=(firing(12.5, _TOO_LITTLE), silent(16)),
    ),
    RuleCase(
        name="reads from a cache ask nothing of the device, however many",
        alert=UNDERSTATED,
        series=merged(osd((25, replace(BUSY, device_ops=100)), **_TOO_LOW)),
        moments=(silent(24),),
    ),
    RuleCase(
        name="a burst of two minutes in every five is no proof",
        alert=UNDERSTATED,
        series=merged(osd(*((2, BUSY), (3, IDLE)) * 5, **_TOO_LOW)),
        moments=(silent(24),),
    ),
    RuleCase(
        name="delivered at a third above the capacity is near enough",
        alert=UNDERSTATED,
        series=merged(osd((25, replace(BUSY, client=400)), **_TOO_LOW)),
        moments=(silent(24),),
    ),
    RuleCase(
        name="large operations say nothing about the capacity in small ones",
        alert=UNDERSTATED,
        series=merged(osd((25, replace(BUSY, device_bytes=1000 * 65536.0 * 3)), **_TOO_LOW)),
        moments=(silent(24),),
    ),
    RuleCase(
        name="recovery is held at a share of the capacity while device and CPU have room",
        alert=UNDERSTATED,
        series=merged(osd((5, IDLE), (12, _CRAWLS), (10, IDLE), **_CRAWLING)),
        moments=(silent(9), firing(14, _CPU_DENIED), silent(20)),
    ),
    RuleCase(
        name="recovery at its limit on a device that is busy for as long",
        alert=UNDERSTATED,
        series=merged(osd((20, replace(_CRAWLS, depth=0.8)), **_CRAWLING)),
        moments=(silent(19),),
    ),
    RuleCase(
        name="recovery at its limit on a store that waits, though the device looks idle",
        alert=UNDERSTATED,
        series=merged(osd((20, replace(_CRAWLS, kv_commit=0.008)), **_CRAWLING)),
        moments=(silent(19),),
    ),
    RuleCase(
        name="recovery at its limit on a CPU that is busy for as long",
        alert=UNDERSTATED,
        series=merged(osd((20, replace(_CRAWLS, thread=0.7)), **_CRAWLING)),
        moments=(silent(19),),
    ),
]
