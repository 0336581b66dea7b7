"""What has failed or run out on an OSD itself: its device, its CPU.

Each is a condition: a series with the value 1 for the OSDs of which it is true, and none for
others. So on a healthy cluster these rules cost almost nothing. A condition is written as
`0 * max by (…) (…) + 1`, which makes a 1 of any value.

"failing" looks at three things: the time of the device (DEVICE_SECONDS, where it is long), whether
the OSD has collapsed (does far less than before), and what its peers do.
"""

from typing import Final, NamedTuple

from cephqos_alerts.recording.across import AMONG_THREE, among_peers
from cephqos_alerts.recording.conditions import (
    BUSIER,
    COLLAPSED,
    CPU_SHORT,
    DELAYS_REPLICA_WRITES,
    DEVICE_FAILING,
    DISK_AT_WORK,
    STORE_STALLED,
    condition_rule,
)
from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_alerts.recording.reservations import (
    BUSIEST_THREAD,
    BYTES,
    CPU_WAITING,
    DEVICE_PLACES,
    OF_DEVICE,
    REQUESTS,
    most,
)
from cephqos_alerts.recording.wanting import WANTING
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerOsd, PerOsdPlace
from cephqos_base.series import OSD, OpSeries, QosSeries, RecoverySeries, ThreadsSeries, count


class _ThreadsAt(NamedTuple):
    """Commits and reads also take long if their threads wait for a CPU."""

    groups: str  # of threads, a regular expression
    seconds: str  # the counter of the time that commits or reads took


_THREADS_AT: Final = {
    "commit": _ThreadsAt("bstore_(kv|aio).*", QosSeries.STORE_KV_COMMIT_SECONDS),
    "read": _ThreadsAt("tp_osd_tp", QosSeries.STORE_READ_WAIT_SECONDS),
}


# A limit has stopped the OSD's threads within the last minute. Such an OSD answers late or not at
# all, so its figures have gaps.
_STOPPED: Final = f'max_over_time({PerOsd.CPU_DENIED}{{by=~"{OF_THREADS}"}}[@sustained@])'
_UNLESS_STOPPED: Final = f"unless on ({OSD}) {_STOPPED}"


def _unless_waiting_for_cpu(place: str) -> str:
    """Leave out OSDs whose threads wait for a CPU during half of that time, or are stopped."""
    groups, seconds = _THREADS_AT[place]
    return f"""
    unless on ({OSD}) (
      max by ({OSD}) (
        sum by ({OSD}, instance) (rate({ThreadsSeries.WAIT_SECONDS}{{group=~"{groups}"}}[@rate@]))
        > on ({OSD}, instance)
        (@half@ * sum by ({OSD}, instance) (rate({seconds}[@rate@])))
      )
      or on ({OSD}) {_STOPPED}
    )
    """


def _long_device_seconds(place: str) -> RecordedSeries:
    """The time of a commit, read or request, where it is long because of the device."""
    seconds = f'{PerOsdPlace.SECONDS}{{at="{place}"}}'
    unless = _unless_waiting_for_cpu(place) if place in _THREADS_AT else ""
    return RecordedSeries(
        record=PerOsdPlace.DEVICE_SECONDS,
        labels={"at": place},
        comment="A short time is no failure, even if it is many times the usual one.",
        expr=f"({seconds} > @device_floor@) * on ({OSD}) group_left (media) {PerOsd.MEDIA}{unless}",
    )


# Far above the median of the OSD's own last day.
_FAR_ABOVE_ITS_DAY: Final = (
    f"{PerOsdPlace.DEVICE_SECONDS}"
    f" > on ({OSD}, at) (@far_above@ * {previously(PerOsdPlace.SECONDS_MEDIAN1D)})"
)

# All kinds of flash are one media. An OSD with a far lower capacity than the others has another
# kind, which is slower by nature.
_OTHER_KIND_OF_FLASH: Final = (
    f"{PerOsdPlace.DEVICE_SECONDS} * 0 + on ({OSD}) group_left () {PerOsd.CAPACITY_OPS}"
    f" < on (cluster, media) group_left () (@half@ * ({among_peers(PerOsd.CAPACITY_OPS)}))"
)

# So long that neither more work nor another kind of flash explains it. Peers that wait for the OSD
# do little themselves, so it may look busier than they are.
_FAR_TOO_LONG: Final = (
    f'{PerOsdPlace.DEVICE_SECONDS}{{media="ssd"}} > @far_above@ * @device_latency_ssd@'
    f' or {PerOsdPlace.DEVICE_SECONDS}{{media="hdd"}} > @far_above@ * @device_latency_hdd@'
    f" unless on ({OSD}) {DISK_AT_WORK}"
)

# The OSD does little because its clients' writes wait for another OSD, not for its own device. If
# others wait for this OSD, too, both have failed.
_WAITS_FOR_ANOTHER: Final = (
    f'{PerClass.AWAY}{{class="client"}} unless on ({OSD}) {DELAYS_REPLICA_WRITES}'
)

# In the next expressions, `and` and `unless` bind before `or`, from left to right.
_COLLAPSED_AND_SLOW: Final = f"""
          {COLLAPSED}
          unless on ({OSD}) {DISK_AT_WORK}
          unless on ({OSD}) ({_WAITS_FOR_ANOTHER})
          and on ({OSD}) (
            {PerOsdPlace.DEVICE_SECONDS}{{media="ssd"}} > @device_latency_ssd@
            or {PerOsdPlace.DEVICE_SECONDS} > @device_latency_hdd@
            or on ({OSD}) {_FAR_ABOVE_ITS_DAY}
          )
"""
# Slower than its peers because it does more or is another kind of flash, and not far too slow.
_SLOWNESS_EXPLAINED: Final = f"""
              ({BUSIER} or on ({OSD}) {_OTHER_KIND_OF_FLASH})
              unless on ({OSD}) ({_FAR_TOO_LONG})
"""
_FAR_ABOVE_PEERS: Final = f"""
            {PerOsdPlace.DEVICE_SECONDS}
            > on (cluster, media, at) group_left () (
              @far_above@ * ({among_peers(OF_DEVICE, "cluster, media, at")} {AMONG_THREE})
            )
            unless on ({OSD}) (
              {_SLOWNESS_EXPLAINED.strip()}
            )
"""

# Normalised operations per operation of a client: high if its operations are large.
_COST_OF_CLIENT_OP: Final = f"""
          {PerClass.ATTAINED_OPS}{{class="client"}}
          / on ({OSD}) (
            sum by ({OSD}) (max by ({OSD}, op) (rate({count(OpSeries.LATENCY_SECONDS)}[@rate@])))
            > 0
          )
""".strip()

_FAILING: Final = (
    condition_rule(
        "collapsed",
        comment="""
        The OSD does far less than its best of the last day: in operations, and in bytes and
        requests of its device. Scrub and trimming are only in the device's figures.
        """,
        expr=f"""
        0 * (
          {PerOsd.DELIVERED_OPS}
            < on ({OSD}) (@far_less@ * {most("ever")})
          unless on ({OSD}) (
            {PerOsd.DEVICE_WORK}
            >= on ({OSD}, unit) (@far_less@ * {previously(PerOsd.DEVICE_WORK_MAX1D)})
          )
        ) + 1
        """,
    ),
    condition_rule(
        "disk_at_work",
        comment="""
        A disk that seeks serves far fewer requests than one that reads in sequence (scrub,
        backfill), and takes long for each when many wait. A device that served thousands per second
        is flash, even if Ceph takes it for a disk.
        """,
        expr=f"""
        0 * max by ({OSD}) (
          {REQUESTS} >= @disk_requests@
            and on ({OSD})
              {previously(PerOsd.DEVICE_WORK_MAX1D)}{{unit="requests"}} < @disk_most_requests@
            and on ({OSD}) {PerOsd.MEDIA}{{media="hdd"}}
        ) + 1
        """,
    ),
    *(_long_device_seconds(place) for place in DEVICE_PLACES),
    condition_rule(
        "device_failing",
        comment="""
        The store stands still, and no limit stops its threads; or the OSD does far less than its
        best while its device is slow; or the device takes far longer than those of its peers, and
        neither more work nor another kind of flash explains it.
        """,
        expr=f"""
        {STORE_STALLED} {_UNLESS_STOPPED}
        or on ({OSD}) 0 * max by ({OSD}) (
          {_COLLAPSED_AND_SLOW.strip()}
          or on ({OSD}) (
            {_FAR_ABOVE_PEERS.strip()}
          )
        ) + 1
        """,
    ),
    condition_rule(
        "cpu_short",
        comment="""
        The busiest thread can do no more, or several threads wait for a CPU, or something outside
        of the OSD takes its CPU.
        """,
        expr=f"""
        0 * max by ({OSD}) (
          {BUSIEST_THREAD} > @reached@
          or on ({OSD}) {CPU_WAITING} > @twice@
          or on ({OSD}) {PerOsd.CPU_DENIED}
        ) + 1
        """,
    ),
    condition_rule(
        "large_ops",
        comment="""
        Operations are so large that bandwidth is the bottleneck. If the configured bandwidth is far
        too high, mClock charges a large operation like a small one. The requests of the device are
        large even then.
        """,
        expr=f"""
        0 * (
          {_COST_OF_CLIENT_OP} > @twice@
          or on ({OSD})
          {BYTES} > on ({OSD}) (@large_requests@ * {REQUESTS})
        ) + 1
        """,
    ),
    condition_rule("delays_others", expr=f"{DELAYS_REPLICA_WRITES} or on ({OSD}) {DEVICE_FAILING}"),
    condition_rule(
        "slow_for_recovery",
        comment="""
        While placement groups move, a little recovery is enough to use up the CPU: an OSD that
        takes one over lists its objects again and again. That does not explain an OSD that is far
        slower, a slow device, or recovery that makes no progress.
        """,
        expr=f"""
        ({DELAYS_REPLICA_WRITES} and on ({OSD}) {CPU_SHORT})
          and on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} < @recovery_slow@)
          and on ({OSD}) ({PerClass.ATTAINED_OPS}{{class=~"background_.*"}} > 0)
          and on ({OSD}) {RecoverySeries.SLOTS}{{state="in_progress", kind!="delete"}} > 0
          unless on ({OSD}) {DEVICE_FAILING}
        """,
    ),
)

# All series that the causes use, in a group before theirs: Mimir takes at most 20 rules in a group.
FINDINGS: Final = RuleGroup(name="cephqos-findings", rules=(*WANTING, *_FAILING))
