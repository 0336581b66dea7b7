"""Cases of the alerts on promises."""

from dataclasses import replace
from typing import Any

from .cases import Case, firing, silent
from .series import BUSY, CLUSTER, IDLE, STEP, Osd, Series, State, flat, merged, osds

CLIENT = {"class": "client", "cluster": CLUSTER}
OSD0 = {**CLIENT, "ceph_daemon": "osd.0"}
VIOLATED = "CephQosReservationViolated"
WIDE = "CephQosReservationViolatedClusterWide"
TARGET = "CephQosPolicyTargetMissed"
LIMIT = "CephQosHeldAtLimit"
OVERSTATED = "CephQosCapacityOverstated"
UNMEASURED = "CephQosCapacityNeverMeasured"
DIFFER = "CephQosSettingsDiffer"
MIXED = "CephQosSchedulersMixed"
WHOLE = "CephQosReservationsExceedWhole"

# A size-3 pool on an OSD at its end: two thirds of what it does is for others.
SIZE3 = replace(BUSY, client=700, immediate=1400)
# The same OSD after it gave what it is configured for, on a device that became slow.
PROVEN = replace(BUSY, client=2000)
SLOW = replace(BUSY, client=100, device_latency=0.2, kv_commit=0.3, store_latency=0.5)
SHORT = replace(BUSY, client=500)
RECOVERING = replace(BUSY, client=600, recovery=1400)


def _osd(*timeline: tuple[float, State], **changes: object) -> Osd:
    return replace(Osd(timeline=timeline), **changes)  # type: ignore[arg-type]


def _without(prefixes: tuple[str, ...], osd: Osd) -> Series:
    """What is left of an OSD's series where some are not shown, or not kept."""
    return {name: values for name, values in osd.series().items() if not name.startswith(prefixes)}


def _violated(severity: str, cause: str, **more: str) -> dict[str, str]:
    return {**OSD0, "severity": severity, "cause": cause, **more}


_SLOW_DEVICE = _violated("page", "device")

RESERVATION = [
    Case(
        name="a device that became slow pages after five minutes and resolves when it is well",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, SLOW), (12, PROVEN))),
        moments=(
            silent(7),
            silent(13),
            firing(14.75, _SLOW_DEVICE),
            firing(27, _SLOW_DEVICE),
            silent(30),
        ),
    ),
    Case(
        name="replica work that fills an OSD is a ticket",
        alert=VIOLATED,
        series=merged(_osd((5, IDLE), (20, SIZE3), (10, IDLE))),
        moments=(
            silent(9.5),
            firing(13, _violated("ticket", "immediate", by="immediate")),
            silent(27),
        ),
        only=True,
    ),
    Case(
        name="recovery that takes more than its share is named and pages",
        alert=VIOLATED,
        series=merged(_osd((5, IDLE), (20, RECOVERING))),
        moments=(firing(20, _violated("page", "interference", by="background_recovery")),),
    ),
    Case(
        name="a thread at its ceiling pages",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, replace(SHORT, thread=0.98)))),
        moments=(firing(23, _violated("page", "cpu")),),
    ),
    Case(
        name="what cannot be explained is a ticket of cause unknown",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, SHORT))),
        moments=(firing(23, _violated("ticket", "unknown")),),
    ),
    Case(
        name="a reservation above the limit pages with cause limit",
        alert=VIOLATED,
        series=merged(
            _osd(
                (8, PROVEN),
                (20, replace(BUSY, client=300, hold=0.5)),
                limit={"client": 300},
            )
        ),
        moments=(firing(23, _violated("page", "limit")),),
    ),
    Case(
        name="one shard that starves while the others idle pages with cause skew",
        alert=VIOLATED,
        series=merged(
            _osd(
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
        moments=(firing(35, _violated("page", "skew")),),
    ),
    Case(
        name="recovery that waits past its reservation is a ticket",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, replace(PROVEN, recovery_queue=8, recovery_lag=2)))),
        moments=(
            firing(
                23,
                {
                    **OSD0,
                    "class": "background_recovery",
                    "severity": "ticket",
                    "cause": "interference",
                    "by": "client",
                },
            ),
        ),
    ),
    Case(
        name="two exporters that see one OSD count it once",
        alert=VIOLATED,
        series=merged(
            _osd((8, PROVEN), (20, SLOW)), _osd((8, PROVEN), (20, SLOW), instance="host2")
        ),
        moments=(firing(23, _SLOW_DEVICE),),
        values=(
            (6, "sum(osd_class:cephqos_attained_ops:rate{class='client'})", 2000),
            (6, "sum(instance_class:cephqos_attained_ops:sum{class='client'})", 2000),
        ),
    ),
    Case(
        name="a burst of one second in five is no demand",
        alert=VIOLATED,
        series=merged(
            _osd((30, replace(SHORT, in_progress=(0, 0, 60, 0, 0), waiting=4, queue=(0, 0, 0, 0))))
        ),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    Case(
        name="a hot object on one shard that gets its shard's share violates nothing",
        alert=VIOLATED,
        series=merged(
            _osd(
                (30, State(client=400, in_progress=(20,), waiting=6, store=3, queue=(14, 0, 0, 0)))
            )
        ),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    Case(
        name="a rate-limited load below its reservation violates nothing",
        alert=VIOLATED,
        series=merged(_osd((30, State(client=300, in_progress=(1, 0, 2), waiting=0.1, store=1)))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    Case(
        name="a client that keeps some operations in flight and waits for none violates nothing",
        alert=VIOLATED,
        series=merged(_osd((30, State(client=300, in_progress=(3, 4, 5), waiting=0.2, store=2)))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    Case(
        name="a class without demand violates nothing however little it gets",
        alert=VIOLATED,
        series=merged(_osd((30, IDLE))),
        moments=(silent(10), silent(29)),
        only=True,
    ),
    Case(
        name="a restart of the exporter under load is no drop",
        alert=VIOLATED,
        series=merged(
            _reset := {
                name: values
                if "_total" not in name
                else " ".join([f"{(s := values.split('+')[1].split('x')[0])}+{s}x59", f"0+{s}x59"])
                for name, values in _osd((30, replace(BUSY, client=1500))).series().items()
            }
        ),
        moments=(silent(14), silent(16), silent(20), silent(29)),
        only=True,
    ),
    Case(
        name="an OSD that is gone from the scrape is no violation",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (10, replace(SLOW, scrape=False)), (10, PROVEN))),
        moments=(silent(13), silent(17), silent(21), silent(26)),
    ),
    Case(
        name="a lost scrape now and then does not end a violation",
        alert=VIOLATED,
        series=merged(
            _osd(
                (8, PROVEN),
                *((4, SLOW), (0.25, replace(SLOW, scrape=False))) * 5,
            )
        ),
        moments=(firing(26, _SLOW_DEVICE), firing(28, _SLOW_DEVICE)),
    ),
    Case(
        name="where work piles up in BlueStore, one shard's queue does not tell what is owed",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, replace(SLOW, client=400, queue=(2, 0, 0, 0))))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    Case(
        name="replica work that is less than what the class lacks is not its cause",
        alert=VIOLATED,
        series=merged(_osd((8, PROVEN), (20, replace(SLOW, immediate=650, recovery=400)))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    Case(
        name="an OSD of 16.2, which shows neither queues nor lag, is told by what it attains",
        alert=VIOLATED,
        series=_without(
            ("cephqos_qos_queue_length", "cephqos_qos_reservation_lag"),
            _osd((8, PROVEN), (20, SLOW), (12, PROVEN)),
        ),
        moments=(silent(13.5), firing(15, _SLOW_DEVICE), silent(30)),
    ),
    Case(
        name="without figures of devices the slow one is told by its commits",
        alert=VIOLATED,
        series=_without(("cephqos_disks",), _osd((8, PROVEN), (20, SLOW))),
        moments=(firing(23, _SLOW_DEVICE),),
    ),
    Case(
        name="without figures of demand nothing is violated",
        alert=VIOLATED,
        series=_without(("cephqos_qos_client_",), _osd((8, PROVEN), (20, SLOW))),
        moments=(silent(15), silent(27)),
        only=True,
    ),
    Case(
        name="without reservations, as under WPQ, nothing is violated",
        alert=VIOLATED,
        series=_without(("cephqos_qos_reservation_",), _osd((8, PROVEN), (20, SHORT))),
        moments=(silent(15), silent(27)),
        only=True,
    ),
    Case(
        name="a missed policy target is not a violated reservation as well",
        alert=VIOLATED,
        series=merged(
            _osd(
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

_MANY = {"class": "client", "cluster": CLUSTER, "severity": "page", "cause": "device"}

CLUSTER_WIDE = [
    Case(
        name="half of the OSDs with the same cause are one alert for the cluster",
        alert=WIDE,
        series=merged(*osds(4, ((8, PROVEN), (12, SLOW), (8, PROVEN)))),
        moments=(silent(13.5), firing(14, _MANY), firing(18, _MANY), silent(33)),
    ),
    Case(
        name="replica work on all OSDs is one ticket for the cluster",
        alert=WIDE,
        series=merged(*osds(4, ((5, IDLE), (20, SIZE3)))),
        moments=(
            silent(9.5),
            firing(13, {**_MANY, "severity": "ticket", "cause": "immediate", "by": "immediate"}),
        ),
    ),
    Case(
        name="three of three slow OSDs are told one by one",
        alert=WIDE,
        series=merged(*osds(3, ((8, PROVEN), (20, SLOW)))),
        moments=(silent(18), silent(26)),
    ),
    Case(
        name="one slow OSD of five is no matter of the whole cluster",
        alert=WIDE,
        series=merged(*osds(4, ((28, PROVEN),)), replace(_osd((8, PROVEN), (20, SLOW)), id=4)),
        moments=(silent(18), silent(26)),
    ),
]

_CLUSTER_TARGET = flat(
    "cephqos_qos_cluster_target_reservation_normalised_ops_per_second",
    3000,
    cluster=CLUSTER,
    class_="client",
    instance="host1",
)
_WPQ: dict[str, Any] = {"in_force": "wpq", "capacity": None, "reserved": {}}

TARGETS = [
    Case(
        name="a target for one OSD that WPQ does not meet is missed, by recovery",
        alert=TARGET,
        series=merged(
            _osd(
                (8, PROVEN),
                (20, RECOVERING),
                (10, PROVEN),
                target={"client": 1000},
                in_force="wpq",
                capacity=None,
                reserved={"client": 1000},
            )
        ),
        moments=(
            silent(13.5),
            firing(
                14.5,
                {
                    **OSD0,
                    "severity": "ticket",
                    "scope": "osd",
                    "cause": "interference",
                    "by": "background_recovery",
                },
            ),
            silent(32),
        ),
    ),
    Case(
        name="a target for the cluster is missed though no single OSD has one",
        alert=TARGET,
        series=merged(
            *osds(2, ((8, PROVEN), (20, RECOVERING), (10, PROVEN)), **_WPQ), _CLUSTER_TARGET
        ),
        moments=(
            silent(13),
            firing(
                14,
                {
                    **CLIENT,
                    "severity": "ticket",
                    "scope": "cluster",
                    "cause": "interference",
                    "by": "background_recovery",
                },
            ),
            silent(32),
        ),
    ),
    Case(
        name="a target for one OSD that is just met while recovery takes the rest",
        alert=TARGET,
        series=merged(
            _osd(
                (8, PROVEN),
                (20, replace(RECOVERING, client=920)),
                target={"client": 1000},
                in_force="wpq",
                capacity=None,
                reserved={"client": 1000},
            )
        ),
        moments=(silent(15), silent(27)),
    ),
    Case(
        name="a target for the cluster is met by the sum though one OSD gets little",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, replace(PROVEN, recovery=100)),), **_WPQ),
            replace(_osd((28, RECOVERING), **_WPQ), id=2),
            _CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    Case(
        name="a target without demand is not missed",
        alert=TARGET,
        series=merged(
            *osds(2, ((30, State(client=200, in_progress=(1, 0))),), **_WPQ), _CLUSTER_TARGET
        ),
        moments=(silent(15), silent(29)),
        only=True,
    ),
]

# What waits behind a limit waits in the queue, and is not in progress.
_HELD = State(client=100, in_progress=(0,), waiting=10, store=1, hold=0.4, queue=(3, 4, 2, 3))
_LIMITED = {"limit": {"client": 100}, "reserved": {"client": 0}}

LIMITS = [
    Case(
        name="a class held at its limit while the OSD idles",
        alert=LIMIT,
        series=merged(_osd((5, IDLE), (20, _HELD), (10, IDLE), **_LIMITED)),
        moments=(
            silent(9.5),
            firing(10.5, {**OSD0, "severity": "ticket", "cause": "limit"}),
            silent(27),
        ),
        only=True,
    ),
    Case(
        name="a class at its limit is told by what it gets where tags are not shown",
        alert=LIMIT,
        series=_without(
            ("cephqos_qos_limit_hold",),
            _osd((5, IDLE), (20, replace(_HELD, client=95)), **_LIMITED),
        ),
        moments=(firing(20, {**OSD0, "severity": "ticket", "cause": "limit"}),),
    ),
    Case(
        name="a class at its limit on a busy OSD is what limits are for",
        alert=LIMIT,
        series=merged(_osd((5, IDLE), (25, replace(_HELD, recovery=1700, depth=4)), **_LIMITED)),
        moments=(silent(14), silent(29)),
    ),
]

_OVERSTATED = {"capacity": 21500, "reserved": {"client": 10750}}
_TOO_MUCH = {
    "ceph_daemon": "osd.0",
    "cluster": CLUSTER,
    "severity": "ticket",
    "cause": "capacity",
}


def _set_anew(osd: Osd, minute: float, **changes: object) -> Series:
    """An OSD whose settings change at a minute: one info series ends and another begins."""
    before, after = osd.series(), replace(osd, **changes).series()  # type: ignore[arg-type]
    (old,), (new,) = (
        [name for name in series if name.startswith("cephqos_qos_scheduler_info")]
        for series in (before, after)
    )
    count = round(minute * 60 / STEP)
    return before | {old: f"1x{count - 1} stale", new: f"_x{count} 1x240"}


CAPACITY = [
    Case(
        name="a capacity that the saturated OSD never reached",
        alert=OVERSTATED,
        series=merged(_osd((5, IDLE), (20, BUSY), (10, IDLE), **_OVERSTATED)),
        moments=(silent(9.5), firing(10, _TOO_MUCH), silent(30)),
    ),
    Case(
        name="the same OSD's clients are a ticket of cause capacity, not a page",
        alert=VIOLATED,
        series=merged(_osd((5, IDLE), (20, BUSY), **_OVERSTATED)),
        moments=(firing(20, _violated("ticket", "capacity")),),
    ),
    Case(
        name="an OSD that was once seen to reach its capacity is slow, not overstated",
        alert=OVERSTATED,
        series=merged(_osd((8, PROVEN), (20, SLOW))),
        moments=(silent(18), silent(27)),
    ),
    Case(
        name="an idle OSD proves nothing about its capacity",
        alert=OVERSTATED,
        series=merged(_osd((30, State(client=50, in_progress=(1, 0))), **_OVERSTATED)),
        moments=(silent(15), silent(29)),
        only=True,
    ),
    Case(
        name="a default capacity on a real device, until somebody measures",
        alert=UNMEASURED,
        series=_set_anew(_osd((40, IDLE), origin="default", media="hdd"), 25, origin="mon"),
        moments=(
            silent(14),
            firing(
                16,
                {
                    "ceph_daemon": "osd.0",
                    "cluster": CLUSTER,
                    "media": "hdd",
                    "severity": "ticket",
                },
            ),
            silent(26),
        ),
    ),
    Case(
        name="a default capacity on a loop device is a lab",
        alert=UNMEASURED,
        series=merged(_osd((40, IDLE), origin="default", device="loop3")),
        moments=(silent(16), silent(39)),
        only=True,
    ),
]

_MEDIA = {"cluster": CLUSTER, "media": "ssd", "severity": "ticket"}

SETTINGS = [
    Case(
        name="two profiles among the SSDs of a cluster, until they agree",
        alert=DIFFER,
        series=merged(
            _osd((40, IDLE)),
            _set_anew(_osd((40, IDLE), id=1, profile="high_client_ops"), 25, profile="balanced"),
        ),
        moments=(silent(14), firing(16, _MEDIA), silent(26)),
    ),
    Case(
        name="two schedulers among the HDDs of a cluster, and two exporters that see them",
        alert=DIFFER,
        series=merged(
            *(
                _osd((20, IDLE), id=i, media="hdd", instance=host, in_force=queue, profile="")
                for i, queue in enumerate(("wpq", "mclock_scheduler"))
                for host in ("host1", "host2")
            ),
        ),
        moments=(silent(14), firing(16, {**_MEDIA, "media": "hdd"})),
    ),
    Case(
        name="a profile that differs in another cluster",
        alert=DIFFER,
        series=merged(
            _osd((40, IDLE)), _osd((40, IDLE), id=1, profile="high_client_ops", cluster="c2")
        ),
        moments=(silent(16), silent(39)),
    ),
    Case(
        name="SSDs and HDDs may differ",
        alert=DIFFER,
        series=merged(
            _osd((40, IDLE)), _osd((40, IDLE), id=1, profile="high_client_ops", media="hdd")
        ),
        moments=(silent(16), silent(39)),
        only=True,
    ),
    Case(
        name="OSDs that are restarted one after the other may differ for a while",
        alert=DIFFER,
        series=merged(
            _osd((40, IDLE)),
            _osd((40, IDLE), id=1, profile="high_client_ops"),
            *(_osd((5 + 3 * i, IDLE), id=2 + i, restarts=True) for i in range(3)),
        ),
        moments=(silent(25), silent(39)),
    ),
    Case(
        name="WPQ beside mClock, until the last OSD has it",
        alert=MIXED,
        series=merged(
            _osd((40, IDLE)),
            _set_anew(
                _osd((40, IDLE), id=1, media="hdd", in_force="wpq", profile=""),
                25,
                in_force="mclock_scheduler",
            ),
        ),
        moments=(silent(14), firing(16, {"cluster": CLUSTER, "severity": "ticket"}), silent(26)),
    ),
    Case(
        name="WPQ beside mClock for as long as OSDs are restarted one after the other",
        alert=MIXED,
        series=merged(
            _osd((40, IDLE)),
            _osd((40, IDLE), id=1, in_force="wpq"),
            *(_osd((5 + 3 * i, IDLE), id=2 + i, restarts=True) for i in range(3)),
        ),
        moments=(silent(25), silent(39)),
    ),
    Case(
        name="one scheduler everywhere, as far as it is known",
        alert=MIXED,
        series=merged(
            *osds(3, ((40, IDLE),)), _osd((40, IDLE), id=3, media="", in_force="unknown")
        ),
        moments=(silent(16), silent(39)),
        only=True,
    ),
    Case(
        name="a custom profile that reserves more than there is, until a built-in one does",
        alert=WHOLE,
        series=_set_anew(
            _osd(
                (30, IDLE),
                profile="custom",
                reserved={"client": 1400, "background_recovery": 1000},
            ),
            15,
            profile="balanced",
        ),
        moments=(
            silent(4),
            firing(6, {"ceph_daemon": "osd.0", "cluster": CLUSTER, "severity": "ticket"}),
            silent(16),
        ),
    ),
    Case(
        name="a custom profile that reserves all there is and no more, seen by two exporters",
        alert=WHOLE,
        series=merged(
            *(
                _osd(
                    (30, IDLE),
                    profile="custom",
                    instance=host,
                    reserved={"client": 1000, "background_recovery": 1000},
                )
                for host in ("host1", "host2")
            )
        ),
        moments=(silent(6), silent(29)),
    ),
    Case(
        name="a built-in profile of 20.2 reserves 105 % by design",
        alert=WHOLE,
        series=merged(_osd((30, IDLE), reserved={"client": 1000, "background_recovery": 1100})),
        moments=(silent(6), silent(29)),
        only=True,
    ),
]

CASES = [*RESERVATION, *CLUSTER_WIDE, *TARGETS, *LIMITS, *CAPACITY, *SETTINGS]
