"""Where the time of an OSD's clients is spent: here, on another OSD, or on the network.

A replicated write ends when the slowest replica has it. So a primary can show demand and a
shortfall because of another OSD. These series name the OSD on which the time is spent.
"""

from typing import Final

from cephqos_alerts.recording.conditions import BUSIER, STORE_STALLED, condition_rule
from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_alerts.recording.reservations import (
    BYTES,
    CPU_USED,
    CPU_WAITING,
    OF_REPLICA_WRITE,
    OF_STORE,
    most,
)
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, DaemonSeries, NetworkSeries, OpSeries, QosSeries, count, total

# For what is concluded from a comparison of an OSD with its peers: those of its cluster with the
# same media (hdd or ssd). With two, it is not known which of them is the unusual one. What is only
# looked at beside REPLICA_SLOWNESS or a device slower than its peers' has it from there.
AMONG_THREE: Final = f"and on (cluster, media) count by (cluster, media) ({PerOsd.MEDIA}) >= 3"


def among_peers(series: str, by: str = "cluster, media") -> str:
    """The median of the series over an OSD and its peers."""
    return f"quantile by ({by}) (0.5, ({series}) * on ({OSD}) group_left (media) {PerOsd.MEDIA})"


def more_than_peers(series: str, times: str = "@more@", also_above: str = "0") -> str:
    """The OSDs of the series that are above `times` the median of their peers, and above a value of
    their own: few are, and the others cost nothing more."""
    return (
        f"({series} > {also_above}) * on ({OSD}) group_left (media) {PerOsd.MEDIA}"
        f" > on (cluster, media) group_left () ({times} * ({among_peers(series)}))"
    )


# OSDs that are the primary of far more client operations than their peers, while they do nearly as
# much as ever. An operation costs its primary more than its replicas, so such an OSD is the first
# to be saturated. One that has failed does less than before.
_LEADS_MORE: Final = f"""
{more_than_peers(f'{PerClass.ATTAINED_OPS}{{class="client"}}')}
                and on ({OSD}) (@more@ * {PerOsd.DELIVERED_OPS} > on ({OSD}) {most("ever")})
"""
# Seconds of replica writes per second: the mean number of them that are in progress.
_REPLICA_WRITES_IN_PROGRESS: Final = (
    f"max by ({OSD}) (rate({QosSeries.REPLICA_WRITE_SECONDS}[@rate@]))"
)
_MORE_IN_PROGRESS: Final = more_than_peers(
    _REPLICA_WRITES_IN_PROGRESS, times="@twice@", also_above="1"
)
# Threads wait for a CPU, far more than on peers, and the OSD does not use more CPU than they do.
_WAITS_FOR_CPU: Final = f"""
              {more_than_peers(CPU_WAITING, times="@twice@", also_above="@twice@")}
                unless on ({OSD}) ({more_than_peers(CPU_USED, times="1 / @reached@")})
""".strip()
# That, or a limit stops the threads.
_LACKS_CPU: Final = f"""
              {_WAITS_FOR_CPU}
              or on ({OSD}) {previously(PerOsd.CPU_DENIED)}{{by=~"{OF_THREADS}"}}
""".strip()
# A replica write takes more than 4 times as long as on peers; 2 times, while threads lack a CPU.
_SLOW_REPLICA_WRITES: Final = f"""
                {PerOsd.REPLICA_SLOWNESS} > @slower@
                or on ({OSD}) {PerOsd.REPLICA_SLOWNESS} > @twice@
                  and on ({OSD}) (
                    {_LACKS_CPU}
                  )
""".strip()

# The mean time of a client write, in seconds.
_CLIENT_WRITE_SECONDS: Final = f"""
              max by ({OSD}) (rate({total(OpSeries.LATENCY_SECONDS)}{{op="write"}}[@rate@]))
              / (max by ({OSD}) (rate({count(OpSeries.LATENCY_SECONDS)}{{op="write"}}[@rate@]))
                > 0)
""".strip()
# The share of that time in which the write does not wait for the scheduler.
_SHARE_OUTSIDE_SCHEDULER: Final = f"""
                1 - max by ({OSD}) (rate({QosSeries.CLIENT_WAIT_SECONDS}[@rate@]))
                / on ({OSD}) ({PerOsd.CLIENT_PRESENT_RATE} > 0)
""".strip()

# The worst peer of each OSD on a network that is slow for it.
_WORST_PEER: Final = (
    f"topk by ({OSD}) (1, max by ({OSD}, peer) ({NetworkSeries.WORST_PEER_INFO}"
    f" and on ({OSD}, interface) {NetworkSeries.SLOW_PEERS} > 0))"
)
# How many peers of each OSD are slow to answer its heartbeats.
_SLOW_PEERS: Final = f"max by ({OSD}) ({NetworkSeries.SLOW_PEERS})"
# OSDs with more slow peers than their worst peer has: their own link is slow.
_OWN_LINK: Final = f"""
                {_SLOW_PEERS} > on ({OSD}) (
                  {_WORST_PEER} * 0
                  + on (cluster, peer) group_left ()
                  label_replace({_SLOW_PEERS}, "peer", "$1", "ceph_daemon", "(.+)")
                )
""".strip()

ACROSS: Final = RuleGroup(
    name="cephqos-across",
    rules=(
        condition_rule(
            "busier",
            comment="""
            An OSD that does much more than its peers may be slower than they are: that is no
            failure. The same is true of an OSD that is the primary of more client operations and
            does nearly as much as ever. Scrub and trimming are in no counter of operations, but in
            the device's bytes.
            """,
            expr=f"""
            0 * max by ({OSD}) (
              (
                {more_than_peers(PerOsd.DELIVERED_OPS)}
                or on ({OSD}) {more_than_peers(BYTES)}
                or on ({OSD}) ({_LEADS_MORE.strip()})
              )
              {AMONG_THREE}
            ) + 1
            """,
        ),
        RecordedSeries(
            record=PerOsd.REPLICA_SLOWNESS,
            comment="Time of a replica write on this OSD, in multiples of its peers' median.",
            expr=f"""
            max by ({OSD}) (
              ({OF_REPLICA_WRITE} * on ({OSD}) group_left (media) {PerOsd.MEDIA})
              / on (cluster, media) group_left ()
              ({among_peers(OF_REPLICA_WRITE)} > 0 {AMONG_THREE})
            )
            """,
        ),
        condition_rule(
            "delays_replica_writes",
            comment="""
            OSDs that delay the writes of others: each replica write takes longer here, and more of
            them are under way here. Or they have stopped. While threads wait for a CPU or a limit
            stops them, less counts as longer. That wait does not count if the OSD uses more CPU
            than its peers: then it is busy.
            """,
            expr=f"""
            0 * (
              (
                {_SLOW_REPLICA_WRITES}
              )
                and on ({OSD}) ({OF_REPLICA_WRITE} > @device_floor@)
                and on ({OSD}) ({_MORE_IN_PROGRESS})
                unless on ({OSD}) {BUSIER}
              or on ({OSD}) {STORE_STALLED}
              or on ({OSD}) (max by ({OSD}) ({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}) == 0)
            ) + 1
            """,
        ),
        RecordedSeries(
            record=PerOsd.OWN_STORE,
            comment="""
            The share of a client write's time outside the scheduler that the OSD's own store takes.
            Absent if nearly all of its time is spent in the scheduler: the rest is noise.
            """,
            expr=f"""
            {OF_STORE}
            / on ({OSD}) (
              {_CLIENT_WRITE_SECONDS}
              * on ({OSD}) (
                {_SHARE_OUTSIDE_SCHEDULER}
                > @part@
              )
              > 0
            )
            """,
        ),
    ),
)

# Ceph itself averages heartbeats over a minute, so these are looked at once a minute.
LINKS: Final = RuleGroup(
    name="cephqos-links",
    slow=True,
    rules=(
        condition_rule(
            "slow_link",
            comment="""
            OSDs with slow heartbeats. `peer` is the OSD whose link is slow: the worst peer, or the
            OSD itself if more of its peers are slow than of the peer's.
            """,
            expr=f"""
            0 * (
              label_replace(
                {_OWN_LINK},
                "peer", "$1", "ceph_daemon", "(.+)"
              )
              or on ({OSD}) {_WORST_PEER}
            ) + 1
            """,
        ),
    ),
)
