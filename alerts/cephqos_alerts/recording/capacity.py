"""Recording rules: a capacity that is less than the OSD can do.

These series exist only for such OSDs, so on most clusters these rules cost almost nothing.
"""

from typing import Final

from cephqos_alerts.recording.conditions import CPU_SHORT, LARGE_OPS
from cephqos_alerts.recording.reservations import BUSIEST_THREAD
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import (
    BEST_EFFORT,
    OSD,
    OSD_CLASS,
    DisksSeries,
    QosSeries,
    RecoverySeries,
    ScrubSeries,
)


def _rate_of_busiest_device(counter: str, window: str) -> str:
    """The highest rate among the devices that the OSD opens, in a window of rules/settings.py."""
    rate = f'rate({counter}{{layer="osd"}}[@{window}@])'
    return f"max by ({OSD}) (sum by ({OSD}, instance, device) ({rate}))"


_DEVICE_REQUESTS: Final = _rate_of_busiest_device(DisksSeries.OPS, window="hold")
# How busy the OSD is: the mean number of requests in its device, plus the shares of the time in
# which it commits, reads, and its busiest thread runs. The bottleneck is one of these, so the sum
# is never too low. It is too high on a device that serves several requests at once. So a capacity
# is called too low only if there is room for certain. Commits and reads are in it, since a limit of
# a cgroup delays requests before the device counts them.
_BUSY: Final = f"""
              {_rate_of_busiest_device(DisksSeries.WEIGHTED_SECONDS, window="rate")}
              + on ({OSD}) max by ({OSD}) (rate({QosSeries.STORE_KV_COMMIT_SECONDS}[@rate@]))
              + on ({OSD}) max by ({OSD}) (rate({QosSeries.STORE_READ_WAIT_SECONDS}[@rate@]))
              + on ({OSD}) {BUSIEST_THREAD}
"""
_BACKFILL_WITHOUT_SCRUB: Final = f"""
                    {RecoverySeries.SLOTS}{{state="in_progress", kind!="delete"}} > 0
                    unless on ({OSD}) {ScrubSeries.SLOTS} > 0
"""
# mClock charges far more for scrub, trimming and the removal of pools than they use. So their limit
# leaves the device idle at any capacity. For backfill it charges what it uses.
_CHARGED_TOO_MUCH: Final = f"""
                  {PerClass.AT_LIMIT}{{class="{BEST_EFFORT}"}}
                  unless on ({OSD}) (
                    {_BACKFILL_WITHOUT_SCRUB.strip()}
                  )
"""
# Classes at their limit, except best effort doing the work that is charged too much.
_AT_LIMIT: Final = f"""
                {PerClass.AT_LIMIT}
                unless on ({OSD_CLASS}) (
                  {_CHARGED_TOO_MUCH.strip()}
                )
"""
# The limit as a share of the capacity, of each class that is at its limit.
_LIMIT_WHERE_REACHED: Final = f"""
              max by ({OSD_CLASS}) ({QosSeries.LIMIT_RATIO})
                and on ({OSD_CLASS}) (
                {_AT_LIMIT.strip()}
                )
""".strip()

UNDERSTATED: Final = RuleGroup(
    name="cephqos-understated",
    slow=True,
    rules=(
        RecordedSeries(
            record=PerOsd.SUSTAINED_OPS,
            comment="""
            The minimum that an OSD did in any sample of the hold, if it is more than its capacity.
            Reads from a cache do not count: they do not need the device. Large operations do not
            count either: for them the sequential bandwidth is the capacity.
            """,
            expr=f"""
            min_over_time({PerOsd.DELIVERED_OPS}[@hold@]) > on ({OSD}) {PerOsd.CAPACITY_OPS}
              and on ({OSD}) (
                count_over_time({PerOsd.DELIVERED_OPS}[@hold@]) >= @hold_samples@
              )
              and on ({OSD}) (
                {_DEVICE_REQUESTS} > on ({OSD}) {PerOsd.CAPACITY_OPS}
              )
              unless on ({OSD}) max_over_time({LARGE_OPS}[@hold@])
            """,
        ),
        RecordedSeries(
            record=PerOsd.AT_LIMIT_WITH_ROOM,
            comment="""
            A limit is a share of the capacity. If the capacity is right, a class at its limit keeps
            the bottleneck of the OSD busy for about that share of the time. The value is that share
            divided by the busy time of device, commits, reads and busiest thread together.
            """,
            expr=f"""
            max by ({OSD}) (
              {_LIMIT_WHERE_REACHED}
            )
            / on ({OSD}) (
              {_BUSY.strip()}
            ) > @more@
              unless on ({OSD}) {CPU_SHORT}
              unless on ({OSD}) {PerOsd.STORE_PILING_UP} == 1
            """,
        ),
    ),
)
