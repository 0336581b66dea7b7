"""Cases of an OSD that is slow where nothing is promised, or nobody lacks what is promised.

And of a device that is slow where most of its peers are, too.
"""

from dataclasses import replace
from typing import Any

from .across import BUSY_CORE, CRITICAL_1, CULPRIT, REPLICA, WAITS, WELL, three, with_more
from .cases import CaseMoment, RuleCase, firing, silent
from .qos import TARGET_OSDS, VIOLATED, osd
from .series import CLUSTER, Series, State, flat, merged

SLOW = "CephQosOsdSlow"

# One client keeps one write in flight: nothing is ever queued. Each of three OSDs has every write.
_ALONE = State(
    client=70,
    replica_writes=140,
    replica_latency=0.004,
    immediate=140,
    in_progress=(0, 1),
    present=0.3,
    store=0.6,
    store_latency=0.003,
    kv_commit=0.002,
)
# Since osd.1 is slow, a write takes ten times as long.
_FEWER = replace(_ALONE, client=6, immediate=12, replica_writes=12, store=0.05)
_SLOW = replace(_FEWER, replica_latency=0.06, present=0.36, store=1, store_latency=0.055)
_SLOW_DEVICE = replace(_SLOW, kv_commit=0.05, device_latency=0.05, own_write=0.05)


def _alone(slow: State, *more: Series, before: State = _ALONE) -> Series:
    return merged(
        *(
            replace(osd((10, before), (12, slow if i == 1 else _FEWER), (10, before)), id=i)
            for i in range(3)
        ),
        *more,
    )


def _named(cause: str) -> dict[str, str]:
    return {"cluster": CLUSTER, "ceph_daemon": "osd.1", "cause": cause}


def _while_slow(cause: str) -> tuple[CaseMoment, ...]:
    return silent(9), firing(14, _named(cause)), firing(21, _named(cause)), silent(25)


_REASONS: dict[str, tuple[State, Series]] = {
    "device": (_SLOW_DEVICE, {}),
    "store": (replace(_SLOW, kv_commit=0.05, compaction=0.9), {}),
    "stopped": (_SLOW, with_more(1, "cephqos_daemon_stopped", "0x40 1x47 0x100")),
    "cpu": (replace(_SLOW, cpu_waiting=0.5), {}),
    "unknown": (replace(_SLOW, cpu_waiting=0.05), {}),
}

ALONE = [
    *(
        RuleCase(
            name=f"a write that waits alone for an OSD that is slow is told so, cause {cause}",
            alert=SLOW,
            series=_alone(slow, more),
            moments=_while_slow(cause),
        )
        for cause, (slow, more) in _REASONS.items()
    ),
    RuleCase(
        name="a slow device for which hardly anything waits is told to nobody",
        alert=SLOW,
        series=_alone(
            replace(_SLOW_DEVICE, client=0.5, immediate=1, replica_writes=1, present=0.05)
        ),
        moments=(silent(14), silent(21)),
    ),
    RuleCase(
        name="an OSD that is slow while it recovers is told to nobody",
        alert=SLOW,
        series=_alone(
            replace(_SLOW, cpu_waiting=3),
            with_more(1, "cephqos_recovery_slots", 1, state="in_progress", kind="local"),
        ),
        moments=(silent(14), silent(21)),
    ),
    RuleCase(
        name="an OSD that is slow as it does twice what its peers do is told to nobody",
        alert=SLOW,
        series=_alone(replace(_SLOW, immediate=60)),
        moments=(silent(14), silent(21)),
    ),
    RuleCase(
        name="one client with one write in flight on OSDs that are well is told to nobody",
        alert=SLOW,
        series=_alone(_FEWER),
        moments=(silent(14), silent(21)),
        only=True,
    ),
]

_NO_QUEUE = replace(WAITS, waiting=0)

NOTHING_PROMISED = [
    RuleCase(
        name="under WPQ an OSD whose device turns slow is told so without a policy",
        alert=SLOW,
        series=three((10, WELL), culprit=CULPRIT, others=_NO_QUEUE, **TARGET_OSDS),
        moments=(silent(9), firing(16, _named("device")), firing(29, _named("device"))),
    ),
    RuleCase(
        name="under WPQ an OSD that lacks CPU is told so without a policy",
        alert=SLOW,
        series=three((10, WELL), culprit=BUSY_CORE, others=_NO_QUEUE, **TARGET_OSDS),
        moments=(silent(9), firing(16, _named("cpu")), firing(29, _named("cpu"))),
    ),
    RuleCase(
        name="an OSD for which clients with unmet demand wait has a critical alert, not this one",
        alert=SLOW,
        series=three((10, WELL), culprit=CULPRIT, others=WAITS),
        moments=(silent(16), silent(22), silent(29)),
    ),
    RuleCase(
        name="under WPQ that critical alert needs no policy, if writes of others queue",
        alert=REPLICA,
        series=three((10, WELL), culprit=CULPRIT, others=WAITS, **TARGET_OSDS),
        moments=(
            silent(13),
            firing(22, {"ceph_daemon": "osd.1", "cluster": CLUSTER, "severity": "critical"}),
        ),
    ),
]

_NEVER_BUSY = State(client=60, in_progress=(1, 0), store=0.1, kv_commit=0.002)
_KEEPS_UP = replace(WAITS, waiting=0)
_CRITICAL_2 = {**CRITICAL_1, "ceph_daemon": "osd.2"}
_FAILING = f'count(osd:cephqos_condition:bool{{cluster="{CLUSTER}",condition="device_failing"}})'


def _few(*then: State, **changes: Any) -> Series:
    """OSDs that were never busy, and come to this."""
    return merged(
        *(
            replace(osd((10, _NEVER_BUSY), (20, state)), id=i, **changes)
            for i, state in enumerate(then)
        )
    )


def _capacity(number: int, ops: int) -> Series:
    return flat(
        "cephqos_qos_capacity_normalised_ops_per_second",
        ops,
        job="cephqos",
        instance="host1",
        cluster=CLUSTER,
        ceph_daemon=f"osd.{number}",
    )


FEW = [
    RuleCase(
        name="devices of two of three OSDs that are slow, and were never busy, are critical",
        alert=VIOLATED,
        series=_few(_KEEPS_UP, CULPRIT, CULPRIT),
        moments=(silent(13), firing(25, CRITICAL_1, _CRITICAL_2)),
    ),
    RuleCase(
        name="the device of one of two OSDs that is slow, and was never busy, is critical",
        alert=VIOLATED,
        series=_few(_KEEPS_UP, CULPRIT),
        moments=(silent(13), firing(25, CRITICAL_1)),
    ),
    RuleCase(
        name="two of three OSDs that are slower than one that does little are not accused",
        alert=VIOLATED,
        series=_few(replace(_KEEPS_UP, client=30), CULPRIT, CULPRIT),
        moments=(silent(13),),
        values=((25, f"{_FAILING} or vector(0)", 0),),
    ),
    RuleCase(
        name="two of three OSDs that are slower than one of a faster kind are not accused",
        alert=VIOLATED,
        series=merged(_few(_KEEPS_UP, CULPRIT, CULPRIT), _capacity(0, 20000)),
        moments=(silent(13),),
        values=((25, f"{_FAILING} or vector(0)", 0),),
    ),
    RuleCase(
        name="most of five OSDs that are slower than the others are not accused",
        alert=VIOLATED,
        series=_few(_KEEPS_UP, _KEEPS_UP, CULPRIT, CULPRIT, CULPRIT),
        moments=(silent(13),),
        values=((25, f"{_FAILING} or vector(0)", 0),),
    ),
]

CASES = [*ALONE, *NOTHING_PROMISED, *FEW]
