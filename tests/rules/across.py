"""Cases of findings that need more than one OSD, or more than one kind of evidence, to be right."""

from dataclasses import replace
from typing import Any

from .cases import RuleCase, firing, silent
from .qos import CLIENT, OSD0, PROVEN, SHORT, SLOW, VIOLATED, osd, violated
from .series import BUSY, CLUSTER, IDLE, Series, SimulatedOsd, State, Timeline, flat, merged

REPLICA = "CephQosReplicaSlow"
REPEATED = "CephQosReservationViolatedRepeatedly"

# Three OSDs at size 3 that do what they can.
WELL = replace(PROVEN, client=1400, replica_writes=1000, replica_latency=0.01)
# One of them has a device that became slow; the others have little to do but wait for it.
CULPRIT = replace(
    SLOW, client=60, replica_writes=60, replica_latency=0.5, write_latency=0.55, present=39
)
WAITS = replace(
    BUSY,
    client=70,
    store=0.5,
    store_latency=0.005,
    waiting=2,
    queue=(0, 0, 0, 0),
    write_latency=0.5,
    replica_writes=60,
    replica_latency=0.006,
)
HOLDS_UP = replace(IDLE, replica_writes=60, replica_latency=0.5, kv_commit=0.3, device_latency=0.2)
_UNANSWERED = replace(HOLDS_UP, scrape=False)
SLOW_1 = {"ceph_daemon": "osd.1", "cluster": CLUSTER, "severity": "critical"}


def waiting(number: int) -> dict[str, str]:
    osd = {"ceph_daemon": f"osd.{number}"}
    return {**CLIENT, **osd, "severity": "warning", "cause": "other_osd", "by": "osd.1"}


def of_three(culprit: Timeline, others: Timeline, **changes: Any) -> Series:
    """osd.1 is the slow one of three."""
    parts: list[SimulatedOsd] = [
        replace(osd(*(culprit if i == 1 else others), **changes), id=i) for i in range(3)
    ]
    return merged(*parts)


def three(*before: tuple[float, State], culprit: State, others: State, **changes: Any) -> Series:
    """The same: osd.1 is slow for 20 minutes."""
    return of_three((*before, (20, culprit)), (*before, (20, others)), **changes)


def sampled(number: int, peer: str, rate: float = 5) -> Series:
    """An OSD whose clients' operations were seen to wait for another one."""
    return flat(
        "cephqos_ops_sampled_wait_seconds_total",
        f"0+{rate * 15:g}x240",
        ceph_daemon=f"osd.{number}",
        cluster=CLUSTER,
        instance="host1",
        kind="client",
        event="subops",
        peer=peer,
    )


def with_more(number: int, name: str, value: float | str, **labels: str) -> Series:
    osd = {"ceph_daemon": f"osd.{number}", "cluster": CLUSTER, "instance": "host1"}
    return flat(name, value, **osd, **labels)


BUSY_CORE = replace(BUSY, client=100, replica_writes=60, replica_latency=0.5, cpu_waiting=12)
_CPU_1 = {**violated("critical", "cpu"), "ceph_daemon": "osd.1"}
CRITICAL_1 = {**violated("critical", "device"), "ceph_daemon": "osd.1"}

REPLICAS = [
    RuleCase(
        name="OSDs that wait for a slow one are warnings that name it, beside its critical alert",
        alert=VIOLATED,
        series=three((10, WELL), culprit=CULPRIT, others=WAITS),
        moments=(
            silent(14),
            firing(22, CRITICAL_1),
            firing(28, CRITICAL_1, waiting=(waiting(0), waiting(2))),
        ),
    ),
    RuleCase(
        name="who waits for a slow OSD is told so, also where replica work fills it",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=CULPRIT,
            others=replace(WAITS, client=400, immediate=1000),
        ),
        moments=(firing(22, CRITICAL_1), firing(28, CRITICAL_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="who spends a third of the time on its own store waits for the slow OSD all the same",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=BUSY_CORE,
            others=replace(WAITS, client=250, store=40, store_latency=0.0375),
        ),
        moments=(firing(22, _CPU_1), firing(28, _CPU_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="a slow OSD that holds replicas only is critical though it has no clients",
        alert=REPLICA,
        series=merged(three((10, replace(WELL, client=700)), culprit=HOLDS_UP, others=WAITS)),
        moments=(silent(13), firing(15, SLOW_1)),
    ),
    RuleCase(
        name="a slow OSD is critical though no queue of those that wait for it shows their waiting",
        alert=REPLICA,
        series=three(
            (10, replace(WELL, client=700)),
            culprit=HOLDS_UP,
            others=replace(WAITS, waiting=0),
        ),
        moments=(silent(13), firing(18, SLOW_1)),
    ),
    RuleCase(
        name="who waits for a slower OSD and gets its reservation wakes nobody",
        alert=REPLICA,
        series=three(
            (10, replace(WELL, client=1400)),
            culprit=HOLDS_UP,
            others=replace(WAITS, waiting=0, client=1300),
        ),
        moments=(silent(13), silent(18), silent(29)),
    ),
    RuleCase(
        name="a slow OSD is critical though those that wait for it want more only most of the time",
        alert=REPLICA,
        series=of_three(
            ((10, replace(WELL, client=700)), *((4, HOLDS_UP), (0.5, HOLDS_UP)) * 5),
            (
                (10, replace(WELL, client=700)),
                *((4, WAITS), (0.5, replace(WAITS, in_progress=(0, 0)))) * 5,
            ),
        ),
        moments=(silent(13), firing(20, SLOW_1), firing(22.5, SLOW_1), firing(30, SLOW_1)),
    ),
    RuleCase(
        name="a slow OSD that others wait for is critical though it answers half of the scrapes",
        alert=REPLICA,
        series=of_three(
            ((10, replace(WELL, client=700)), *((1, HOLDS_UP), (1, _UNANSWERED)) * 10),
            ((10, replace(WELL, client=700)), (20, WAITS)),
        ),
        moments=(silent(13), firing(20, SLOW_1), firing(28, SLOW_1)),
    ),
    RuleCase(
        name="an OSD without CPU that others wait for is told so while it does half of its best",
        alert=VIOLATED,
        series=of_three(
            ((10, replace(WELL, client=200)), (20, BUSY_CORE)), ((10, WELL), (20, WAITS))
        ),
        moments=(firing(22, _CPU_1), firing(28, _CPU_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="who waits for an OSD whose device has failed is not accused of its own busy CPU",
        alert=VIOLATED,
        series=three((10, WELL), culprit=CULPRIT, others=replace(WAITS, cpu_waiting=3)),
        moments=(firing(22, CRITICAL_1), firing(28, CRITICAL_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="the critical alert of a slow OSD that others wait for ends with the waiting",
        alert=REPLICA,
        series=of_three(
            ((10, WELL), (15, CULPRIT), (12, WELL)), ((10, WELL), (15, WAITS), (12, WELL))
        ),
        moments=(firing(24, SLOW_1), silent(35)),
    ),
    RuleCase(
        name="the one that operations were seen to wait for is named, not the slowest of all",
        alert=VIOLATED,
        series=merged(
            three((10, WELL), culprit=CULPRIT, others=WAITS),
            replace(osd((10, WELL), (20, replace(CULPRIT, replica_latency=0.8))), id=3),
            replace(osd((10, WELL), (20, WAITS)), id=4),
            replace(osd((30, WELL)), id=5),
            replace(osd((30, WELL)), id=6),
            sampled(4, "osd.1"),
            sampled(4, "osd.3", 1),
        ),
        moments=(
            firing(
                28,
                CRITICAL_1,
                {**CRITICAL_1, "ceph_daemon": "osd.3"},
                waiting=(
                    waiting(4),
                    {**waiting(0), "by": "osd.3"},
                    {**waiting(2), "by": "osd.3"},
                ),
            ),
        ),
    ),
    RuleCase(
        name="who waits elsewhere for nobody that can be told is a warning after a quarter of an"
        " hour",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (25, WELL if i else WAITS)), id=i) for i in range(3))
        ),
        moments=(silent(20), silent(24), firing(28, violated("warning", "other_osd"))),
    ),
    RuleCase(
        name="replica work that fills an OSD is not what its clients wait for elsewhere",
        alert=VIOLATED,
        series=merged(
            *(
                replace(
                    osd(
                        (10, WELL),
                        (25, WELL if i else replace(WAITS, client=400, immediate=1000)),
                    ),
                    id=i,
                )
                for i in range(3)
            )
        ),
        moments=(silent(20), silent(24), firing(28, violated("warning", "other_osd"))),
    ),
    RuleCase(
        name="an OSD that is slow to its peers for having most of the work is not critical",
        alert=REPLICA,
        series=three(
            (10, WELL),
            culprit=replace(BUSY, client=1500, replica_writes=300, replica_latency=0.05),
            others=replace(WAITS, client=300),
        ),
        moments=(silent(20), silent(29)),
    ),
    RuleCase(
        name="three OSDs at their end, one of them twice as slow as the others, are no finding",
        alert=REPLICA,
        series=three((10, WELL), culprit=replace(WELL, replica_latency=0.023), others=WELL),
        moments=(silent(20), silent(29)),
        only=True,
    ),
]

_SLOW_LINK = {"interface": "back"}
# How often the alert began anew.
_VIOLATED = 'cluster="c1", alertname=~"CephQosReservationViolated(CanWait)?"'
_CHANGES = f"max(changes(ALERTS_FOR_STATE{{{_VIOLATED}}}[13m]))"


def slow_link(number: int, worst: str, slow: int = 1) -> Series:
    """After ten minutes heartbeats of the OSD to so many peers are slow."""
    return merged(
        with_more(number, "cephqos_network_slow_peers", f"0x40 {slow}x200", **_SLOW_LINK),
        with_more(number, "cephqos_network_worst_peer_info", 1, peer=worst, **_SLOW_LINK),
    )


NETWORK = [
    RuleCase(
        name="a slow link to another OSD is critical with the peer",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (20, WELL if i else WAITS)), id=i) for i in range(3)),
            slow_link(0, worst="osd.2"),
        ),
        moments=(silent(14), firing(18, violated("critical", "network", by="osd.2"))),
    ),
    RuleCase(
        name="who waits for an OSD whose device has failed is not told of a slow link to another",
        alert=VIOLATED,
        series=merged(
            three((10, WELL), culprit=CULPRIT, others=WAITS),
            slow_link(0, worst="osd.2"),
        ),
        moments=(firing(22, CRITICAL_1), firing(28, CRITICAL_1, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="a slow link to an OSD that holds replica writes for that reason has cause network",
        alert=VIOLATED,
        series=merged(
            three(
                (10, WELL),
                culprit=replace(IDLE, replica_writes=60, replica_latency=0.5),
                others=WAITS,
            ),
            *(slow_link(i, worst="osd.1") for i in (0, 2)),
        ),
        moments=(
            firing(
                25,
                *(
                    {**violated("critical", "network", by="osd.1"), "ceph_daemon": f"osd.{i}"}
                    for i in (0, 2)
                ),
            ),
        ),
    ),
    RuleCase(
        name="an alert stays the same one when another peer becomes the worst",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (30, WELL if i else WAITS)), id=i) for i in range(3)),
            with_more(0, "cephqos_network_slow_peers", "0x40 1x200", **_SLOW_LINK),
            *(
                with_more(0, "cephqos_network_worst_peer_info", it, peer=peer, **_SLOW_LINK)
                for peer, it in (("osd.1", "1x80 stale"), ("osd.2", "_x81 1x200"))
            ),
        ),
        moments=(
            firing(18, violated("critical", "network", by="osd.1")),
            firing(30, violated("critical", "network", by="osd.2")),
        ),
        values=((30, _CHANGES, 0),),
    ),
    RuleCase(
        name="an OSD whose own link is slow is named by all, itself too",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (20, WAITS)), id=i) for i in range(3)),
            slow_link(0, worst="osd.1"),
            slow_link(1, worst="osd.0", slow=2),
            slow_link(2, worst="osd.1"),
        ),
        moments=(
            silent(14),
            firing(
                18,
                *(
                    {**violated("critical", "network", by="osd.1"), "ceph_daemon": f"osd.{i}"}
                    for i in range(3)
                ),
            ),
        ),
    ),
    RuleCase(
        name="who waits for another OSD through one of its shards is not skewed",
        alert=VIOLATED,
        series=three((10, WELL), culprit=HOLDS_UP, others=replace(WAITS, queue=(3, 0, 0, 0))),
        moments=(silent(22), firing(28, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="who waits for another OSD keeps its whole reservation, whatever its queues show",
        alert=VIOLATED,
        series=three(
            (10, WELL),
            culprit=HOLDS_UP,
            others=replace(WAITS, client=300, queue=(3, 0, 0, 0)),
        ),
        moments=(silent(22), firing(28, waiting=(waiting(0), waiting(2)))),
    ),
    RuleCase(
        name="slow heartbeats of an OSD whose clients do not wait elsewhere are nobody's cause",
        alert=VIOLATED,
        series=merged(
            osd((10, PROVEN), (20, SHORT)),
            with_more(0, "cephqos_network_slow_peers", 1, **_SLOW_LINK),
            with_more(0, "cephqos_network_worst_peer_info", 1, peer="osd.2", **_SLOW_LINK),
        ),
        moments=(firing(25, violated("warning", "unknown")),),
    ),
]

# Four minutes of five: never long enough for the alert on it.
_ON_AND_OFF = ((4, SHORT), (1.25, PROVEN)) * 11

AGAIN = [
    RuleCase(
        name="a reservation that is violated for four of every five minutes is a warning",
        alert=REPEATED,
        series=merged(osd((8, PROVEN), *_ON_AND_OFF, (60, IDLE))),
        moments=(
            silent(22),
            silent(29),
            firing(31, {**OSD0, "severity": "warning"}),
            silent(118),
        ),
    ),
    RuleCase(
        name="a reservation that was violated once and told is not told again",
        alert=REPEATED,
        series=merged(osd((8, PROVEN), (25, SLOW), (30, PROVEN))),
        moments=(silent(20), silent(36), silent(60)),
    ),
]

CASES = [*REPLICAS, *NETWORK, *AGAIN]
