"""Cases of OSDs that recover while others wait for them: a failure, or what recovery costs?"""

from dataclasses import replace
from typing import Any

from .across import (
    BUSY_CORE,
    CRITICAL_1,
    CULPRIT,
    HOLDS_UP,
    REPLICA,
    SLOW_1,
    WAITS,
    WELL,
    three,
    waiting,
    with_more,
)
from .cases import RuleCase, firing, silent
from .qos import FULL_OF_REPLICAS, RECOVERING, VIOLATED, WIDE, osd, violated
from .reservations import CLUSTER_TARGET, CLUSTER_VIOLATED, TARGET, WPQ
from .series import Series, merged

_HOLDS_SOME = replace(HOLDS_UP, kv_commit=0.001, device_latency=0.001)
_FLOODED = replace(WAITS, recovery=1400)
_WITHOUT_CPU = replace(_HOLDS_SOME, immediate=100, cpu_waiting=12)
_TAKES_OVER = replace(_WITHOUT_CPU, immediate=70, recovery=6, replica_latency=0.06)
# It moves twice as much as its peers: busy, and no OSD that has failed. Theirs wait in no queue.
_FILLED = replace(_HOLDS_SOME, client=100, recovery=300)
_KEPT = replace(WAITS, recovery=120, in_progress=(30, 40), waiting=0.2)


def _reserved(state: str, kind: str = "backfill") -> Series:
    """One placement group that osd.1 takes over, or waits to."""
    labels = {"side": "remote", "state": state, "kind": kind}
    return with_more(1, "cephqos_recovery_slots", 1, **labels)


def _taking_over(**changes: Any) -> Series:
    """osd.1 takes over a placement group, without CPU, and the others wait for it."""
    culprit = replace(_TAKES_OVER, **changes)
    return merged(three((10, WELL), culprit=culprit, others=WAITS), _reserved("in_progress"))


def _short_while_it_takes_over(replica_latency: float) -> Series:
    """Clients of osd.1 get less than their reservation."""
    short = replace(BUSY_CORE, immediate=80, recovery=4, replica_latency=replica_latency)
    small = {"capacity": 250, "reserved": {"client": 125, "background_recovery": 60}}
    return merged(
        *(replace(osd((10, WELL), (40, replace(WAITS, client=130))), id=i) for i in (0, 2)),
        replace(osd((10, replace(WELL, client=200)), (40, short), **small), id=1),
        _reserved("in_progress"),
    )


CASES = [
    RuleCase(
        name="a flood of recovery that slows replica writes is not critical",
        alert=REPLICA,
        series=three((10, WELL), culprit=_HOLDS_SOME, others=_FLOODED),
        moments=(silent(15), silent(25)),
        values=((25, 'count(osd_class:cephqos_main_cause{cluster="c1",cause="other_class"})', 2),),
    ),
    RuleCase(
        name="a target is missed where clients wait for the OSD that a flood of recovery fills",
        alert=TARGET,
        series=merged(three((10, WELL), culprit=_FILLED, others=_KEPT, **WPQ), CLUSTER_TARGET),
        moments=(silent(14), *(firing(minute, CLUSTER_VIOLATED) for minute in range(17, 29))),
    ),
    RuleCase(
        name="a flood of recovery is told all the time, though a device seems to fail for a moment",
        alert=VIOLATED,
        series=merged(
            *(
                replace(
                    osd((10, WELL), *timeline),
                    id=i,
                )
                for i, timeline in enumerate(
                    (
                        [(20.0, _FLOODED)],
                        [(8.0, _HOLDS_SOME), (0.5, HOLDS_UP), (11.5, _HOLDS_SOME)],
                        [(20.0, _FLOODED)],
                    )
                )
            )
        ),
        moments=tuple(
            firing(
                minute,
                *(
                    {
                        **violated("critical", "other_class", by="background_recovery"),
                        "ceph_daemon": f"osd.{i}",
                    }
                    for i in (0, 2)
                ),
            )
            for minute in range(17, 29)
        ),
    ),
    RuleCase(
        name="an OSD that recovers itself, with threads that wait for a CPU, is not critical",
        alert=REPLICA,
        series=three(
            (10, WELL),
            culprit=replace(_HOLDS_SOME, recovery=20, immediate=70, cpu_waiting=12),
            others=WAITS,
        ),
        moments=(silent(15), silent(25)),
        values=(
            (
                25,
                'count(osd_class:cephqos_main_cause{cluster="c1",cause="other_osd",by="osd.1"})',
                2,
            ),
        ),
    ),
    RuleCase(
        name="an OSD that recovers nothing and has threads that wait for a CPU is critical",
        alert=REPLICA,
        series=three(
            (10, WELL),
            culprit=_WITHOUT_CPU,
            others=WAITS,
        ),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="an OSD that takes over a placement group slowly and waits for a CPU is not critical",
        alert=REPLICA,
        series=_taking_over(),
        moments=(silent(15), silent(25)),
        values=(
            (
                25,
                'count(osd_class:cephqos_main_cause{cluster="c1",cause="other_osd",by="osd.1"})',
                2,
            ),
        ),
    ),
    RuleCase(
        name="an OSD that takes over an object in two seconds and waits for a CPU is not critical",
        alert=REPLICA,
        series=_taking_over(recovery=0.5),
        moments=(silent(15), silent(25)),
    ),
    RuleCase(
        name="an OSD that waits to recover, or removes placement groups, is critical without CPU",
        alert=REPLICA,
        series=merged(
            three((10, WELL), culprit=_TAKES_OVER, others=WAITS),
            _reserved("queued"),
            _reserved("in_progress", "delete"),
        ),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="an OSD that may recover and recovers nothing is critical without CPU",
        alert=REPLICA,
        series=_taking_over(recovery=0),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="an OSD that recovers a little is critical where it is far slower than that explains",
        alert=REPLICA,
        series=_taking_over(replica_latency=0.5),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="an OSD that recovers a little is critical where it does not wait for a CPU",
        alert=REPLICA,
        series=_taking_over(cpu_waiting=0.5),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="an OSD without CPU whose clients get too little is critical while it takes over",
        alert=VIOLATED,
        series=_short_while_it_takes_over(0.5),
        moments=(firing(22, {**violated("critical", "cpu"), "ceph_daemon": "osd.1"}),),
    ),
    RuleCase(
        name="one that is no slower than taking over explains is a warning, as it holds replicas",
        alert=WIDE,
        series=_short_while_it_takes_over(0.06),
        moments=(firing(48, FULL_OF_REPLICAS),),
    ),
    RuleCase(
        name="an OSD whose device has failed is critical while it takes over a placement group",
        alert=REPLICA,
        series=merged(three((10, WELL), culprit=HOLDS_UP, others=WAITS), _reserved("in_progress")),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="who recovers and waits for an OSD whose device has failed is told so",
        alert=VIOLATED,
        series=three((10, WELL), culprit=CULPRIT, others=_FLOODED),
        moments=(firing(22, CRITICAL_1), firing(28, CRITICAL_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="a failed device is waited for in a flood of recovery too",
        alert=REPLICA,
        series=three((10, WELL), culprit=HOLDS_UP, others=_FLOODED),
        moments=(firing(25, SLOW_1),),
    ),
    RuleCase(
        name="a flood of recovery slows replica writes too, and is named itself",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=replace(RECOVERING, replica_writes=300, replica_latency=0.05),
            others=replace(
                RECOVERING,
                replica_writes=300,
                replica_latency=0.011,
                store_latency=0.02,
                write_latency=0.09,
            ),
        ),
        moments=(
            firing(
                25,
                *(
                    {
                        **violated("critical", "other_class", by="background_recovery"),
                        "ceph_daemon": f"osd.{i}",
                    }
                    for i in range(3)
                ),
            ),
        ),
    ),
]
