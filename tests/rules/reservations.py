"""Cases of the alerts on targets, limits, capacities and settings."""

from dataclasses import replace
from typing import Any

from .cases import RuleCase, firing, silent
from .qos import CLIENT, OSD0, PROVEN, RECOVERING, SIZE3, SLOW, VIOLATED, osd, violated, without
from .series import BUSY, CLUSTER, IDLE, STEP, Series, SimulatedOsd, State, flat, merged, osds

TARGET = "CephQosPolicyTargetViolated"
LIMIT = "CephQosAtLimitWhileIdle"
OVERSTATED = "CephQosCapacityOverstated"
UNMEASURED = "CephQosCapacityNeverMeasured"
DIFFER = "CephQosSettingsDiffer"
MIXED = "CephQosSchedulersMixed"
WHOLE = "CephQosReservationsExceedWhole"

CLUSTER_TARGET = flat(
    "cephqos_qos_cluster_target_reservation_normalised_ops_per_second",
    3000,
    cluster=CLUSTER,
    class_="client",
    instance="host1",
)
CLUSTER_VIOLATED = {
    **CLIENT,
    "severity": "warning",
    "scope": "cluster",
    "cause": "other_class",
    "by": "background_recovery",
}
WPQ: dict[str, Any] = {"in_force": "wpq", "capacity": None, "reserved": {}}
_KEPT = {"client": 500, "background_recovery": 100}
_CONTENT = State(client=80, in_progress=(1, 0, 0, 1), store=0.1, store_latency=0.001)

TARGETS = [
    RuleCase(
        name="a target for one OSD that WPQ does not meet is missed, by recovery",
        alert=TARGET,
        series=merged(
            osd(
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
            silent(13),
            firing(
                14.5,
                {
                    **OSD0,
                    "severity": "warning",
                    "scope": "osd",
                    "cause": "other_class",
                    "by": "background_recovery",
                },
            ),
            silent(32),
        ),
    ),
    RuleCase(
        name="a target for the cluster is missed though no single OSD has one",
        alert=TARGET,
        series=merged(
            *osds(2, ((8, PROVEN), (20, RECOVERING), (10, PROVEN)), **WPQ), CLUSTER_TARGET
        ),
        moments=(
            silent(13),
            firing(
                14,
                CLUSTER_VIOLATED,
            ),
            silent(32),
        ),
    ),
    RuleCase(
        name="a target for one OSD that is just met while recovery takes the rest",
        alert=TARGET,
        series=merged(
            osd(
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
    RuleCase(
        name="a target for the cluster is met by the sum though one OSD gets little",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, replace(PROVEN, recovery=100)),), **WPQ),
            replace(osd((28, RECOVERING), **WPQ), id=2),
            CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="a target for one OSD without demand is not missed",
        alert=TARGET,
        series=merged(
            osd(
                (30, State(client=200, in_progress=(1, 0))),
                target={"client": 1000},
                **{**WPQ, "reserved": {"client": 1000}},
            )
        ),
        moments=(silent(15), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a target for the cluster is not missed where one OSD of three is wanted more",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, State(client=200, in_progress=(1, 0))),), **WPQ),
            replace(osd((28, RECOVERING), **WPQ), id=2),
            CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="a target for the cluster is missed where one OSD of three holds up all clients",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, State(client=600, in_progress=(6, 4, 9))),), **WPQ),
            replace(osd((28, RECOVERING), **WPQ), id=2),
            CLUSTER_TARGET,
        ),
        moments=(
            firing(
                15,
                CLUSTER_VIOLATED,
            ),
        ),
    ),
    RuleCase(
        name="a target for the cluster is not missed where one OSD has a hot object",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, State(client=600, in_progress=(6, 4, 9), kv_commit=0.008)),), **WPQ),
            replace(osd((8, PROVEN), (20, replace(BUSY, client=600)), **WPQ), id=2),
            CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="a target for the cluster is not missed where one OSD of three holds up a third",
        alert=TARGET,
        series=merged(
            *osds(2, ((28, State(client=600, in_progress=(18, 14, 20))),), **WPQ),
            replace(osd((28, RECOVERING), **WPQ), id=2),
            CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="a target for the cluster is not missed where replicas of a small pool fill its OSDs",
        alert=TARGET,
        series=merged(
            *osds(6, ((28, _CONTENT),), reserved=_KEPT),
            *(replace(osd((28, SIZE3), reserved=_KEPT), id=6 + n) for n in range(3)),
            CLUSTER_TARGET,
        ),
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="a target without demand is not missed",
        alert=TARGET,
        series=merged(
            *osds(2, ((30, State(client=200, in_progress=(1, 0))),), **WPQ), CLUSTER_TARGET
        ),
        moments=(silent(15), silent(29)),
        only=True,
    ),
]

# What waits behind a limit waits in the queue, and is not in progress.
_HELD = State(client=100, in_progress=(0,), waiting=10, store=1, hold=0.4, queue=(3, 4, 2, 3))
_LIMITED = {"limit": {"client": 100}, "reserved": {"client": 0}}

LIMITS = [
    RuleCase(
        name="a class held at its limit while the OSD idles",
        alert=LIMIT,
        series=merged(osd((5, IDLE), (20, _HELD), (10, IDLE), **_LIMITED)),
        moments=(
            silent(9),
            firing(10.5, {**OSD0, "severity": "warning", "cause": "limit"}),
            silent(29),
        ),
        only=True,
    ),
    RuleCase(
        name="a class at its limit is told by what it gets where tags are not shown",
        alert=LIMIT,
        series=without(
            ("cephqos_qos_limit_wait",),
            osd((5, IDLE), (20, replace(_HELD, client=95)), **_LIMITED),
        ),
        moments=(firing(20, {**OSD0, "severity": "warning", "cause": "limit"}),),
    ),
    RuleCase(
        name="a class at its limit while the device is busy with something else",
        alert=LIMIT,
        series=merged(osd((5, IDLE), (25, replace(_HELD, depth=4)), **_LIMITED)),
        moments=(silent(14), silent(29)),
    ),
    RuleCase(
        name="a class at its limit on a busy OSD is what limits are for",
        alert=LIMIT,
        series=merged(osd((5, IDLE), (25, replace(_HELD, recovery=1700, depth=4)), **_LIMITED)),
        moments=(silent(14), silent(29)),
    ),
]

_OVERSTATED = {"capacity": 21500, "reserved": {"client": 10750}}
_OF_500: dict[str, Any] = {"capacity": 500, "reserved": {"client": 250}}
_TOO_MUCH = {
    "ceph_daemon": "osd.0",
    "cluster": CLUSTER,
    "severity": "warning",
    "cause": "capacity",
}


def _set_anew(osd: SimulatedOsd, minute: float, **changes: object) -> Series:
    """An OSD whose settings change at a minute: one info series ends and another begins."""
    before, after = osd.series(), replace(osd, **changes).series()  # type: ignore[arg-type]
    (old,), (new,) = (
        [name for name in series if name.startswith("cephqos_qos_scheduler_info")]
        for series in (before, after)
    )
    count = round(minute * 60 / STEP)
    return before | {old: f"1x{count - 1} stale", new: f"_x{count} 1x240"}


CAPACITY = [
    RuleCase(
        name="a capacity that the saturated OSD never reached",
        alert=OVERSTATED,
        series=merged(osd((5, IDLE), (20, BUSY), (10, IDLE), **_OVERSTATED)),
        moments=(silent(8.75), firing(10, _TOO_MUCH), silent(30)),
    ),
    RuleCase(
        name="the same OSD's clients are a warning of cause capacity, not critical",
        alert=VIOLATED,
        series=merged(osd((5, IDLE), (20, BUSY), **_OVERSTATED)),
        moments=(firing(20, violated("warning", "capacity")),),
    ),
    RuleCase(
        name="clients of an OSD that sustains two fifths of its capacity, half by replica writes",
        alert=VIOLATED,
        series=merged(osd((5, IDLE), (20, replace(BUSY, client=100, immediate=100)), **_OF_500)),
        moments=(silent(9.5), firing(20, violated("warning", "capacity"))),
    ),
    RuleCase(
        name="a limit that holds now and then proves nothing about the capacity",
        alert=OVERSTATED,
        series=merged(
            osd(
                (5, IDLE),
                *((1, replace(BUSY, client=200, hold=hold)) for hold in (0.5, 0, 0, 0) * 6),
                limit={"client": 300},
                **_OVERSTATED,
            )
        ),
        moments=(silent(16), silent(28)),
    ),
    RuleCase(
        name="an OSD that was once seen to reach its capacity is slow, not overstated",
        alert=OVERSTATED,
        series=merged(osd((8, PROVEN), (20, SLOW))),
        moments=(silent(18), silent(27)),
    ),
    RuleCase(
        name="an idle OSD proves nothing about its capacity",
        alert=OVERSTATED,
        series=merged(osd((30, State(client=50, in_progress=(1, 0))), **_OVERSTATED)),
        moments=(silent(15), silent(29)),
        only=True,
    ),
    RuleCase(
        name="a default capacity on a real device, until somebody measures",
        alert=UNMEASURED,
        series=_set_anew(osd((40, IDLE), origin="default", media="hdd"), 25, origin="mon"),
        moments=(
            firing(
                16,
                {
                    "ceph_daemon": "osd.0",
                    "cluster": CLUSTER,
                    "media": "hdd",
                    "severity": "warning",
                },
            ),
            silent(26),
        ),
    ),
    RuleCase(
        name="a default capacity on a loop device is a lab",
        alert=UNMEASURED,
        series=merged(osd((40, IDLE), origin="default", device="loop3")),
        moments=(silent(16), silent(39)),
        only=True,
    ),
]

_MEDIA = {"cluster": CLUSTER, "media": "ssd", "severity": "warning"}

SETTINGS = [
    RuleCase(
        name="two profiles among the SSDs of a cluster, until they agree",
        alert=DIFFER,
        series=merged(
            osd((40, IDLE)),
            _set_anew(osd((40, IDLE), id=1, profile="high_client_ops"), 25, profile="balanced"),
        ),
        moments=(silent(14), firing(16, _MEDIA), silent(26)),
    ),
    RuleCase(
        name="two schedulers among the HDDs of a cluster, and two exporters that see them",
        alert=DIFFER,
        series=merged(
            *(
                osd((20, IDLE), id=i, media="hdd", instance=host, in_force=queue, profile="")
                for i, queue in enumerate(("wpq", "mclock_scheduler"))
                for host in ("host1", "host2")
            ),
        ),
        moments=(silent(14), firing(16, {**_MEDIA, "media": "hdd"})),
    ),
    RuleCase(
        name="a profile that differs in another cluster",
        alert=DIFFER,
        series=merged(
            osd((40, IDLE)), osd((40, IDLE), id=1, profile="high_client_ops", cluster="c2")
        ),
        moments=(silent(16), silent(39)),
    ),
    RuleCase(
        name="SSDs and HDDs may differ",
        alert=DIFFER,
        series=merged(
            osd((40, IDLE)), osd((40, IDLE), id=1, profile="high_client_ops", media="hdd")
        ),
        moments=(silent(16), silent(39)),
        only=True,
    ),
    RuleCase(
        name="OSDs that are restarted one after the other may differ for a while",
        alert=DIFFER,
        series=merged(
            osd((40, IDLE)),
            osd((40, IDLE), id=1, profile="high_client_ops"),
            *(osd((5 + 3 * i, IDLE), id=2 + i, restarts=True) for i in range(3)),
        ),
        moments=(silent(25), silent(39)),
    ),
    RuleCase(
        name="WPQ beside mClock, until the last OSD has it",
        alert=MIXED,
        series=merged(
            osd((40, IDLE)),
            _set_anew(
                osd((40, IDLE), id=1, media="hdd", in_force="wpq", profile=""),
                25,
                in_force="mclock_scheduler",
            ),
        ),
        moments=(silent(14), firing(16, {"cluster": CLUSTER, "severity": "warning"}), silent(26)),
    ),
    RuleCase(
        name="WPQ beside mClock for as long as OSDs are restarted one after the other",
        alert=MIXED,
        series=merged(
            osd((40, IDLE)),
            osd((40, IDLE), id=1, in_force="wpq"),
            *(osd((5 + 3 * i, IDLE), id=2 + i, restarts=True) for i in range(3)),
        ),
        moments=(silent(25), silent(39)),
    ),
    RuleCase(
        name="one scheduler everywhere, as far as it is known",
        alert=MIXED,
        series=merged(*osds(3, ((40, IDLE),)), osd((40, IDLE), id=3, media="", in_force="unknown")),
        moments=(silent(16), silent(39)),
        only=True,
    ),
    RuleCase(
        name="a custom profile that reserves more than there is, until a built-in one does",
        alert=WHOLE,
        series=_set_anew(
            osd(
                (30, IDLE),
                profile="custom",
                reserved={"client": 1400, "background_recovery": 1000},
            ),
            15,
            profile="balanced",
        ),
        moments=(
            firing(6, {"ceph_daemon": "osd.0", "cluster": CLUSTER, "severity": "warning"}),
            silent(16),
        ),
    ),
    RuleCase(
        name="a custom profile that reserves all there is and no more, seen by two exporters",
        alert=WHOLE,
        series=merged(
            *(
                osd(
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
    RuleCase(
        name="a built-in profile of 20.2 reserves 105 % by design",
        alert=WHOLE,
        series=merged(osd((30, IDLE), reserved={"client": 1000, "background_recovery": 1100})),
        moments=(silent(6), silent(29)),
        only=True,
    ),
]

CASES = [*TARGETS, *LIMITS, *CAPACITY, *SETTINGS]
