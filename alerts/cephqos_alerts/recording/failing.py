"""What has failed or run out on an OSD itself: its device, its CPU.

All of it is recorded only where it is so: on a healthy cluster these rules look at almost nothing.
"""

from typing import Final

from cephqos_alerts.recording.across import DEVICE_SECONDS
from cephqos_alerts.rules.rule import RecordedSeries
from cephqos_base.recorded import PerClass, PerMedia, PerOsd, PerOsdPlace
from cephqos_base.series import OSD, OpSeries, QosSeries, ThreadsSeries

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
    )
    """


def _long_device_seconds(place: str, series: str) -> RecordedSeries:
    """What is short is no failure, however many times longer than usual it takes."""
    unless = _waits_for_cpu(place) if place in _THREADS_AT else ""
    return RecordedSeries(
        record=PerOsdPlace.DEVICE_SECONDS,
        labels={"at": place},
        expr=f"({series} > @device_floor@) * on ({OSD}) group_left (media) {PerOsd.MEDIA}{unless}",
    )


def _beyond_its_own(place: str, series: str) -> str:
    """Far above the OSD's own usual figure."""
    usual = series.replace(":rate", ":median1d")
    return f'{PerOsdPlace.DEVICE_SECONDS}{{at="{place}"}} > on ({OSD}) (@device_history@ * {usual})'


_BEYOND_ITS_OWN: Final = f"\nor on ({OSD}) ".join(
    _beyond_its_own(place, series) for place, series in DEVICE_SECONDS.items()
)

# Flash of several kinds is one media. Whose capacity is far below that of the others is of another
# kind, and slower than they are by nature.
_OF_ANOTHER_KIND: Final = (
    f"{PerOsdPlace.DEVICE_SECONDS} * 0 + on ({OSD}) group_left () {PerOsd.CAPACITY_OPS}"
    f" < on (cluster, media) group_left () (@other_kind@ * {PerMedia.CAPACITY_OPS})"
)

# No scrub, no share of the data and no other kind of flash explains this. Peers that wait for the
# OSD do little meanwhile, and whatever else it does makes it look busier than they are.
_FAR_TOO_LONG: Final = (
    f'{PerOsdPlace.DEVICE_SECONDS}{{media="ssd"}} > @far_too_long@ * @device_latency_ssd@'
    f' or {PerOsdPlace.DEVICE_SECONDS}{{media="hdd"}} > @far_too_long@ * @device_latency_hdd@'
    f" unless on ({OSD}) {PerOsd.DISK_AT_WORK}"
)

# Its clients' writes spend their time on another OSD: that is why it does little; its own device
# adds next to nothing. Unless others wait for it: then both have failed.
_ELSEWHERE: Final = (
    f'{PerClass.AWAY}{{class="client"}} unless on ({OSD}) {PerOsd.HOLDS_REPLICA_WRITES}'
)

FAILING: Final = (
    # Neither in operations nor, for what no counter of operations shows (scrub, trimming), in bytes
    # or requests of its device does it do what it did at its best.
    RecordedSeries(
        record=PerOsd.COLLAPSED,
        expr=f"""
        0 * (
          {PerOsd.DELIVERED_OPS} < on ({OSD}) (@collapsed@ * {PerOsd.DELIVERED_OPS_MAX1D})
          unless on ({OSD}) (
            {PerOsd.DEVICE_BYTES_RATE} >= on ({OSD}) (@collapsed@ * {PerOsd.DEVICE_BYTES_MAX1D})
          )
          unless on ({OSD}) (
            {PerOsd.DEVICE_REQUESTS_RATE}
            >= on ({OSD}) (@collapsed@ * {PerOsd.DEVICE_REQUESTS_MAX1D})
          )
        ) + 1
        """,
    ),
    # A disk that seeks serves far fewer requests than one that reads in sequence (scrub, backfill),
    # and takes long for each when many wait.
    RecordedSeries(
        record=PerOsd.DISK_AT_WORK,
        expr=f"""
        0 * (
          {PerOsd.DEVICE_REQUESTS_RATE} >= @disk_requests@ and on ({OSD}) {PerOsd.DISK}
        ) + 1
        """,
    ),
    *(_long_device_seconds(place, series) for place, series in DEVICE_SECONDS.items()),
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
        ) + 1
        """,
    ),
    # Where operations are so large that bytes are what runs out. With a bandwidth that is far too
    # high mClock takes a large operation for one of the smallest: requests of the device are large
    # all the same.
    RecordedSeries(
        record=PerOsd.LARGE_OPS,
        expr=f"""
        0 * (
          {PerClass.ATTAINED_OPS}{{class="client"}}
          / on ({OSD}) (
            sum by ({OSD}) (max by ({OSD}, op) (rate({OpSeries.LATENCY_SECONDS}_count[@rate@])))
            > 0
          ) > @large_ops@
          or on ({OSD})
          {PerOsd.DEVICE_BYTES_RATE} > on ({OSD}) (@large_requests@ * {PerOsd.DEVICE_REQUESTS_RATE})
        ) + 1
        """,
    ),
)
