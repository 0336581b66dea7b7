"""Cases of nights on clusters: what looks like a failure, and failures that look like nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .across import CULPRIT, REPLICA, WAITS, WELL, sampled, with_more
from .cases import RuleCase, firing, silent
from .qos import FULL_OF_REPLICAS, PROVEN, SLOW, VIOLATED, WIDE, osd, violated
from .series import BUSY, CLUSTER, Series, SimulatedOsd, State, flat, merged

NOT_ANSWERING = "CephQosDaemonNotAnswering"

HDD: dict[str, Any] = {
    "media": "hdd",
    "capacity": 315,
    "reserved": {"client": 157, "background_recovery": 157},
}
# Disks with some clients, of which none wants more.
_NIGHT = State(
    client=60,
    in_progress=(3, 4, 5),
    store=0.7,
    store_latency=0.012,
    kv_commit=0.01,
    device_latency=0.009,
    device_ops=180,
    depth=1,
    immediate=120,
    replica_writes=120,
    replica_latency=0.015,
    write_latency=0.03,
    device_bytes=3e6,
)
# A deep scrub reads: no counter of operations shows it before 20.x.
_SCRUBBED = replace(
    _NIGHT,
    store=10,
    store_latency=0.09,
    kv_commit=0.08,
    read_wait=0.1,
    device_latency=0.06,
    device_ops=220,
    depth=12,
    replica_latency=0.1,
    write_latency=0.12,
    in_progress=(6, 7, 8),
    device_bytes=6e7,
)
# More clients: they lack some of their reservation, and have little of it to wait for.
_EVENING = replace(
    _NIGHT, client=130, in_progress=(12, 14), store=12, store_latency=0.06, write_latency=0.14
)
_LARGE_DISK = replace(
    _NIGHT,
    client=120,
    immediate=150,
    in_progress=(22, 25),
    waiting=3,
    store=30,
    store_latency=0.12,
    kv_commit=0.09,
    device_latency=0.08,
    device_ops=320,
    depth=14,
    write_latency=0.2,
    queue=(2, 1, 3, 1),
    device_bytes=6e6,
)
_TRIMMING = replace(
    BUSY,
    client=500,
    store=40,
    store_latency=0.08,
    kv_commit=0.06,
    device_latency=0.05,
    device_ops=1900,
    device_bytes=3e7,
)
# Small writes that a disk can put one after the other, and reads for which it has to seek.
_WRITES = State(
    client=900,
    in_progress=(8,),
    store=6,
    store_latency=0.007,
    kv_commit=0.006,
    device_latency=0.006,
    device_ops=250,
    depth=2,
    device_bytes=2e7,
)
_SEEKS = State(
    client=110,
    in_progress=(40,),
    waiting=8,
    queue=(4, 6, 3, 5),
    store=0.2,
    store_latency=0.01,
    kv_commit=0.02,
    read_wait=0.2,
    device_latency=0.18,
    device_ops=120,
    depth=24,
    device_bytes=9e5,
)


def several(*timelines: Sequence[tuple[float, State]], **changes: Any) -> Series:
    """OSDs from osd.0 on."""
    return merged(
        *(
            SimulatedOsd(timeline=timeline, id=number, **changes)
            for number, timeline in enumerate(timelines)
        )
    )


def one_of(
    count: int, before: State, one: State, others: State, minutes: float = 20, **changes: Any
) -> Series:
    """osd.1 differs from the others from minute 10 on."""
    return several(
        *(((10, before), (minutes, one if number == 1 else others)) for number in range(count)),
        **changes,
    )


def _left_alone(name: str, series: Series, alert: str = REPLICA) -> RuleCase:
    return RuleCase(name=name, alert=alert, series=series, moments=(silent(20), silent(29)))


_WAIT_A_LITTLE = replace(_NIGHT, write_latency=0.06)
_FLASH = State(
    client=2000,
    in_progress=(9, 10, 12),
    store=0.8,
    store_latency=0.0002,
    kv_commit=0.0002,
    device_latency=0.0001,
    replica_writes=4000,
    replica_latency=0.0008,
    write_latency=0.0011,
)
_DEAD = State(up=0)
_FILLED = replace(
    _SCRUBBED, recovery=60, in_progress=(12, 13), replica_latency=0.08, device_bytes=4e7
)
_BUSY_DAY = replace(_NIGHT, client=90, in_progress=(12, 10), write_latency=0.12, immediate=110)

HEALTHY = [
    _left_alone(
        "a disk that scrubs is slower than its peers, and clients with little to do lack nothing",
        one_of(6, _NIGHT, _SCRUBBED, _WAIT_A_LITTLE, **HDD),
    ),
    RuleCase(
        name="a disk that scrubs under load, in a release that does not count it, has not failed",
        alert=VIOLATED,
        series=one_of(
            6,
            replace(_EVENING, client=150),
            replace(_SCRUBBED, client=60, waiting=4, in_progress=(20,)),
            replace(_EVENING, client=150),
            **HDD,
        ),
        moments=(
            silent(14),
            firing(25, {**violated("warning", "unknown"), "ceph_daemon": "osd.1"}),
        ),
    ),
    RuleCase(
        name="a disk at its end that has more of the data than its peers has not failed",
        alert=WIDE,
        series=one_of(6, _NIGHT, _LARGE_DISK, _WAIT_A_LITTLE, minutes=40, **HDD),
        moments=(firing(48, FULL_OF_REPLICAS),),
    ),
    _left_alone(
        "a disk at its end that has more of the data than its peers is not critical",
        one_of(6, _NIGHT, _LARGE_DISK, _WAIT_A_LITTLE, **HDD),
    ),
    _left_alone(
        "a new disk that is being filled is slow for that",
        several(
            *[((30, _BUSY_DAY),)] * 5,
            ((10, replace(_NIGHT, scrape=False)), (20, _FILLED)),
            **HDD,
        ),
    ),
    RuleCase(
        name="trimming of snapshots, which is counted nowhere, is no failure of devices",
        alert=VIOLATED,
        series=several(((10, replace(PROVEN, device_bytes=4e8)), (20, _TRIMMING))),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="disks that took small writes one after the other and now seek have not failed",
        alert=VIOLATED,
        series=several(((10, _WRITES), (20, _SEEKS)), **HDD),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
    _left_alone(
        "nobody waits for an OSD that is dead where writes end within milliseconds",
        one_of(5, _FLASH, _DEAD, _FLASH, capacity=40000, reserved={"client": 20000}),
    ),
]

_WAITS_IN_NO_QUEUE = replace(WAITS, waiting=0.1)


def _slow_to(number: int, peer: int) -> Series:
    name = "cephqos_network_worst_peer_info"
    return with_more(number, "cephqos_network_slow_peers", "0x40 3x200", interface="back") | (
        with_more(number, name, 1, peer=f"osd.{peer}", interface="back")
    )


def _restarts(series: Series) -> Series:
    """Of an exporter that begins again every minute."""
    return {
        name: " ".join([f"0+{values.split('+')[1].split('x')[0]}x3"] * 30)
        if "_total" in name
        else values
        for name, values in series.items()
    }


_ONE_MIB = replace(
    BUSY,
    client=3,
    immediate=3,
    in_progress=(16,),
    store=14,
    store_latency=3,
    kv_commit=0.12,
    device_latency=0.12,
    device_ops=120,
    device_bytes=6.3e6,
    write_latency=4,
)

FAULTS = [
    RuleCase(
        name="a network slow between all OSDs is critical though no queue shows the waiting",
        alert=VIOLATED,
        series=several(*[((10, WELL), (20, _WAITS_IN_NO_QUEUE))] * 4)
        | {key: it for i in range(4) for key, it in _slow_to(i, (i + 2) % 4).items()},
        moments=(
            silent(14),
            firing(
                20,
                *(
                    {
                        **violated("critical", "network", by=f"osd.{(i + 2) % 4}"),
                        "ceph_daemon": f"osd.{i}",
                    }
                    for i in range(4)
                ),
            ),
        ),
    ),
    RuleCase(
        name="an exporter that restarts every minute hides nothing that another one shows",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, SLOW)),
            _restarts(osd((28, SLOW), instance="host2").series()),
        ),
        moments=(silent(12), firing(16, violated("critical", "device"))),
    ),
    RuleCase(
        name="a daemon that does not answer, for one reason and then for another",
        alert=NOT_ANSWERING,
        series=merged(
            *(
                flat(
                    "cephqos_daemon_up",
                    values,
                    reason=reason,
                    cluster=CLUSTER,
                    ceph_daemon="osd.0",
                    instance="host1",
                )
                for reason, values in (
                    ("", "1x19 stale"),
                    ("timeout", "_x20 " + "0x3 stale _x3 " * 5),
                    ("busy", "_x24 " + "0x3 stale _x3 " * 5),
                )
            )
        ),
        moments=(
            silent(6.5),
            firing(
                7.5,
                {
                    "cluster": CLUSTER,
                    "ceph_daemon": "osd.0",
                    "instance": "host1",
                    "severity": "critical",
                },
            ),
        ),
    ),
    RuleCase(
        name="large writes show that bytes ran out, though mClock takes each for a small one",
        alert=VIOLATED,
        series=several(((8, State()), (20, _ONE_MIB)), capacity=100, reserved={"client": 50}),
        moments=(firing(20, violated("warning", "capacity", by="bandwidth")),),
    ),
    RuleCase(
        name="two slow OSDs that hold replicas only are both told of, by who was seen to wait",
        alert=REPLICA,
        series=merged(
            several(
                *(
                    ((10, WELL), (20, replace(CULPRIT, client=0) if i in (1, 4) else WAITS))
                    for i in range(6)
                )
            ),
            *(sampled(i, "osd.1" if i < 3 else "osd.4") for i in (0, 2, 3, 5)),
        ),
        moments=(
            firing(
                16,
                *(
                    {
                        "cluster": CLUSTER,
                        "ceph_daemon": f"osd.{i}",
                        "severity": "critical",
                    }
                    for i in (1, 4)
                ),
            ),
        ),
    ),
    RuleCase(
        name="the OSD whose device fails is waited for, not one that has died",
        alert=REPLICA,
        series=several(
            ((10, WELL), (20, WAITS)),
            ((10, WELL), (20, replace(CULPRIT, client=0))),
            ((10, WELL), (20, _DEAD)),
        ),
        moments=(
            firing(
                18,
                {
                    "cluster": CLUSTER,
                    "ceph_daemon": "osd.1",
                    "severity": "critical",
                },
            ),
        ),
    ),
    RuleCase(
        name="a device that fails again a while after it was well is critical again",
        alert=VIOLATED,
        series=several(((8, PROVEN), (12, SLOW), (10, PROVEN), (12, SLOW))),
        moments=(
            firing(18, violated("critical", "device")),
            silent(28),
            firing(38, violated("critical", "device")),
        ),
    ),
]

CASES = [*HEALTHY, *FAULTS]
