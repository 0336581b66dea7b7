"""What has failed or run out on an OSD itself: its device, its CPU."""

from typing import Final

from cephqos_alerts.across import BUSIER_THAN_PEERS, DEVICE_SECONDS
from cephqos_alerts.rules import Recording
from cephqos_base.recorded import PerClass, PerMedia, PerOsd
from cephqos_base.series import OSD, Op, Threads

# Commits take long, too, when the threads that commit are ready and wait for a CPU.
_COMMITS_WAIT_FOR_CPU: Final = f"""
max by ({OSD}) (
  sum by ({OSD}, instance) (rate({Threads.WAIT_SECONDS}{{group=~"bstore_kv.*"}}[@rate@]))
) > @commit_cpu@
"""
_SLOW: Final = f"""
({PerOsd.KV_COMMIT_SECONDS_RATE} > @slow@
  unless on ({OSD}) ({_COMMITS_WAIT_FOR_CPU.strip()}))
or {PerOsd.READ_WAIT_SECONDS_RATE} > @slow@
or {PerOsd.DEVICE_LATENCY_SECONDS_RATE} > @slow@
"""


def _slow(media: str) -> str:
    return _SLOW.replace("@slow@", f"@device_latency_{media}@")


def _beyond(series: str) -> str:
    """Far above the OSD's own usual figure."""
    return f"({series}:rate > @device_floor@) > @device_history@ * {series}:median1d"


def _beyond_peers(place: str, series: str) -> str:
    """Far above the median of the OSDs on the same media."""
    return f"""(
              ({series} > @device_floor@) * on ({OSD}) group_left (media) {PerOsd.MEDIA}
              > on (cluster, media) group_left ()
              (@device_peers@ * {PerMedia.DEVICE_SECONDS}{{at="{place}"}})
            )"""


_FAR_BEYOND_PEERS: Final = f"\n            or on ({OSD}) ".join(
    _beyond_peers(place, series)
    + (f"\n            unless on ({OSD}) ({_COMMITS_WAIT_FOR_CPU})" if place == "commit" else "")
    for place, series in DEVICE_SECONDS.items()
)

RESOURCES: Final = (
    # Neither in operations nor in bytes does it do what it did at its best.
    Recording(
        record=PerOsd.COLLAPSED,
        expr=f"""
        ({PerOsd.DELIVERED_OPS}
          < bool on ({OSD}) (@collapsed@ * {PerOsd.DELIVERED_OPS_MAX1D}))
        * on ({OSD}) (
          ({PerOsd.DEVICE_BYTES_RATE}
            < bool on ({OSD}) (@collapsed@ * {PerOsd.DEVICE_BYTES_MAX1D}))
          or {PerOsd.DELIVERED_OPS} * 0 + 1
        )
        """,
    ),
    Recording(
        record=PerOsd.DEVICE_FAILING,
        expr=f"""
        ({PerOsd.STORE_STALLED} == 1)
        or on ({OSD}) clamp_max(
          (
            {PerOsd.COLLAPSED} == 1
            and on ({OSD}) (
              ({_slow("ssd").strip()})
                and on ({OSD}) {PerOsd.MEDIA}{{media="ssd"}}
              or {_slow("hdd").strip()}
              or {_beyond("osd:cephqos_kv_commit_seconds")}
                unless on ({OSD}) ({_COMMITS_WAIT_FOR_CPU.strip()})
              or {_beyond("osd:cephqos_read_wait_seconds")}
              or {_beyond("osd:cephqos_device_latency_seconds")}
            )
          )
          or on ({OSD}) 0 * max by ({OSD}) (
            ({_FAR_BEYOND_PEERS})
            unless on ({OSD}) ({BUSIER_THAN_PEERS})
          ) + 1,
          1
        )
        """,
    ),
    Recording(
        record=PerOsd.CPU_SHORT,
        expr=f"""
        clamp_max(
          (({PerOsd.THREAD_CEILING} > bool @thread_ceiling@)
            or {PerOsd.CPU_WAITING} * 0)
          + on ({OSD}) (({PerOsd.CPU_WAITING} > bool @cpu_waiting@)
            or {PerOsd.THREAD_CEILING} * 0),
          1
        )
        """,
    ),
    Recording(
        record=PerOsd.COST_PER_OP,
        expr=f"""
        {PerClass.ATTAINED_OPS}{{class="client"}}
        / on ({OSD}) (
          sum by ({OSD}) (max by ({OSD}, op) (rate({Op.LATENCY_SECONDS}_count[@rate@])))
          > 0
        )
        """,
    ),
)
