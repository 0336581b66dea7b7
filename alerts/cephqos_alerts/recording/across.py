"""Where the time of an OSD's clients is spent: here, on another OSD, or on the network.

A replicated write ends when the slowest replica has it. So a primary can show demand and a
shortfall because of another OSD. These series name the OSD on which the time is spent.
"""

from dataclasses import dataclass
from typing import Final

from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_alerts.recording.reservations import mean_seconds, per_osd
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerMedia, PerOsd, PerOsdPeer
from cephqos_base.series import OSD, DaemonSeries, OpSeries, OpsSeries, QosSeries, count, total


@dataclass(frozen=True)
class DevicePlace:
    """A figure that shows that an OSD waits for its device, and what is usual for it."""

    at: str  # value of the label `at`
    seconds: str
    usual: str  # the median of a day


# A throttled device shows in commits and read waits only: its requests are held back before the
# kernel counts them.
DEVICE_PLACES: Final = (
    DevicePlace("commit", PerOsd.KV_COMMIT_SECONDS_RATE, PerOsd.KV_COMMIT_SECONDS_MEDIAN1D),
    DevicePlace("read", PerOsd.READ_WAIT_SECONDS_RATE, PerOsd.READ_WAIT_SECONDS_MEDIAN1D),
    DevicePlace(
        "device", PerOsd.DEVICE_LATENCY_SECONDS_RATE, PerOsd.DEVICE_LATENCY_SECONDS_MEDIAN1D
    ),
)


def _among_peers(series: str) -> str:
    """The median of the OSDs of a cluster on the same media, where there are at least three."""
    joined = f"{series} * on ({OSD}) group_left (media) {PerOsd.MEDIA}"
    return f"""
    quantile by (cluster, media) (0.5, {joined})
      and on (cluster, media) count by (cluster, media) ({PerOsd.MEDIA}) >= 3
    """


def _more_than_peers(series: str, median: str, times: str = "@busier@") -> str:
    return (
        f"{series} * on ({OSD}) group_left (media) {PerOsd.MEDIA}"
        f" > on (cluster, media) group_left () ({times} * {median})"
    )


_CLIENT_OPS: Final = f'max by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="client"}})'
# A client's write costs its primary more than its replicas. So replica writes wait somewhat longer
# on an OSD that is the primary of many.
_SERVES_MORE: Final = (
    f"{_more_than_peers(_CLIENT_OPS, _among_peers(_CLIENT_OPS).strip())}"
    f" and on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} < @serves_more_slow@)"
)


def _holds(slow: str, share: str) -> str:
    """Each replica write takes longer here, and more of them are under way here."""
    under_way, usual = PerOsd.REPLICA_WRITES_IN_PROGRESS, PerMedia.REPLICA_WRITES_IN_PROGRESS
    return f"""
      ({PerOsd.REPLICA_SLOWNESS} > {slow})
        and on ({OSD}) ({under_way} > 1)
        and on ({OSD}) ({_more_than_peers(under_way, usual, share)})
        and on ({OSD}) ({PerOsd.REPLICA_WRITE_SECONDS} > @device_floor@)
        unless on ({OSD}) {PerOsd.BUSIER}
    """.strip()


# What kind of hardware an OSD has changes rarely, so it is evaluated once a minute.
KINDS: Final = RuleGroup(
    name="cephqos-kinds",
    slow=True,
    rules=(
        RecordedSeries(record=PerMedia.CAPACITY_OPS, expr=_among_peers(PerOsd.CAPACITY_OPS)),
        RecordedSeries(
            record=PerOsd.DISK,
            comment="Real disks. A device that served thousands of requests per second is flash,"
            " even if Ceph takes it for a disk.",
            expr=f"""
            0 * (
              {PerOsd.DEVICE_REQUESTS_MAX1D} < @disk_most_requests@
              and on ({OSD}) {PerOsd.MEDIA}{{media="hdd"}}
            ) + 1
            """,
        ),
    ),
)

ACROSS: Final = RuleGroup(
    name="cephqos-across",
    rules=(
        RecordedSeries(record=PerMedia.DELIVERED_OPS, expr=_among_peers(PerOsd.DELIVERED_OPS)),
        RecordedSeries(record=PerMedia.DEVICE_BYTES, expr=_among_peers(PerOsd.DEVICE_BYTES_RATE)),
        RecordedSeries(
            record=PerOsd.BUSIER,
            comment="""
            An OSD that does much more than its peers may be slower than they are: that is no
            failure. Scrub and trimming are in no counter of operations, but in the device's bytes.
            """,
            expr=f"""
            0 * max by ({OSD}) (
              {_more_than_peers(PerOsd.DELIVERED_OPS, PerMedia.DELIVERED_OPS)}
              or on ({OSD}) {_more_than_peers(PerOsd.DEVICE_BYTES_RATE, PerMedia.DEVICE_BYTES)}
            ) + 1
            """,
        ),
        *(
            RecordedSeries(
                record=PerMedia.DEVICE_SECONDS,
                labels={"at": place.at},
                expr=_among_peers(place.seconds),
            )
            for place in DEVICE_PLACES
        ),
        RecordedSeries(
            record=PerOsd.REPLICA_WRITE_SECONDS,
            expr=mean_seconds(QosSeries.REPLICA_WRITE_SECONDS, QosSeries.REPLICA_WRITES),
        ),
        per_osd(
            PerOsd.REPLICA_WRITES_IN_PROGRESS, f"rate({QosSeries.REPLICA_WRITE_SECONDS}[@rate@])"
        ),
        RecordedSeries(
            record=PerMedia.REPLICA_WRITE_SECONDS,
            expr=_among_peers(PerOsd.REPLICA_WRITE_SECONDS),
        ),
        RecordedSeries(
            record=PerMedia.REPLICA_WRITES_IN_PROGRESS,
            expr=_among_peers(PerOsd.REPLICA_WRITES_IN_PROGRESS),
        ),
        RecordedSeries(
            record=PerOsd.REPLICA_SLOWNESS,
            comment="Time of a replica write on this OSD, in multiples of its peers' median.",
            expr=f"""
            max by ({OSD}) (
              ({PerOsd.REPLICA_WRITE_SECONDS} * on ({OSD}) group_left (media) {PerOsd.MEDIA})
              / on (cluster, media) group_left () ({PerMedia.REPLICA_WRITE_SECONDS} > 0)
            )
            """,
        ),
        RecordedSeries(record=PerMedia.CPU_WAITING, expr=_among_peers(PerOsd.CPU_WAITING)),
        RecordedSeries(record=PerMedia.CPU_USED, expr=_among_peers(PerOsd.CPU_USED)),
        RecordedSeries(
            record=PerOsd.DELAYS_REPLICA_WRITES,
            comment="""
            OSDs that delay the writes of others. They are far slower than their peers, or slower
            while their threads wait for a CPU or a limit stops them, or they have stopped. The wait
            for a CPU does not count if the OSD uses more CPU than its peers: then it is busy.
            """,
            expr=f"""
            0 * (
              (
                {_holds("@replica_slow@", "@replica_share@")}
              or on ({OSD}) (
                {_holds("@short_of_cpu@", "@short_of_cpu@")}
                  and on ({OSD}) ({PerOsd.CPU_WAITING} > @cpu_waiting@)
                  and on ({OSD}) ({
                _more_than_peers(PerOsd.CPU_WAITING, PerMedia.CPU_WAITING, "@short_of_cpu@")
            })
                  unless on ({OSD}) ({
                _more_than_peers(PerOsd.CPU_USED, PerMedia.CPU_USED, "@busy_cpu@")
            })
              )
              or on ({OSD}) (
                {_holds("@short_of_cpu@", "@short_of_cpu@")}
                  and on ({OSD}) {previously(PerOsd.CPU_DENIED)}{{by=~"{OF_THREADS}"}}
              )
              )
              unless on ({OSD}) ({_SERVES_MORE})
            or on ({OSD}) {PerOsd.STORE_STALLED}
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
            {PerOsd.STORE_LATENCY_SECONDS}
            / on ({OSD}) (
              max by ({OSD}) (rate({total(OpSeries.LATENCY_SECONDS)}{{op="write"}}[@rate@]))
              / (max by ({OSD}) (rate({count(OpSeries.LATENCY_SECONDS)}{{op="write"}}[@rate@]))
                > 0)
              * on ({OSD}) (
                1 - max by ({OSD}) (rate({QosSeries.CLIENT_WAIT_SECONDS}[@rate@]))
                / on ({OSD}) ({PerOsd.CLIENT_PRESENT_RATE} > 0)
                > @left_queue@
              )
              > 0
            )
            """,
        ),
        RecordedSeries(
            record=PerOsdPeer.WAITS_FOR,
            comment="""
            The other OSD for which operations of an OSD's clients waited most, by sampling.
            """,
            expr=f"""
            topk by ({OSD}) (1,
              label_replace(
                max by ({OSD}, peer) (
                  rate({OpsSeries.SAMPLED_WAIT_SECONDS}{{
                    kind="client", event="subops", peer=~"osd.+"}}[@hold@])
                ) > 0,
                "by", "$1", "peer", "(.+)"
              )
            )
            """,
        ),
    ),
)
