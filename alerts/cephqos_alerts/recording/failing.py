"""What has failed or run out on an OSD itself: its device, its CPU.

All of it is recorded only where it is so: on a healthy cluster these rules look at almost nothing.
"""

from typing import Final

from cephqos_alerts.recording.across import DEVICE_PLACES, DevicePlace
from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_alerts.recording.wanting import WANTING
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerMedia, PerOsd, PerOsdPlace
from cephqos_base.series import OSD, OpSeries, QosSeries, RecoverySeries, ThreadsSeries, count

# Commits and reads take long, too, when the threads that do them are ready and wait for a CPU.
_THREADS_AT: Final = {
    "commit": ("bstore_(kv|aio).*", QosSeries.STORE_KV_COMMIT_SECONDS),
    "read": ("tp_osd_tp", QosSeries.STORE_READ_WAIT_SECONDS),
}


def _waits_for_cpu(place: str) -> str:
    threads, seconds = _THREADS_AT[place]
    return f"""
    unless on ({OSD}) (
      max by ({OSD}) (
        sum by ({OSD}, instance) (rate({ThreadsSeries.WAIT_SECONDS}{{group=~"{threads}"}}[@rate@]))
        > on ({OSD}, instance)
        (@waits_for_cpu@ * sum by ({OSD}, instance) (rate({seconds}[@rate@])))
      )
      or on ({OSD}) {PerOsd.CPU_DENIED}{{by=~"{OF_THREADS}"}}
    )
    """


def _long_device_seconds(place: DevicePlace) -> RecordedSeries:
    unless = _waits_for_cpu(place.at) if place.at in _THREADS_AT else ""
    return RecordedSeries(
        record=PerOsdPlace.DEVICE_SECONDS,
        labels={"at": place.at},
        comment="A short time is no failure, even if it is many times the usual one.",
        expr=f"({place.seconds} > @device_floor@) * on ({OSD}) group_left (media) {PerOsd.MEDIA}"
        f"{unless}",
    )


# Far above the OSD's own usual figure.
_BEYOND_ITS_OWN: Final = f"\nor on ({OSD}) ".join(
    f'{PerOsdPlace.DEVICE_SECONDS}{{at="{place.at}"}}'
    f" > on ({OSD}) (@device_history@ * {previously(place.usual)})"
    for place in DEVICE_PLACES
)

# Flash of several kinds is one media. Whose capacity is far below that of the others is of another
# kind, and slower than they are by nature.
_OF_ANOTHER_KIND: Final = (
    f"{PerOsdPlace.DEVICE_SECONDS} * 0 + on ({OSD}) group_left () {PerOsd.CAPACITY_OPS}"
    f" < on (cluster, media) group_left () (@other_kind@ * {previously(PerMedia.CAPACITY_OPS)})"
)

# No scrub, no share of the data and no other kind of flash explains this. Peers that wait for the
# OSD do little themselves, so its other work makes it look busier than they are.
_FAR_TOO_LONG: Final = (
    f'{PerOsdPlace.DEVICE_SECONDS}{{media="ssd"}} > @far_too_long@ * @device_latency_ssd@'
    f' or {PerOsdPlace.DEVICE_SECONDS}{{media="hdd"}} > @far_too_long@ * @device_latency_hdd@'
    f" unless on ({OSD}) {PerOsd.DISK_AT_WORK}"
)

# Its clients' writes spend their time on another OSD: that is why it does little; its own device
# adds next to nothing. Unless others wait for it: then both have failed.
_ELSEWHERE: Final = (
    f'{PerClass.AWAY}{{class="client"}} unless on ({OSD}) {PerOsd.DELAYS_REPLICA_WRITES}'
)

_FAILING: Final = (
    RecordedSeries(
        record=PerOsd.COLLAPSED,
        comment="""
        Neither in operations nor, for what no counter of operations shows (scrub, trimming), in
        bytes or requests of its device does it do what it did at its best.
        """,
        expr=f"""
        0 * (
          {PerOsd.DELIVERED_OPS}
            < on ({OSD}) (@collapsed@ * {previously(PerOsd.DELIVERED_OPS_MAX1D)})
          unless on ({OSD}) (
            {PerOsd.DEVICE_BYTES_RATE}
            >= on ({OSD}) (@collapsed@ * {previously(PerOsd.DEVICE_BYTES_MAX1D)})
          )
          unless on ({OSD}) (
            {PerOsd.DEVICE_REQUESTS_RATE}
            >= on ({OSD}) (@collapsed@ * {previously(PerOsd.DEVICE_REQUESTS_MAX1D)})
          )
        ) + 1
        """,
    ),
    RecordedSeries(
        record=PerOsd.DISK_AT_WORK,
        comment="""
        A disk that seeks serves far fewer requests than one that reads in sequence (scrub,
        backfill), and takes long for each when many wait.
        """,
        expr=f"""
        0 * (
          {PerOsd.DEVICE_REQUESTS_RATE} >= @disk_requests@ and on ({OSD}) {previously(PerOsd.DISK)}
        ) + 1
        """,
    ),
    *(_long_device_seconds(place) for place in DEVICE_PLACES),
    RecordedSeries(
        record=PerOsd.DEVICE_FAILING,
        expr=f"""
        {PerOsd.STORE_STALLED}
        or on ({OSD}) 0 * max by ({OSD}) (
          {PerOsd.COLLAPSED}
          unless on ({OSD}) {PerOsd.DISK_AT_WORK}
          unless on ({OSD}) ({_ELSEWHERE})
          and on ({OSD}) (
            {PerOsdPlace.DEVICE_SECONDS}{{media="ssd"}} > @device_latency_ssd@
            or {PerOsdPlace.DEVICE_SECONDS} > @device_latency_hdd@
            or on ({OSD}) {_BEYOND_ITS_OWN}
          )
          or on ({OSD}) (
            {PerOsdPlace.DEVICE_SECONDS}
            > on (cluster, media, at) group_left () (@device_peers@ * {PerMedia.DEVICE_SECONDS})
            unless on ({OSD}) (
              ({PerOsd.BUSIER} or on ({OSD}) {_OF_ANOTHER_KIND})
              unless on ({OSD}) ({_FAR_TOO_LONG})
            )
          )
        ) + 1
        """,
    ),
    RecordedSeries(
        record=PerOsd.CPU_SHORT,
        expr=f"""
        0 * (
          {PerOsd.THREAD_CEILING} > @thread_ceiling@
          or on ({OSD}) {PerOsd.CPU_WAITING} > @cpu_waiting@
          or on ({OSD}) max by ({OSD}) ({PerOsd.CPU_DENIED})
        ) + 1
        """,
    ),
    RecordedSeries(
        record=PerOsd.LARGE_OPS,
        comment="""
        Where operations are so large that bytes are what runs out. With a bandwidth that is far too
        high mClock takes a large operation for one of the smallest: requests of the device are
        large all the same.
        """,
        expr=f"""
        0 * (
          {PerClass.ATTAINED_OPS}{{class="client"}}
          / on ({OSD}) (
            sum by ({OSD}) (max by ({OSD}, op) (rate({count(OpSeries.LATENCY_SECONDS)}[@rate@])))
            > 0
          ) > @large_ops@
          or on ({OSD})
          {PerOsd.DEVICE_BYTES_RATE} > on ({OSD}) (@large_requests@ * {PerOsd.DEVICE_REQUESTS_RATE})
        ) + 1
        """,
    ),
    RecordedSeries(
        record=PerOsd.DELAYS_OTHERS,
        expr=f"{PerOsd.DELAYS_REPLICA_WRITES} or {PerOsd.DEVICE_FAILING}",
    ),
    RecordedSeries(
        record=PerOsd.SLOW_FOR_RECOVERY,
        comment="""
        Where placement groups move, few operations of recovery are enough to take the CPU: an OSD
        that takes one over lists its objects again and again. What is far slower than that, a slow
        device and a reservation without progress have another reason.
        """,
        expr=f"""
        ({PerOsd.DELAYS_REPLICA_WRITES} and on ({OSD}) {PerOsd.CPU_SHORT})
          and on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} < @recovery_slow@)
          and on ({OSD}) (
            sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class=~"background_.*"}}) > @recovers@
          )
          and on ({OSD}) {RecoverySeries.SLOTS}{{state="in_progress", kind!="delete"}} > 0
          unless on ({OSD}) {PerOsd.DEVICE_FAILING}
        """,
    ),
)

# All that the causes join, in one group before theirs: Mimir takes at most 20 rules in one.
FINDINGS: Final = RuleGroup(name="cephqos-findings", rules=(*WANTING, *_FAILING))
