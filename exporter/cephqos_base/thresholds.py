"""Every threshold of the rules, which also stands in texts of boards and of the doctor.

Thresholds are properties of clusters: they do not scale with time, as windows do. An operator may
change them for the rules (`cephqos rules build --config`); texts say these.
"""

from dataclasses import dataclass
from typing import Final

from cephqos_base.judge import Bounds


@dataclass(frozen=True, kw_only=True)
class Thresholds(Bounds):
    """Where a figure becomes a finding, besides the judge's. Reasons: docs/internals/rules.md."""

    # Shares. A rate over four samples is off by a tenth: no finer steps than these mean anything.
    little: float = 0.1  # of an OSD's work; less, of another class, explains no shortfall
    part: float = 0.25  # share that matters: replica writes, own store, stopped time, CPUs, shards
    far_less: float = 0.4  # than a day's most; own store of a write (all well: 0.46 to 0.71)
    half: float = 0.5  # from here on, most: samples, OSDs, CPUs, operations, a shortfall, a wait
    coverage: float = 0.8  # samples that are there / expected; a scrape / its deadline

    # Multiples of capacity, of the median of peers, or of an OSD's own day.
    more: float = 1.5  # a wrong capacity; an OSD busier than peers, whose times say nothing then
    twice: float = 2  # slow for want of CPU, and threads that wait; costly ops: bytes run out
    slower: float = 4  # a replica write (well and saturated: at most 2.3); threads wait / run
    far_above: float = 6  # a device (slow: 23 and more)
    recovery_slow: float = 20  # a replica write, beside recovery (up to 12)

    # Devices.
    device_floor: float = 0.005  # seconds; below, a time is short, whatever it is a multiple of
    device_latency_ssd: float = 0.04  # seconds of a commit, read or request; above, it is slow
    device_latency_hdd: float = 0.15  # the same
    disk_requests: float = 60  # per second; from here on, a disk does its work and has not failed
    disk_most_requests: float = 1000  # most per second of a day; below, it is a disk and no flash
    large_requests: float = 32768  # bytes per request; above, bandwidth is the bottleneck

    # Counts.
    many: float = 4  # OSDs with one violation and cause: one alert; restarts in an hour: an alert
    series_per_osd: float = 750  # above, an alert; 20.2 with a DB device shows 728 by default
    series_of_exporter: float = 500  # of host and cluster, besides; five pools show 230
    # A third of what a day scrubs, where each is scrubbed once a week.
    scrub_growth: float = 0.05  # PGs overdue, more than a day ago / all; above, an alert


THRESHOLDS: Final = Thresholds()
