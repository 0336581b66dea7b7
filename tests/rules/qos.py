"""Cases of the alerts on reservations, for one OSD and for a cluster."""

from dataclasses import replace

from .cases import RuleCase, firing, silent
from .series import BUSY, CLUSTER, IDLE, Series, SimulatedOsd, State, merged, osds

CLIENT = {"class": "client", "cluster": CLUSTER}
OSD0 = {**CLIENT, "ceph_daemon": "osd.0"}
VIOLATED = "CephQosReservationViolated"
WIDE = "CephQosReservationViolatedWidely"

# A size-3 pool on an OSD at its end: two thirds of what it does is for others.
SIZE3 = replace(BUSY, client=700, immediate=1400)
# Recovery that lacks its reservation beside them, with clients that want no more.
RECOVERY_BESIDE = State(
    client=300,
    immediate=1400,
    recovery=100,
    in_progress=(1, 0),
    recovery_queue=8,
    recovery_lag=2,
    depth=3,
    kv_commit=0.01,
)
SIZE3_AND_RECOVERY = replace(SIZE3, recovery=100, recovery_queue=8, recovery_lag=2)
# The same OSD after it gave what it is configured for, on a device that became slow.
PROVEN = replace(BUSY, client=2000)
SLOW = replace(BUSY, client=100, device_latency=0.2, kv_commit=0.3, store_latency=0.5)
# Fifty operations in progress, of which none ends: in its own store, or in that of another OSD.
STALLED = replace(IDLE, in_progress=(50,), present=0, store_used=0.1)
STALLED_ELSEWHERE = replace(STALLED, store_used=0)
# A device that ends what it has taken all at once, and hardly anything before: nobody waits for the
# scheduler, and what is measured at the end of work comes and goes.
_AT_ONCE = replace(SLOW, in_progress=(60,), waiting=0, queue=(0, 0, 0, 0))
_HARDLY = replace(_AT_ONCE, client=1, store=0)
SHORT = replace(BUSY, client=500)
RECOVERING = replace(BUSY, client=600, recovery=1400)


def osd(*timeline: tuple[float, State], **changes: object) -> SimulatedOsd:
    return replace(SimulatedOsd(timeline=timeline), **changes)  # type: ignore[arg-type]


def without(prefixes: tuple[str, ...], osd: SimulatedOsd) -> Series:
    """What is left of an OSD's series where some are not shown, or not kept."""
    return {name: values for name, values in osd.series().items() if not name.startswith(prefixes)}


# OSDs under WPQ, for which a policy's target is all there is.
TARGET_OSDS: dict[str, object] = {"in_force": "wpq", "capacity": None, "reserved": {}}


def violated(severity: str, cause: str, **more: str) -> dict[str, str]:
    return {**OSD0, "severity": severity, "cause": cause, **more}


_SLOW_DEVICE = violated("critical", "device")
FULL_OF_REPLICAS = {**CLIENT, "severity": "warning", "cause": "replica_writes"}

RESERVATION = [
    RuleCase(
        name="a device that became slow is critical after five minutes and ends when it is well",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SLOW), (12, PROVEN))),
        moments=(
            silent(7),
            silent(13),
            firing(14.75, _SLOW_DEVICE),
            firing(27, _SLOW_DEVICE),
            silent(32),
        ),
    ),
    RuleCase(
        name="a device that ends its work in bursts is critical",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), *((1, _AT_ONCE), (1.5, _HARDLY)) * 8, (12, PROVEN))),
        moments=(
            silent(7),
            firing(18, _SLOW_DEVICE),
            firing(20, _SLOW_DEVICE),
            firing(22, _SLOW_DEVICE),
            firing(27, _SLOW_DEVICE),
            silent(32),
        ),
    ),
    RuleCase(
        name="a device that ends nothing any more is critical, and not who waits for it",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, STALLED), (12, PROVEN)),
            replace(osd((8, PROVEN), (20, STALLED_ELSEWHERE), (12, PROVEN)), id=1),
        ),
        moments=(silent(13), firing(16, _SLOW_DEVICE), firing(27, _SLOW_DEVICE), silent(32)),
        only=True,
    ),
    RuleCase(
        name="replica work that fills an OSD for half an hour is one warning, for hours",
        alert=WIDE,
        series=merged(osd((5, IDLE), (45, SIZE3), (10, IDLE))),
        moments=(
            silent(13),
            silent(33),
            firing(38, FULL_OF_REPLICAS),
            firing(55, FULL_OF_REPLICAS),
        ),
        only=True,
    ),
    RuleCase(
        name="replica work that fills an OSD for a time is told to nobody",
        alert=WIDE,
        series=merged(osd((5, IDLE), (25, SIZE3), (10, IDLE))),
        moments=(silent(13), silent(29), silent(38)),
        only=True,
    ),
    RuleCase(
        name="recovery that takes more than its share is named and is critical",
        alert=VIOLATED,
        series=merged(osd((5, IDLE), (20, RECOVERING))),
        moments=(firing(20, violated("critical", "other_class", by="background_recovery")),),
    ),
    RuleCase(
        name="a thread at its ceiling is critical",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SHORT, thread=0.98)))),
        moments=(firing(23, violated("critical", "cpu")),),
    ),
    RuleCase(
        name="what cannot be explained is a warning of cause unknown",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT))),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="a reservation above the limit is critical with cause limit",
        alert=VIOLATED,
        series=merged(
            osd(
                (8, PROVEN),
                (20, replace(BUSY, client=300, hold=0.5)),
                limit={"client": 300},
            )
        ),
        moments=(firing(23, violated("critical", "limit")),),
    ),
    RuleCase(
        name="one shard that starves while the others idle is critical with cause one_shard",
        alert=VIOLATED,
        series=merged(
            osd(
                (20, IDLE),
                (
                    20,
                    State(
                        client=200,
                        in_progress=(12,),
                        waiting=10,
                        store=1,
                        queue=(12, 0, 0, 0),
                        lag=(1.5, 0, 0, 0),
                    ),
                ),
            )
        ),
        moments=(firing(35, violated("critical", "one_shard")),),
    ),
    RuleCase(
        name="a shard that starves is told so though nearly all time is spent in its queue",
        alert=VIOLATED,
        series=merged(
            osd(
                (20, IDLE),
                (
                    20,
                    State(
                        client=200,
                        in_progress=(24,),
                        waiting=47,
                        store=1,
                        write_latency=0.24,
                        queue=(24, 0, 0, 0),
                        lag=(1.5, 0, 0, 0),
                    ),
                ),
            )
        ),
        moments=(firing(35, violated("critical", "one_shard")),),
    ),
    RuleCase(
        name="recovery that waits past its reservation is a warning",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(PROVEN, recovery_queue=8, recovery_lag=2)))),
        moments=(
            firing(
                23,
                {
                    **OSD0,
                    "class": "background_recovery",
                    "severity": "warning",
                    "cause": "other_class",
                    "by": "client",
                },
            ),
        ),
    ),
    RuleCase(
        name="two exporters that see one OSD count it once",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SLOW)), osd((8, PROVEN), (20, SLOW), instance="host2")),
        moments=(firing(23, _SLOW_DEVICE),),
        values=(
            (
                6,
                'round(sum(osd_class:cephqos_attained_ops:rate{class="client",cluster="c1"}))',
                2000,
            ),
            (
                6,
                'round(sum(instance_class:cephqos_ops:sum{figure="attained",class="client",cluster="c1"}))',
                2000,
            ),
        ),
    ),
    RuleCase(
        name="a burst of one second in five is no demand",
        alert=VIOLATED,
        series=merged(
            osd((30, replace(SHORT, in_progress=(0, 0, 60, 0, 0), waiting=4, queue=(0, 0, 0, 0))))
        ),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a burst of one second in five is no demand, not even in step with the scrapes",
        alert=VIOLATED,
        series=merged(osd((30, replace(SHORT, in_progress=(60,), present=12, queue=(0, 0, 0, 0))))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a hot object on one shard that gets its shard's share violates nothing",
        alert=VIOLATED,
        series=merged(
            osd((30, State(client=400, in_progress=(20,), waiting=6, store=3, queue=(14, 0, 0, 0))))
        ),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a rate-limited load below its reservation violates nothing",
        alert=VIOLATED,
        series=merged(osd((30, State(client=300, in_progress=(1, 0, 2), waiting=0.1, store=1)))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a client that keeps some operations in flight and waits for none violates nothing",
        alert=VIOLATED,
        series=merged(osd((30, State(client=300, in_progress=(3, 4, 5), waiting=0.2, store=2)))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a class without demand violates nothing however little it gets",
        alert=VIOLATED,
        series=merged(osd((30, IDLE))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a restart of the exporter under load is no drop",
        alert=VIOLATED,
        series=merged(
            _reset := {
                name: values
                if "_total" not in name
                else " ".join([f"{(s := values.split('+')[1].split('x')[0])}+{s}x59", f"0+{s}x59"])
                for name, values in osd((30, replace(BUSY, client=1500))).series().items()
            }
        ),
        moments=(silent(14), silent(16), silent(20), silent(29)),
        only=True,
    ),
    RuleCase(
        name="an OSD that is gone from the scrape is no violation",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (10, replace(SLOW, scrape=False)), (10, PROVEN))),
        moments=(silent(13), silent(17), silent(21), silent(26)),
    ),
    RuleCase(
        name="a lost scrape now and then does not end a violation",
        alert=VIOLATED,
        series=merged(
            osd(
                (8, PROVEN),
                *((4, SLOW), (0.25, replace(SLOW, scrape=False))) * 5,
            )
        ),
        moments=(firing(26, _SLOW_DEVICE), firing(28, _SLOW_DEVICE)),
    ),
    RuleCase(
        name="where work piles up in BlueStore, one shard's queue says too little",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SLOW, client=400, queue=(2, 0, 0, 0))))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    RuleCase(
        name="replica work that is less than what the class lacks is not its cause",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, replace(SLOW, immediate=450, recovery=200)))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    RuleCase(
        name="an OSD that has just come into sight is told after as long as any other",
        alert=VIOLATED,
        series=merged(osd((8, replace(SHORT, scrape=False)), (20, SHORT))),
        moments=(silent(11.5), firing(20, violated("warning", "capacity"))),
    ),
    RuleCase(
        name="an OSD of 16.2, which shows neither queues nor lag, is told by what it attains",
        alert=VIOLATED,
        series=without(
            ("cephqos_qos_queue_length", "cephqos_qos_reservation_lag"),
            osd((8, PROVEN), (20, SLOW), (12, PROVEN)),
        ),
        moments=(silent(13), firing(15, _SLOW_DEVICE), silent(32)),
    ),
    RuleCase(
        name="without figures of devices the slow one is told by its commits",
        alert=VIOLATED,
        series=without(("cephqos_disks",), osd((8, PROVEN), (20, SLOW))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    RuleCase(
        name="without figures of demand nothing is violated",
        alert=VIOLATED,
        series=without(("cephqos_qos_client_",), osd((8, PROVEN), (20, SHORT))),
        moments=(silent(15), silent(27)),
        only=True,
    ),
    RuleCase(
        name="without reservations, as under WPQ, nothing is violated",
        alert=VIOLATED,
        series=without(("cephqos_qos_reservation_",), osd((8, PROVEN), (20, SHORT))),
        moments=(silent(15), silent(27)),
        only=True,
    ),
    RuleCase(
        name="a missed policy target is not a violated reservation as well",
        alert=VIOLATED,
        series=merged(
            osd(
                (8, PROVEN),
                (20, SHORT),
                in_force="wpq",
                capacity=None,
                reserved={"client": 1000},
                target={"client": 1000},
            )
        ),
        moments=(silent(18), silent(26)),
    ),
]

_MANY = {"class": "client", "cluster": CLUSTER, "severity": "critical", "cause": "device"}

CLUSTER_WIDE = [
    RuleCase(
        name="a policy target that four OSDs miss under WPQ is no violated reservation",
        alert=WIDE,
        series=merged(
            *osds(
                4,
                ((8, PROVEN), (20, SHORT)),
                in_force="wpq",
                capacity=None,
                reserved={"client": 1000},
                target={"client": 1000},
            )
        ),
        moments=(silent(18), silent(26)),
    ),
    RuleCase(
        name="four OSDs with the same cause are one alert for the cluster",
        alert=WIDE,
        series=merged(*osds(4, ((8, PROVEN), (12, SLOW), (8, PROVEN)))),
        moments=(silent(13), firing(14, _MANY), firing(18, _MANY), silent(33)),
    ),
    RuleCase(
        name="four OSDs are one alert whatever their causes, if each can be ended at night",
        alert=WIDE,
        series=merged(
            *osds(3, ((8, PROVEN), (12, SLOW))),
            replace(osd((8, PROVEN), (12, replace(SHORT, thread=0.98))), id=3),
        ),
        moments=(silent(13), firing(18, _MANY)),
    ),
    RuleCase(
        name="replica work on all OSDs is one warning for the cluster",
        alert=WIDE,
        series=merged(*osds(4, ((5, IDLE), (35, SIZE3)))),
        moments=(
            silent(9.5),
            firing(39, FULL_OF_REPLICAS),
        ),
    ),
    RuleCase(
        name="recovery beside replica work is one warning for the cluster too, on one OSD or three",
        alert=WIDE,
        series=merged(*osds(3, ((5, IDLE), (45, RECOVERY_BESIDE)))),
        moments=(
            silent(9.5),
            firing(39, {**FULL_OF_REPLICAS, "class": "background_recovery"}),
            firing(49, {**FULL_OF_REPLICAS, "class": "background_recovery"}),
        ),
        only=True,
    ),
    RuleCase(
        name="clients and recovery beside replica work are one warning, about the clients",
        alert=WIDE,
        series=merged(*osds(3, ((5, IDLE), (45, SIZE3_AND_RECOVERY)))),
        moments=(silent(9.5), firing(39, FULL_OF_REPLICAS), firing(49, FULL_OF_REPLICAS)),
        only=True,
    ),
    RuleCase(
        name="three of three slow OSDs are told one by one",
        alert=WIDE,
        series=merged(*osds(3, ((8, PROVEN), (20, SLOW)))),
        moments=(silent(18), silent(26)),
    ),
    RuleCase(
        name="one slow OSD of five is no matter of the whole cluster",
        alert=WIDE,
        series=merged(*osds(4, ((28, PROVEN),)), replace(osd((8, PROVEN), (20, SLOW)), id=4)),
        moments=(silent(18), silent(26)),
    ),
]

CASES = [*RESERVATION, *CLUSTER_WIDE]
