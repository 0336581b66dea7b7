"""Cases of a device that fails, and of what only looks like it."""

from dataclasses import replace
from typing import Any

from .across import CRITICAL_1, CULPRIT, HOLDS_UP, REPLICA, SLOW_1, WAITS, WELL, three, with_more
from .cases import RuleCase, firing, silent
from .qos import PROVEN, SHORT, SLOW, VIOLATED, osd, violated, without
from .series import BUSY, CLUSTER, IDLE, Series, State, flat, merged

_QUIET = State(client=60, in_progress=(1, 0), store=0.1, kv_commit=0.002)
_OVERSTATED: dict[str, Any] = {"capacity": 21500, "reserved": {"client": 10750}}
_FAST_ELSEWHERE = replace(WELL, client=200, in_progress=(1, 0), queue=(0, 0, 0, 0), waiting=0)
_SLOW_COMMITS = replace(SLOW, device_latency=0.001, cpu_waiting=4)
_SLOW_READS = replace(SHORT, client=100, store=0, store_used=0, read_wait=0.4, kv_commit=0)


def _wait_for_cpu(state: State, **seconds: float) -> Series:
    """An OSD that was quick and comes to this. Groups of its threads wait for a CPU meanwhile: how
    much of each second."""
    return merged(
        osd((10, replace(PROVEN, read_wait=0.002)), (20, state)),
        *(
            with_more(
                0,
                "cephqos_threads_wait_seconds_total",
                f"0+0x40 {each * 15:g}+{each * 15:g}x80",
                group=group,
                job="cephqos",
            )
            for group, each in seconds.items()
        ),
    )


_SLOWER = replace(WAITS, replica_latency=0.03)
_STARVES = replace(_QUIET, client=100, replica_writes=60, replica_latency=0.09, cpu_waiting=8)

DEVICES = [
    RuleCase(
        name="a device that turns slow on a cluster that was never busy is critical, by its peers",
        alert=VIOLATED,
        series=three((10, _QUIET), culprit=CULPRIT, others=_FAST_ELSEWHERE),
        moments=(firing(25, CRITICAL_1),),
    ),
    RuleCase(
        name="who waits for a slow OSD, on a device that takes longer than usual, is not accused",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=CULPRIT,
            others=replace(WAITS, device_latency=0.03, store_latency=0.03),
        ),
        moments=(silent(14), *(firing(minute, CRITICAL_1) for minute in range(16, 24))),
    ),
    RuleCase(
        name="a device that turns slow where all capacities are overstated is critical too",
        alert=VIOLATED,
        series=merged(
            *(
                replace(
                    osd(
                        (10, replace(WELL, client=800)),
                        (20, CULPRIT if i == 1 else _FAST_ELSEWHERE),
                        **_OVERSTATED,
                    ),
                    id=i,
                )
                for i in range(3)
            )
        ),
        moments=(firing(25, CRITICAL_1),),
    ),
    RuleCase(
        name="a device that is slower than those of idle peers, for all its work, is critical"
        " nobody",
        alert=VIOLATED,
        series=merged(
            osd((10, PROVEN), (20, replace(SHORT, kv_commit=0.03))),
            *(replace(osd((30, _QUIET)), id=i) for i in (1, 2)),
        ),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="commits that take long because their thread waits for a CPU are critical, cause cpu",
        alert=VIOLATED,
        series=_wait_for_cpu(_SLOW_COMMITS, bstore_kv_sync=0.9),
        moments=(firing(25, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="commits that take long as all threads of the store wait for a CPU have cause cpu",
        alert=VIOLATED,
        series=_wait_for_cpu(_SLOW_COMMITS, bstore_kv_sync=0.35, bstore_aio=0.3),
        moments=(firing(25, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="an OSD without CPU that makes replica writes three times as slow is critical",
        alert=REPLICA,
        series=three((10, WELL), culprit=_STARVES, others=_SLOWER),
        moments=(silent(13), firing(18, SLOW_1), firing(25, SLOW_1)),
    ),
    RuleCase(
        name="one of OSDs without CPU that makes replica writes thrice as slow is not critical",
        alert=REPLICA,
        series=three((10, WELL), culprit=_STARVES, others=replace(_SLOWER, cpu_waiting=5)),
        moments=(silent(18), silent(25)),
    ),
    RuleCase(
        name="commits that wait for a CPU for a fifth of their time are critical, cause device",
        alert=VIOLATED,
        series=_wait_for_cpu(_SLOW_COMMITS, bstore_kv_sync=0.1, bstore_aio=0.1),
        moments=(firing(25, violated("critical", "device")),),
    ),
    RuleCase(
        name="what an OSD did without being at its end proves its capacity as well",
        alert=VIOLATED,
        series=merged(
            osd((10, replace(_QUIET, client=1900)), (20, replace(SHORT, client=300))),
        ),
        moments=(firing(25, violated("warning", "unknown")),),
        only=True,
    ),
    RuleCase(
        name="a device that reads slowly is critical by what reads wait",
        alert=VIOLATED,
        series=_wait_for_cpu(_SLOW_READS),
        moments=(firing(25, violated("critical", "device")),),
    ),
    RuleCase(
        name="reads that take long because their threads wait for a CPU are critical, cause cpu",
        alert=VIOLATED,
        series=_wait_for_cpu(replace(_SLOW_READS, cpu_waiting=8)),
        moments=(firing(25, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="reads that take long while threads wait for a CPU now and then have cause device",
        alert=VIOLATED,
        series=_wait_for_cpu(replace(_SLOW_READS, cpu_waiting=4)),
        moments=(firing(25, violated("critical", "device")),),
    ),
    RuleCase(
        name="a device that turns slow while backfill has a part of the work has cause device",
        alert=VIOLATED,
        series=merged(osd((10, PROVEN), (20, replace(SLOW, client=100, recovery=18)))),
        moments=(firing(25, violated("critical", "device")),),
    ),
    RuleCase(
        name="a disk that seeks, at its usual work, is not critical",
        alert=VIOLATED,
        series=merged(
            osd(
                (
                    30,
                    replace(
                        SHORT, client=200, kv_commit=0.2, device_latency=0.25, store_latency=0.4
                    ),
                ),
                media="hdd",
                capacity=200,
                reserved={"client": 250},
            )
        ),
        moments=(firing(20, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="large writes at the bandwidth of their device are never critical, however slow",
        alert=VIOLATED,
        series=merged(
            osd(
                (10, PROVEN),
                (20, replace(SHORT, client=700, kv_commit=0.1, device_bytes=5e8)),
            )
        ),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
]

# A disk with its DB on flash, at what it can do.
_DISK = replace(
    PROVEN, client=200, device_latency=0.02, kv_commit=0.002, own_write=0.02, db_latency=0.001
)
_DEAD_DISK = replace(_DISK, client=5, device_latency=1, device_ops=5, store_latency=0.5)
_SLOW_DB = replace(
    _DISK, client=20, kv_commit=0.3, store_latency=0.5, db_latency=0.2, db_ops=20, db_bytes=1e5
)
_FULL_DB = replace(_SLOW_DB, db_latency=0.05, db_ops=1000, db_bytes=3.5e8)
_DELETES = flat(
    "cephqos_recovery_slots",
    "2x240",
    side="local",
    state="in_progress",
    kind="delete",
    cluster=CLUSTER,
    ceph_daemon="osd.0",
)


def _kernel(cpus: float) -> Series:
    """How many the kernel uses for the OSD, which uses one itself."""
    name = "cephqos_daemon_cpu_seconds_total"
    own = {"job": "cephqos", "instance": "host1", "cluster": CLUSTER, "ceph_daemon": "osd.0"}
    return flat(name, f"0+{15 * cpus:g}x240", mode="system", **own)


def _beside_db(state: State) -> Series:
    hdd: dict[str, Any] = {"media": "hdd", "capacity": 200, "reserved": {"client": 100}}
    return merged(osd((10, _DISK), (20, state), (10, _DISK), **hdd))


DB = [
    RuleCase(
        name="a disk that has failed is critical, however much the device of its DB does",
        alert=VIOLATED,
        series=_beside_db(_DEAD_DISK),
        moments=(silent(9), firing(25, violated("critical", "device")), silent(37)),
    ),
    RuleCase(
        name="a device of the DB that turns slow beside a disk that is well is named",
        alert=VIOLATED,
        series=_beside_db(_SLOW_DB),
        moments=(silent(9), firing(25, violated("critical", "device", by="db_device")), silent(37)),
    ),
    RuleCase(
        name="placement groups whose deletion fills the device of the DB have cause store",
        alert=VIOLATED,
        series=merged(_beside_db(_FULL_DB), _DELETES),
        moments=(
            silent(9),
            firing(25, violated("critical", "store", by="pg_deletion")),
            silent(37),
        ),
    ),
    RuleCase(
        name="a device of the DB that moves as much as ever has not failed",
        alert=VIOLATED,
        series=_beside_db(_FULL_DB),
        moments=(silent(9), firing(25, violated("warning", "unknown"))),
    ),
    RuleCase(
        name="a compaction that fills the device of the DB has cause store",
        alert=VIOLATED,
        series=_beside_db(replace(_FULL_DB, compaction=0.9)),
        moments=(silent(9), firing(25, violated("critical", "store", by="compaction"))),
    ),
    RuleCase(
        name="commits that are slow while placement groups are deleted have cause store",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SLOW, device_latency=0.001))), _DELETES),
        moments=(silent(7), firing(23, violated("critical", "store", by="pg_deletion"))),
    ),
    RuleCase(
        name="a thread at its ceiling while placement groups are deleted has cause cpu",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SHORT, thread=0.98))), _DELETES),
        moments=(silent(7), firing(23, violated("critical", "cpu", by="pg_deletion"))),
    ),
    RuleCase(
        name="an OSD whose CPU goes into the kernel can wait: no setting of Ceph ends it at night",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SHORT, thread=0.98))), _kernel(2.5)),
        moments=(silent(7), firing(23, violated("warning", "cpu", by="kernel"))),
    ),
    RuleCase(
        name="a kernel that works as long as the OSD itself explains nothing",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SHORT, client=300, thread=0.98))), _kernel(1)),
        moments=(firing(23, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="an OSD that deletes placement groups, and serves its clients, alerts nobody",
        alert=VIOLATED,
        series=merged(_beside_db(_DISK), _DELETES),
        moments=(silent(12), silent(29)),
        only=True,
    ),
]

_EC = "cephqos_qos_delivered_is_lower_bound"

# Three times as slow as its peers, and twelve threads wait for a CPU.
_SHORT_OF_CPU = replace(
    HOLDS_UP, kv_commit=0.001, device_latency=0.001, cpu_waiting=12, replica_latency=0.02
)


def _uses_twice_the_cpu(series: Series) -> Series:
    used = "cephqos_daemon_cpu_seconds_total"
    return {
        name: "0+30x240" if name.startswith(used) and 'ceph_daemon="osd.1"' in name else values
        for name, values in series.items()
    }


def _leads_twice_as_many(before: State, **slow: Any) -> Series:
    """osd.1, with clients of its own, and replica writes that take seven times the median."""
    led = replace(
        _SHORT_OF_CPU,
        client=1000,
        immediate=300,
        replica_writes=300,
        in_progress=(30,),
        waiting=10,
        queue=(2, 3, 0, 4),
        store=20,
    )
    others = replace(WAITS, client=450, immediate=600, replica_writes=600)
    slower = replace(led, replica_latency=7 * others.replica_latency, **slow)
    return three((10, before), culprit=slower, others=others)


CPU = [
    RuleCase(
        name="an OSD that leads twice as many of the clients' writes as its peers is busy",
        alert=REPLICA,
        series=_leads_twice_as_many(WELL),
        moments=(silent(13), silent(25)),
    ),
    RuleCase(
        name="an OSD that leads twice as many and fills its device with them has no failed device",
        alert=REPLICA,
        series=_leads_twice_as_many(WELL, cpu_waiting=0.1, kv_commit=0.06, device_latency=0.03),
        moments=(silent(13), silent(25)),
    ),
    RuleCase(
        name="an OSD that leads twice as many writes, and does half of what it did, is critical",
        alert=REPLICA,
        series=_leads_twice_as_many(replace(WELL, immediate=1400)),
        moments=(silent(13), firing(25, SLOW_1)),
    ),
    RuleCase(
        name="an OSD that lacks the CPU that its peers have is critical at three times their time",
        alert=REPLICA,
        series=three((10, WELL), culprit=_SHORT_OF_CPU, others=WAITS),
        moments=(silent(13), firing(25, SLOW_1)),
    ),
    RuleCase(
        name="a thread at its ceiling while snapshots are trimmed has cause cpu by trimming",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, replace(SHORT, thread=0.98)), (10, PROVEN)),
            flat("cephqos_snaptrim_osd_pgs", "2x200", cluster=CLUSTER, ceph_daemon="osd.0"),
        ),
        moments=(silent(7), firing(23, violated("critical", "cpu", by="trimming")), silent(36)),
    ),
    RuleCase(
        name="an OSD that trims deleted snapshots, and serves its clients, alerts nobody",
        alert=VIOLATED,
        series=merged(
            osd((30, PROVEN)),
            flat("cephqos_snaptrim_osd_pgs", "2x200", cluster=CLUSTER, ceph_daemon="osd.0"),
        ),
        moments=(silent(12), silent(29)),
        only=True,
    ),
    RuleCase(
        name="an OSD that uses twice the CPU of its peers, and waits for more, is busy",
        alert=REPLICA,
        series=_uses_twice_the_cpu(three((10, WELL), culprit=_SHORT_OF_CPU, others=WAITS)),
        moments=(silent(13), silent(25)),
    ),
]

_HELD = State(client=100, in_progress=(0,), waiting=10, store=1, hold=0.4, queue=(3, 4, 2, 3))

COUNTED = [
    RuleCase(
        name="where the pools are erasure-coded, an OSD at its limit is not known to be idle",
        alert="CephQosAtLimitWhileIdle",
        series=merged(
            osd(
                (5, IDLE),
                (25, _HELD),
                limit={"client": 100},
                reserved={"client": 0},
            ),
            with_more(0, _EC, 1),
        ),
        moments=(silent(14), silent(29)),
    ),
    RuleCase(
        name="where the pools are erasure-coded, what is not counted accuses no OSD",
        alert="CephQosReservationViolatedUncounted",
        series=merged(osd((30, replace(SHORT, client=150))), with_more(0, _EC, 1)),
        moments=(firing(29, {"class": "client", "cluster": CLUSTER, "severity": "info"}),),
        only=True,
    ),
    RuleCase(
        name="nor does a host whose CPUs are busy, where the pools are erasure-coded",
        alert=VIOLATED,
        series=merged(
            osd((10, replace(PROVEN, client=150)), (20, replace(SHORT, client=150, thread=0.98))),
            with_more(0, _EC, 1),
        ),
        moments=(silent(20), silent(29)),
    ),
    RuleCase(
        name="a thread at its ceiling on an OSD that does far less than it did is critical too",
        alert=VIOLATED,
        series=merged(
            osd((10, PROVEN), (20, replace(SHORT, client=100, thread=0.98))),
            with_more(0, _EC, 1),
        ),
        moments=(firing(23, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="clients that wait in queues are seen though no waits at throttles are shown",
        alert=VIOLATED,
        series=without(
            ("cephqos_qos_throttle_wait",),
            osd((10, PROVEN), (20, replace(SHORT, store=1, store_latency=0.001))),
        ),
        moments=(silent(14), firing(25, violated("warning", "unknown"))),
    ),
    RuleCase(
        name="a device that fails under an erasure-coded pool is critical",
        alert=VIOLATED,
        series=merged(osd((10, PROVEN), (20, SLOW)), with_more(0, _EC, 1)),
        moments=(firing(25, violated("critical", "device")),),
    ),
    RuleCase(
        name="a target that is a reservation as well leaves a critical alert critical",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SLOW), target={"client": 1000})),
        moments=(firing(23, violated("critical", "device")),),
    ),
    RuleCase(
        name="queues that are seen now and then owe the same all the time",
        alert=VIOLATED,
        series=merged(
            osd(
                (8, PROVEN),
                *(
                    (2.5, replace(SHORT, client=420, store=1, queue=(2, 3, 0, 4))),
                    (0.5, replace(SHORT, client=420, store=1, queue=(0, 0, 0, 3))),
                )
                * 7,
            )
        ),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="an exporter that restarts every minute violates no reservation",
        alert=VIOLATED,
        series={
            name: " ".join([f"{(s := values.split('+')[1].split('x')[0])}+{s}x3"] * 30)
            if "_total" in name
            else values
            for name, values in osd((30, replace(BUSY, client=1050))).series().items()
        },
        moments=(silent(15), silent(29)),
    ),
    RuleCase(
        name="two exporters that do not agree on the media do not stop the rules",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, SLOW)),
            osd((8, PROVEN), (20, SLOW), instance="host2", media="hdd"),
        ),
        moments=(firing(23, violated("critical", "device")),),
    ),
]

CASES = [*DEVICES, *DB, *COUNTED, *CPU]
