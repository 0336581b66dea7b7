"""Cases of background work, of mixed hardware, and of devices that fail beside other work."""

from dataclasses import replace
from typing import Any

from .across import CRITICAL_1, CULPRIT, REPEATED, REPLICA, WAITS, WELL, three, waiting, with_more
from .cases import RuleCase, firing, silent
from .nights import HDD, several
from .qos import FULL_OF_REPLICAS, OSD0, PROVEN, SHORT, SLOW, VIOLATED, WIDE, osd, violated
from .series import (
    BUSY,
    CLUSTER,
    IDLE,
    SHARDS,
    Series,
    State,
    flat,
    merged,
    osds,
)

_OPS = "normalised_ops_per_second"


def best_effort(number: int, *, queue: str, lag: str = "0x240", hold: str = "0x240") -> Series:
    """The best effort of an OSD of 20.2, which has a reservation; what it does is not counted."""
    cls = {"class_": "background_best_effort"}
    found = with_more(number, f"cephqos_qos_reservation_{_OPS}", 100, **cls)
    found |= with_more(number, f"cephqos_qos_limit_{_OPS}", 1800, **cls)
    found |= with_more(number, "cephqos_qos_normalised_ops_total", 0, job="cephqos", **cls)
    for shard in range(SHARDS):
        at = {"shard": str(shard), **cls}
        found |= with_more(number, "cephqos_qos_queue_length", queue, **at)
        found |= with_more(number, "cephqos_qos_reservation_lag_seconds", lag, **at)
        found |= with_more(number, "cephqos_qos_limit_wait_seconds", hold, **at)
    return found


# A pool is removed: much work waits, and no counter shows it.
_HELD: dict[str, str] = {"queue": "0x20 40x220", "hold": "0x20 0.4x220"}
_RECOVERY_HELD: dict[str, Any] = {
    "reserved": {"client": 1000, "background_recovery": 300},
    "limit": {"background_recovery": 300},
}

BACKGROUND = [
    RuleCase(
        name="removal of a pool, held at its limit while a device fails, lacks nothing",
        alert=VIOLATED,
        series=merged(
            three((10, WELL), culprit=CULPRIT, others=WAITS),
            best_effort(0, **_HELD),
            best_effort(2, **_HELD),
        ),
        moments=(silent(14), firing(22, CRITICAL_1)),
    ),
    RuleCase(
        name="trimming that no counter shows has its reservation if its tags are in time",
        alert=VIOLATED,
        series=merged(
            osd((30, replace(PROVEN, client=1400))),
            best_effort(0, queue="0x20 3x220", lag="0x20 " + "0.02 0.1 0.4 0 " * 55),
        ),
        moments=(silent(15), silent(29)),
        only=True,
    ),
    RuleCase(
        name="best effort that is behind its tags is a warning",
        alert=VIOLATED,
        series=merged(osd((30, PROVEN)), best_effort(0, queue="0x40 30x200", lag="0x40 3x200")),
        moments=(
            silent(14),
            firing(
                20,
                {
                    **violated("warning", "other_class", by="client"),
                    "class": "background_best_effort",
                },
            ),
        ),
    ),
    RuleCase(
        name="recovery that waits for its limit has had its reservation, whatever was counted",
        alert=VIOLATED,
        series=merged(
            osd((30, replace(IDLE, recovery=150, recovery_queue=8)), **_RECOVERY_HELD),
            *(
                with_more(
                    0,
                    "cephqos_qos_limit_wait_seconds",
                    0.3,
                    class_="background_recovery",
                    shard=str(shard),
                )
                for shard in range(SHARDS)
            ),
        ),
        moments=(silent(15), silent(29)),
    ),
]

_RECOVERS = replace(WELL, recovery=480, recovery_queue=8)
_RECOVERY_WAITS = {
    **OSD0,
    "class": "background_recovery",
    "severity": "warning",
    "cause": "other_osd",
    "by": "osd.1",
}

BACKGROUND += [
    RuleCase(
        name="recovery that runs into a failed device elsewhere has no alert of its own beside it",
        alert=VIOLATED,
        series=three(
            (10, _RECOVERS),
            culprit=CULPRIT,
            others=replace(WAITS, recovery=30, recovery_queue=8, recovery_lag=0.05),
        ),
        moments=(
            silent(14),
            firing(22, CRITICAL_1),
            firing(
                29,
                CRITICAL_1,
                waiting=(
                    *({**_RECOVERY_WAITS, "ceph_daemon": f"osd.{number}"} for number in (0, 2)),
                    *(waiting(number) for number in (0, 2)),
                ),
            ),
        ),
    ),
]

_LINK = {"back": "0x40 1x200", "front": "0x240"}


def _interfaces(worst: dict[str, str]) -> Series:
    """Heartbeats of osd.0: only those on the back network are slow."""
    return merged(
        *(
            series
            for name, slow in _LINK.items()
            for series in (
                with_more(0, "cephqos_network_slow_peers", slow, interface=name),
                with_more(
                    0, "cephqos_network_worst_peer_info", 1, interface=name, peer=worst[name]
                ),
            )
        )
    )


NETWORK = [
    RuleCase(
        name="the peer on the slow network is named, not the worst one on the other network",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (20, WELL if i else WAITS)), id=i) for i in range(4)),
            _interfaces({"back": "osd.1", "front": "osd.3"}),
        ),
        moments=(silent(14), firing(18, violated("critical", "network", by="osd.1"))),
    ),
    RuleCase(
        name="the peer on the slow network is named, also where its number is the higher one",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (20, WELL if i else WAITS)), id=i) for i in range(4)),
            _interfaces({"back": "osd.3", "front": "osd.1"}),
        ),
        moments=(silent(14), firing(18, violated("critical", "network", by="osd.3"))),
    ),
]

# Backfill and scrubs in the night; small writes as fast as disks can seek in the day.
_IN_SEQUENCE = State(
    client=600,
    in_progress=(10, 12),
    store=4,
    store_latency=0.03,
    kv_commit=0.02,
    device_latency=0.02,
    device_ops=420,
    depth=6,
    device_bytes=1.6e8,
)
_SEEKING = State(
    client=40,
    immediate=80,
    in_progress=(40, 36),
    waiting=5,
    queue=(3, 2, 4, 2),
    store=30,
    store_latency=0.24,
    kv_commit=0.17,
    device_latency=0.21,
    device_ops=125,
    depth=26,
    device_bytes=1.5e6,
)
_ALL_STUCK = replace(
    _SEEKING, client=8, immediate=16, kv_commit=1.2, device_latency=1.1, device_ops=28
)
_ONE_OF_ANOTHER_KIND: dict[str, Any] = {"capacity": 1700, "reserved": {"client": 850}}
_FASTER: dict[str, Any] = {"capacity": 40000, "reserved": {"client": 10000}}
_FAST = State(
    client=6000,
    immediate=12000,
    in_progress=(12, 9, 15),
    store=3,
    store_latency=0.00015,
    kv_commit=0.0002,
    device_latency=0.00008,
)
_SLOWER = replace(
    BUSY,
    client=500,
    immediate=1000,
    store=40,
    store_latency=0.026,
    kv_commit=0.009,
    device_latency=0.006,
)
_LARGER: dict[str, Any] = {"cluster": CLUSTER, "class": "client", "severity": "critical"}

HARDWARE = [
    RuleCase(
        name="disks that read in sequence all night and seek at their end now have not failed",
        alert=WIDE,
        series=several(*[((10, _IN_SEQUENCE), (20, _SEEKING))] * 4, **HDD),
        moments=(
            silent(14),
            firing(25, {**_LARGER, "severity": "warning", "cause": "unknown"}),
        ),
    ),
    RuleCase(
        name="disks that serve far fewer requests than a disk that seeks have failed, all of them",
        alert=WIDE,
        series=several(*[((10, _IN_SEQUENCE), (20, _ALL_STUCK))] * 4, **HDD),
        moments=(silent(14), firing(25, {**_LARGER, "cause": "device"})),
    ),
    RuleCase(
        name="flash of a slower kind beside faster flash has not failed",
        alert=WIDE,
        series=merged(
            *osds(5, ((40, _FAST),), **_FASTER),
            replace(osd((40, _SLOWER), **_ONE_OF_ANOTHER_KIND), id=5),
            replace(osd((40, _SLOWER), **_ONE_OF_ANOTHER_KIND), id=6),
        ),
        moments=(
            silent(3),
            firing(37, FULL_OF_REPLICAS),
        ),
    ),
    RuleCase(
        name="a device that fails while it is scrubbed is no busy one",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=replace(CULPRIT, device_bytes=9e6, device_ops=90),
            others=WAITS,
        ),
        moments=(silent(14), firing(22, CRITICAL_1)),
    ),
    RuleCase(
        name="a disk with nearly all of the work, at the end of what a disk does, has not failed",
        alert=REPLICA,
        series=several(
            *(
                (
                    (
                        30,
                        replace(
                            _SEEKING,
                            client=110,
                            immediate=15,
                            kv_commit=0.6,
                            device_latency=1,
                            device_ops=130,
                            replica_writes=15,
                            replica_latency=1,
                            device_bytes=3e6,
                        )
                        if number == 2
                        else State(client=8, immediate=40, replica_writes=40, device_bytes=8e5),
                    ),
                )
                for number in range(5)
            ),
            **HDD,
        ),
        moments=(silent(15), silent(29)),
    ),
]

_CODED = "cephqos_qos_delivered_is_lower_bound"

_UNCOUNTED = "CephQosReservationViolatedUncounted"
_OF_THE_CLUSTER = {"class": "client", "cluster": CLUSTER, "severity": "info"}


def _coded(*timeline: tuple[float, State], count: int = 1) -> Series:
    """OSDs with erasure-coded pools."""
    return merged(
        *(replace(osd(*timeline), id=number) for number in range(count)),
        *(with_more(number, _CODED, 1) for number in range(count)),
    )


def _recovers(values: str) -> Series:
    return flat(
        "cephqos_recovery_slots",
        values,
        cluster=CLUSTER,
        ceph_daemon="osd.9",
        side="remote",
        state="in_progress",
        kind="recovery",
    )


_LONG_WRITES = replace(SHORT, client=150, write_latency=0.3)
CODED = [
    RuleCase(
        name="writes of erasure-coded pools spend their time on other shards, which is no finding",
        alert=VIOLATED,
        series=_coded((30, _LONG_WRITES), count=3),
        moments=(silent(15), silent(29)),
    ),
    RuleCase(
        name="a violation whose work is not all counted has an alert of the cluster that can wait",
        alert=_UNCOUNTED,
        series=_coded((8, PROVEN), (20, _LONG_WRITES), (10, PROVEN), count=3),
        moments=(
            silent(13),
            firing(14.75, _OF_THE_CLUSTER),
            firing(27, _OF_THE_CLUSTER),
            silent(36),
        ),
    ),
    RuleCase(
        name="a violation beside recovery on erasure-coded pools is a warning without a cause",
        alert=VIOLATED,
        series=merged(_coded((8, PROVEN), (20, SHORT), (10, PROVEN)), _recovers("1x200")),
        moments=(silent(7), firing(20, violated("warning", "unknown")), silent(35)),
        only=True,
    ),
    RuleCase(
        name="recovery on erasure-coded pools beside clients that get theirs is no finding",
        alert=VIOLATED,
        series=merged(_coded((30, PROVEN)), _recovers("1x200")),
        moments=(silent(15), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a violation with a known cause is not told as one without",
        alert=_UNCOUNTED,
        series=_coded((8, PROVEN), (20, SLOW), (10, PROVEN)),
        moments=(silent(16), silent(27)),
    ),
]

# A device that fails for one of every two minutes: too briefly for a critical alert.
_AGAIN_1 = {**OSD0, "ceph_daemon": "osd.1", "severity": "warning"}

AGAIN = [
    RuleCase(
        name="a device that fails again and again is told there, not where others wait for it",
        alert=REPEATED,
        series=merged(
            *(
                replace(
                    osd((10, WELL), *((1, CULPRIT if number == 1 else WAITS), (1, WELL)) * 22),
                    id=number,
                )
                for number in range(3)
            )
        ),
        moments=(silent(20), firing(53, _AGAIN_1)),
    ),
    RuleCase(
        name="a target that WPQ misses for half an hour is no reservation that is broken again",
        alert=REPEATED,
        series=merged(
            *(
                replace(
                    osd(
                        (10, WELL),
                        (25, CULPRIT if number == 1 else WAITS),
                        in_force="wpq",
                        capacity=None,
                        reserved={"client": 1000},
                        target={"client": 1000},
                    ),
                    id=number,
                )
                for number in range(3)
            )
        ),
        moments=(silent(20), silent(34)),
    ),
]

_OF_C2 = three((10, WELL), culprit=CULPRIT, others=WAITS, cluster="c2")


def _of_another_job(series: Series) -> Series:
    """The same OSDs, scraped once more under a job of its own."""
    job, host = 'job="cephqos"', 'instance="host1"'
    return {
        name.replace(job, 'job="cephqos-2"').replace(host, 'instance="host1:2"'): values
        for name, values in series.items()
    }


SEVERAL = [
    RuleCase(
        name="of two clusters with the same numbers the one with the slow device is named",
        alert=VIOLATED,
        series=merged(_OF_C2, three((10, WELL), culprit=WELL, others=WELL)),
        moments=(silent(14), firing(22, {**CRITICAL_1, "cluster": "c2"})),
    ),
    RuleCase(
        name="a slow device is told once where two jobs scrape the same OSDs",
        alert=VIOLATED,
        series=merged(_OF_C2, _of_another_job(_OF_C2)),
        moments=(silent(14), firing(22, {**CRITICAL_1, "cluster": "c2"})),
    ),
]

CASES = [*BACKGROUND, *NETWORK, *HARDWARE, *CODED, *AGAIN, *SEVERAL]
