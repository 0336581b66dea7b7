"""The thresholds of the rules: the values from which a figure counts as a finding.

Rules write them as `@part@`: search alerts/ for that to find the rules that use one. An operator
may change them for the rules (`thresholds` in the file of `cephqos rules build --config`). Texts
of dashboards and of the doctor always show the values here. Thresholds are properties of a
cluster: unlike the windows of the rules they do not depend on the scrape interval.

Many rules share a threshold, so most names say how much and not of what. The comment behind a
value is its row in docs/reference/alerts.md; the line above says how rules compare with it.
"""

from dataclasses import dataclass
from typing import Final

from cephqos_base.judge import Bounds


@dataclass(frozen=True, kw_only=True)
class Thresholds(Bounds):
    """Where a figure becomes a finding, besides the judge's. Reasons: docs/internals/rules.md."""

    # Shares, from 0 to 1. A rate over four samples may be off by a tenth, so finer steps than
    # these would mean nothing.
    little: float = 0.1  # of an OSD's work; less, of another class, explains no shortfall
    part: float = 0.25  # share that matters: replica writes, own store, stopped time, CPUs, shards
    # Below this share of the largest rate in a day, a device does far less than it can. Below this
    # share of a write's time in the OSD's own store, the write waits for other OSDs.
    far_less: float = 0.4  # than a day's most; own store of a write (all well: 0.46 to 0.71)
    lost: float = 0.003  # of TCP segments, sent again; above, packets are lost
    link_full: float = 0.9  # of a link's speed; above, what it carries waits
    half: float = 0.5  # from here on, most: samples, OSDs, CPUs, operations, a shortfall, a wait
    # A judgement needs this share of the expected samples. A scrape that takes this share of its
    # deadline may soon miss it.
    coverage: float = 0.8  # samples that are there / expected; a scrape / its deadline

    # Multiples: of what an OSD delivered, of the median of OSDs of the same media, or of the OSD's
    # own median of a day.
    more: float = 1.5  # a wrong capacity; an OSD busier than peers, whose times say nothing then
    # Also in units of their own: threads that wait for a CPU on average, and normalised operations
    # per operation.
    twice: float = 2  # slow for want of CPU, and threads that wait; costly ops: bytes run out
    # Replica writes: times the median of the other OSDs. CPU: time waited / time used.
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

    swap: float = 4194304  # bytes per second back from swap: 1,024 pages, for each a thread waits

    # Counts.
    many: float = 4  # OSDs with one violation and cause: one alert; restarts in an hour: an alert
    series_per_osd: float = 750  # above, an alert; 20.2 with a DB device shows 728 by default
    series_of_exporter: float = 500  # of host and cluster, besides; five pools show 230
    # Longer, a flag or setting was forgotten: an alert, and the flag silences no other.
    forgotten: float = 14400  # seconds (4 h) since it was set
    full_soon: float = 604800  # seconds (7 d) until full, as an OSD grew in a day; below: alert
    # With 100 placement groups on each OSD, as Ceph aims at, a full OSD has 0.01 in each.
    pg_size: float = 0.05  # of an OSD's size, in one placement group; above, it is too large
    # Where each PG is scrubbed once a week, a day scrubs 1/7 of them: this is a third of that.
    scrub_growth: float = 0.05  # PGs overdue, more than a day ago / all; above, an alert


THRESHOLDS: Final = Thresholds()
