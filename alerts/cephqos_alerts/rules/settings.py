"""Every threshold, window and link of the rules, in one place.

Rules name them as `@name@`. Windows and holds are written as they are for a scrape interval of
15 s; `time_scale` shortens all of them in the same proportion for tests and demos. Thresholds are
properties of clusters and do not scale.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from cephqos_base.judge import Bounds
from cephqos_base.units import duration

_PLACEHOLDER: Final = re.compile(r"@(\w+)@")

# A rate needs two samples; four make it survive a lost scrape.
SAMPLES_PER_RATE: Final = 4

# Seconds, before scaling.
WINDOWS: Final[Mapping[str, float]] = {
    "rate": 60,  # rates of counters
    "sustained": 60,  # how long a state must hold, in every sample
    "hold": 300,  # how long a violation must last before an alert fires
    "long_hold": 900,
    "hour": 3600,
    "day": 86400,
    "history_step": 300,  # how finely the look back samples
    "slow_interval": 60,  # how often the rules that look back for a day are evaluated
}


@dataclass(frozen=True, kw_only=True)
class Thresholds(Bounds):
    """Where a figure becomes a finding, besides the judge's. Reasons: docs/internals/rules.md."""

    steady: float = 0.33  # of those in every sample are there between samples too, on average
    idle: float = 0.5  # delivered below this share of the capacity
    immediate_share: float = 0.3  # of what is delivered
    full: float = 0.67  # delivered above this share of the capacity fills the OSD: 1 / overstated
    other_class: float = 0.1  # of what is delivered
    other_class_size: float = 0.5  # of the shortfall that the excess of another class explains
    few_shards: float = 0.25  # of the shards, at most, have work of one class
    overstated: float = 1.5  # capacity above this multiple of what was ever delivered
    understated: float = 1.5  # delivered above this multiple of the capacity, in every sample
    device_latency_ssd: float = 0.04  # seconds
    device_latency_hdd: float = 0.15
    device_history: float = 5  # times its own median of a day
    device_peers: float = 5  # times the median of the OSDs on the same media
    flood: float = 0.1  # of what is delivered: an OSD that recovers so much may be slow for it
    recovers: float = 0.1  # normalised ops per second: recovery makes progress, however slowly
    recovery_slow: float = 20  # times the median of replica writes: recovery explains no more
    serves_more_slow: float = 6  # the same: who serves more clients than its peers explains no more
    busier: float = 1.5  # times the median of what peers deliver: then it is slow for being busy
    far_too_long: float = 6  # times device_latency: no work that is done beside explains it
    disk_requests: float = 60  # per second: as many as a healthy disk serves while it seeks
    disk_most_requests: float = 1000  # per second: no disk serves more at its best
    other_kind: float = 0.5  # of the median capacity on the same media
    device_floor: float = 0.005  # seconds; below, a multiple of little means nothing
    collapsed: float = 0.4  # of the most that was delivered in a day
    thread_ceiling: float = 0.95
    cpu_waiting: float = 2  # threads of an OSD ready to run and without a CPU
    throttled: float = 0.2  # of the periods of a CPU limit, in which it was used up
    memory_pressure: float = 0.2  # of the time a thread waits for memory
    at_io_limit: float = 0.9  # of it: requests come in bursts, so it is never reached exactly
    host_full: float = 0.9  # of the CPUs of a host, used or stolen
    taken: float = 0.5  # of the CPUs of a host, by other programs than its OSDs
    stolen: float = 0.2  # of the CPUs of a host, by other virtual machines
    starved: float = 3  # times as long as an OSD's threads run, they wait for a CPU
    waits_for_cpu: float = 0.5  # of the time of commits or reads that their threads wait for a CPU
    own_store: float = 0.3  # of a client write: below, the time is spent elsewhere
    partly_own_store: float = 0.42  # the same, where an OSD is seen to hold up others
    left_queue: float = 0.2  # of a client write is spent outside of the queue; below, all is queue
    replica_slow: float = 4  # times the median of replica writes on the same media
    replica_share: float = 3  # times the median of replica writes under way
    short_of_cpu: float = 2  # times the medians of both, where threads wait for a CPU so much more
    busy_cpu: float = 1.2  # times the median of what peers use: then it is not CPU that it lacks
    large_ops: float = 2  # normalised operations in one: above, bytes are what it costs
    large_requests: float = 32768  # bytes of a device's request: above, bytes are what runs out
    lasting: float = 0.5  # of the samples of a hold
    cluster_share: float = 0.5  # of the OSDs
    cluster_osds: float = 4
    held_up: float = 0.5  # of the client operations in progress, on OSDs with demand
    coverage: float = 0.8  # of the samples that a window should hold
    repeated: float = 900  # seconds of an hour in which a reservation was violated
    restarts: float = 3  # of what is scraped in an hour
    scrape_seconds: float = 8  # of a deadline of 10
    series_per_osd: float = 750  # 20.2 with a DB device shows 728 with nothing switched on
    series_of_exporter: float = 500  # of host and cluster; a cluster of five pools shows 230
    recovery_eta: float = 86400  # seconds
    scrub_growth: float = 1  # PGs more than a day ago


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """What a set of rules is generated for."""

    scrape_interval: float = 15.0
    evaluations_per_scrape: int = 1  # of which the engine keeps one
    time_scale: float = 1.0
    job: str = "cephqos.*"  # regular expression of the scrape jobs of cephqos-exporter
    runbook_url: str = ""  # without one, alerts have no such link
    dashboard_url: str = ""  # the same
    dashboard_prefix: str = ""  # of the uids
    thresholds: Thresholds = Thresholds()

    @property
    def shortest(self) -> float:
        """No window is shorter than this: a rate over less sees no two samples."""
        return SAMPLES_PER_RATE * self.scrape_interval

    def scaled(self, seconds: float) -> float:
        """A hold: in proportion, but at least two samples."""
        return max(seconds * self.time_scale, 2 * self.scrape_interval)

    def window(self, seconds: float) -> float:
        """A window of a rate: in proportion, but never too short for one."""
        return max(seconds * self.time_scale, self.shortest)

    def expand(self, text: str) -> str:
        """Put in the values of all `@name@`."""
        return _PLACEHOLDER.sub(lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        if name in WINDOWS:
            return duration(self.window(WINDOWS[name]))
        if name.endswith("_samples"):
            # The minimum of evaluations of a window that must have found something.
            seconds = self.window(WINDOWS[name.removesuffix("_samples")])
            return f"{self.thresholds.coverage * seconds / self.scrape_interval:g}"
        if name.endswith("_evaluations"):
            seconds = self.window(WINDOWS[name.removesuffix("_evaluations")])
            return f"{seconds / self.scrape_interval:g}"
        if name == "interval_seconds":
            return f"{self.scrape_interval:g}"
        if name in {field.name for field in fields(Thresholds)}:
            return f"{getattr(self.thresholds, name):g}"
        if name in {field.name for field in fields(self)}:
            return str(getattr(self, name))
        raise KeyError(f"no setting is called {name}")
