"""Every threshold of the rules, which also stands in texts of boards and of the doctor.

Thresholds are properties of clusters: they do not scale with time, as windows do. An operator may
change them for the rules (`cephqos rules build --settings`); texts say these.
"""

from dataclasses import dataclass
from typing import Final

from cephqos_base.judge import Bounds


@dataclass(frozen=True, kw_only=True)
class Thresholds(Bounds):
    """Where a figure becomes a finding, besides the judge's. Reasons: docs/internals/rules.md."""

    # Demand.
    steady: float = 0.33  # mean in progress / lowest of the samples; below, only bursts
    own_store: float = 0.3  # own store / time of a client write; below, it waits for another OSD
    partly_own_store: float = 0.42  # the same; below, it waits for an OSD that delays others
    left_queue: float = 0.2  # time of a client write outside the queue; below, nothing is judged

    # Cause limit: a class is at its limit while the OSD has room.
    idle: float = 0.5  # delivered / capacity; below, the OSD has room

    # Cause replica_writes.
    immediate_share: float = 0.3  # replica writes / delivered; above, they fill the OSD
    full: float = 0.67  # delivered / capacity; above, the OSD is full: 1 / overstated

    # Cause other_class.
    other_class: float = 0.1  # excess of a class / delivered; below, it explains nothing
    other_class_size: float = 0.5  # excess / shortfall of the others; above, it explains that

    # Cause one_shard.
    few_shards: float = 0.25  # shards with work of a class / all; up to this, one object is hot

    # Cause capacity.
    overstated: float = 1.5  # capacity / most ever delivered; above, it is too high
    understated: float = 1.5  # delivered in every sample / capacity; above, it is too low
    large_ops: float = 2  # normalised ops / client op; above, bandwidth is the bottleneck
    large_requests: float = 32768  # bytes per request of a device; above, the same

    # Cause device: it has failed if it is slow and the OSD has collapsed, or far above its peers.
    collapsed: float = 0.4  # done / most of a day; below, the OSD does far less than it can
    device_latency_ssd: float = 0.04  # seconds of a commit, read or request; above, it is slow
    device_latency_hdd: float = 0.15  # the same
    device_history: float = 5  # its time / its own median of a day; above, it is slow too
    device_peers: float = 5  # its time / median of peers; above, it has failed
    device_floor: float = 0.005  # seconds; below, a time is short, whatever it is a multiple of
    far_too_long: float = 6  # its time / device_latency; above, no other work explains it
    disk_requests: float = 60  # per second; from here on, a disk does its work and has not failed
    disk_most_requests: float = 1000  # most per second of a day; below, it is a disk and no flash
    other_kind: float = 0.5  # capacity / median of peers; below, it is another kind of flash
    busier: float = 1.5  # delivered / median of peers; above, an OSD is slow for being busy

    # Cause other_osd: an OSD that delays the writes of others.
    replica_slow: float = 4  # time of a replica write / median of peers; above, it may delay them
    replica_share: float = 3  # replica writes under way / median of peers; above both, it does
    short_of_cpu: float = 2  # in place of both, and waits for a CPU / median: of threads that wait
    busy_cpu: float = 1.2  # used CPU / median of peers; above, the OSD is busy and lacks no CPU
    serves_more_slow: float = 6  # as replica_slow; above, more clients than peers explain no more
    flood: float = 0.1  # recovery / delivered; above, an OSD may be slow because it recovers
    recovers: float = 0.1  # normalised ops/s of recovery; above, it makes progress
    recovery_slow: float = 20  # as replica_slow; above, recovery explains no more

    # Cause cpu.
    thread_ceiling: float = 0.95  # busiest thread / one CPU; above, it can do no more
    cpu_waiting: float = 2  # threads of an OSD that wait for a CPU; above, it lacks CPU
    waits_for_cpu: float = 0.5  # CPU wait / time of commits or reads; above, no fault of the device
    throttled: float = 0.2  # periods in which a CPU limit was used up / all; above, it holds back
    memory_pressure: float = 0.2  # time in which a thread waits for memory; above, the same
    at_io_limit: float = 0.9  # done / I/O limit; above, the same: requests come in bursts
    host_full: float = 0.9  # used or stolen / CPUs of a host; above, the host is full
    taken: float = 0.5  # by programs that are no OSD / CPUs of a host; above, they take its CPUs
    stolen: float = 0.2  # by other virtual machines / CPUs of a host; above, they do
    starved: float = 3  # waits for a CPU / CPU used, of an OSD; above, others take its CPUs
    starved_threads: float = 1  # of an OSD that wait for a CPU; below, they lack none

    # How long and how many, before an alert fires.
    lasting: float = 0.5  # samples of a hold in which it is so; from here on, it goes on
    repeated: float = 900  # seconds of an hour with a reservation violated; above, an alert
    cluster_share: float = 0.5  # OSDs concerned / all; from here on, it is the whole cluster
    many_osds: float = 4  # OSDs with one violation and cause; from here on, they are one alert
    held_up: float = 0.5  # client ops on OSDs with demand / all; above, the cluster has demand

    # The observer.
    coverage: float = 0.8  # samples that are there / expected in a window; below, nothing is said
    restarts: float = 3  # of what is scraped, in an hour; above, an alert
    scrape_seconds: float = 8  # of a scrape whose deadline is 10; above, an alert
    series_per_osd: float = 750  # above, an alert; 20.2 with a DB device shows 728 by default
    series_of_exporter: float = 500  # of host and cluster, besides; five pools show 230

    # Background work.
    recovery_eta: float = 86400  # seconds that recovery still takes; above, an alert
    # A third of what a day scrubs, where each is scrubbed once a week.
    scrub_growth: float = 0.05  # PGs overdue, more than a day ago / all; above, an alert


THRESHOLDS: Final = Thresholds()
