"""The series that the view reads. One table serves both sources: a figure knows how to be asked of
Prometheus, and how to be computed from two scrapes of an exporter.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_base import series
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import (
    CLUSTER,
    ClientSeries,
    ClusterSeries,
    DaemonSeries,
    DisksSeries,
    ExporterSeries,
    OpSeries,
    OpsSeries,
    QosSeries,
    RecoverySeries,
    RunSeries,
    ScrubSeries,
    TenantsSeries,
    ThreadsSeries,
    bucket,
)
from cephqos_exporter.labels import render_labels

DAEMON: Final = "ceph_daemon"

Labels = Mapping[str, str]
Key = tuple[str, ...]
# The values of a figure: one for each set of values of its labels.
Values = dict[Key, float]


@dataclass(frozen=True, slots=True)
class PageSamples:
    """The samples of an exporter at one time, by metric and by the text of their series; only
    metrics that are wanted.
    """

    time: float
    samples: Mapping[str, Mapping[str, tuple[Labels, float]]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked for: one cluster or all, the OSD that is opened, and whether tenants are."""

    cluster: str | None = None
    osd: str | None = None
    tenants: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFigure:
    """One figure of the view.

    `by`: the labels that make its key. `how`: the value itself, or its rate; the largest, or the
    sum, of the series of one key. `recorded`: the recording rule that has the same value, cheaper.
    `opened`: needed for an opened OSD only, and of that OSD only. `rules`: a recording rule is the
    only source. `judging`: needed only where there are no rules to judge by. `tenants`: only while
    tenants are shown; sampled so seldom that its rate needs Prometheus and this many seconds.
    """

    metric: str = ""
    by: Key
    how: Literal["max", "sum", "rate_max", "rate_sum"] = "max"
    where: Mapping[str, str] | None = None
    recorded: str = ""
    opened: bool = False
    judging: bool = False
    tenants: float = 0.0
    top: int = 0  # this many of the largest are enough while no OSD is opened

    @property
    def is_rate(self) -> bool:
        return self.how.startswith("rate")

    def promql(self, selection: Selection, window: float) -> list[str]:
        """Queries, the best first. The next one is for when a query finds nothing."""
        matchers = dict(self.where or {})
        if selection.cluster is not None and CLUSTER in self.by:
            matchers[CLUSTER] = selection.cluster
        if selection.osd is not None and DAEMON in self.by and (self.opened or self.top):
            matchers[DAEMON] = selection.osd
        selector = render_labels(matchers)
        queries = []
        if self.recorded:
            queries.append(f"{self.recorded}{{{selector}}}")
        if self.metric:
            instant = f"{self.metric}{{{selector}}}"
            ranged = f"rate({instant}[{round(max(window, self.tenants) * 1000)}ms])"
            aggregate = self.how.removeprefix("rate_")
            what = ranged if self.is_rate else instant
            queries.append(f"{aggregate} by ({', '.join(self.by)}) ({what})")
        if self.top and selection.osd is None:
            queries = [f"topk({self.top}, {query})" for query in queries]
        return queries

    def computed(
        self, before: PageSamples | None, now: PageSamples, selection: Selection
    ) -> Values:
        """The figure from two scrapes; what needs two is empty while there is one."""
        found: Values = {}
        samples: Iterable[tuple[Labels, float]] = now.samples.get(self.metric, {}).values()
        if self.is_rate:
            if before is None or now.time <= before.time or self.tenants:
                return {}
            samples = _rates(before, now, self.metric)
        wanted = self._wanted(selection)
        adds = self.how.endswith("sum")
        for labels, value in samples:
            if any(labels.get(name, "") != text for name, text in wanted):
                continue
            key = tuple(labels.get(name, "") for name in self.by)
            if key not in found:
                found[key] = value
            else:
                found[key] = found[key] + value if adds else max(found[key], value)
        return found

    def _wanted(self, selection: Selection) -> list[tuple[str, str]]:
        wanted = dict(self.where or {})
        if selection.cluster is not None and CLUSTER in self.by:
            wanted[CLUSTER] = selection.cluster
        if selection.osd is not None and self.opened:
            wanted[DAEMON] = selection.osd
        return list(wanted.items())


def _rates(before: PageSamples, now: PageSamples, metric: str) -> Iterator[tuple[Labels, float]]:
    """Increase per second. A counter that fell was reset: its value is the increase."""
    seconds = now.time - before.time
    old = before.samples.get(metric, {})
    for series_text, (labels, value) in now.samples.get(metric, {}).items():
        if series_text in old:
            earlier = old[series_text][1]
            yield labels, (value - earlier if value >= earlier else value) / seconds


def _names(labels: str) -> Key:
    return tuple(labels.split(", "))


_OSD: Final = _names(series.OSD)
_CLASS: Final = _names(series.OSD_CLASS)
_POOL: Final = _names(series.POOL)
_LEVEL: Final = (*_POOL, "level")
_DEVICE: Final = (*_OSD, "device")
_RUN: Final = ("run", CLUSTER)
_CLIENT: Final = (*_RUN, "op")
_OF_OSDS: Final = {"layer": "osd"}
TENANTS_SECONDS: Final = 300.0
BUSIEST: Final = 8

FIGURES: Final[Mapping[str, TopFigure]] = {
    # daemons and exporters
    "up": TopFigure(metric=DaemonSeries.UP, by=(*_OSD, "reason")),
    "version": TopFigure(metric=ExporterSeries.BUILD_INFO, by=("version",), how="sum"),
    "scheduler": TopFigure(
        metric=QosSeries.SCHEDULER_INFO, by=(*_OSD, "in_force", "profile", "media", "reservations")
    ),
    # classes
    "attained": TopFigure(
        metric=QosSeries.OPS, by=_CLASS, how="rate_max", recorded=PerClass.ATTAINED_OPS
    ),
    "reserved": TopFigure(
        metric=QosSeries.RESERVATION_OPS, by=_CLASS, recorded=PerClass.RESERVED_OPS
    ),
    "limit": TopFigure(metric=QosSeries.LIMIT_OPS, by=_CLASS, recorded=PerClass.LIMIT_OPS),
    "queued": TopFigure(
        metric=QosSeries.QUEUE_LENGTH, by=_CLASS, how="sum", recorded=PerClass.QUEUE_LENGTH
    ),
    "lag": TopFigure(
        metric=QosSeries.RESERVATION_LAG_SECONDS,
        by=_CLASS,
        recorded=PerClass.RESERVATION_LAG_SECONDS,
    ),
    "demand": TopFigure(by=_CLASS, recorded=PerClass.DEMAND),
    "violated": TopFigure(by=_CLASS, recorded=PerClass.VIOLATED),
    "shortfall": TopFigure(by=_CLASS, recorded=PerClass.SHORTFALL_OPS),
    "cause": TopFigure(by=(*_CLASS, "cause", "by"), recorded=PerClass.MAIN_CAUSE),
    "violated_seconds": TopFigure(by=_CLASS, recorded=PerClass.VIOLATED_SECONDS, opened=True),
    # what the state of a class is judged by without rules
    "client_waiting": TopFigure(
        metric=QosSeries.CLIENT_WAIT_SECONDS, by=_OSD, how="rate_max", judging=True
    ),
    "throttle_waiting": TopFigure(
        metric=QosSeries.THROTTLE_WAIT_SECONDS, by=_OSD, how="rate_sum", judging=True
    ),
    "store_used": TopFigure(
        metric=QosSeries.THROTTLE_USED_RATIO,
        by=_OSD,
        where={"throttle": "bluestore"},
        judging=True,
    ),
    "client_present": TopFigure(metric=QosSeries.CLIENT_OPS_IN_PROGRESS, by=_OSD, judging=True),
    "store_seconds": TopFigure(
        metric=QosSeries.STORE_SECONDS, by=_OSD, how="rate_max", judging=True
    ),
    "store_transactions": TopFigure(
        metric=QosSeries.STORE_TRANSACTIONS, by=_OSD, how="rate_max", judging=True
    ),
    # OSDs
    "capacity": TopFigure(metric=QosSeries.CAPACITY_OPS, by=_OSD, recorded=PerOsd.CAPACITY_OPS),
    "delivered": TopFigure(
        metric=QosSeries.DELIVERED_OPS, by=_OSD, how="rate_max", recorded=PerOsd.DELIVERED_OPS
    ),
    "in_progress": TopFigure(metric=OpsSeries.IN_PROGRESS, by=_OSD, opened=True),
    "blocked": TopFigure(metric=OpsSeries.BLOCKED, by=_OSD),
    "oldest": TopFigure(metric=OpsSeries.OLDEST_AGE_SECONDS, by=_OSD, opened=True),
    "throttle": TopFigure(
        metric=QosSeries.THROTTLE_USED_RATIO, by=(*_OSD, "throttle"), opened=True
    ),
    # latency of clients' operations, as OSDs see it; per second and bucket
    "latency": TopFigure(
        metric=bucket(OpSeries.LATENCY_SECONDS), by=(CLUSTER, "op", "le"), how="rate_sum"
    ),
    "osd_latency": TopFigure(
        metric=bucket(OpSeries.LATENCY_SECONDS), by=(*_OSD, "op", "le"), how="rate_sum", opened=True
    ),
    # threads and devices
    "threads": TopFigure(
        metric=ThreadsSeries.BUSIEST_CPU_SECONDS, by=(*_OSD, "group"), how="rate_max", top=BUSIEST
    ),
    "device_busy": TopFigure(
        metric=DisksSeries.BUSY_SECONDS, by=_DEVICE, how="rate_max", where=_OF_OSDS, top=BUSIEST
    ),
    "device_depth": TopFigure(
        metric=DisksSeries.WEIGHTED_SECONDS, by=_DEVICE, how="rate_max", where=_OF_OSDS
    ),
    "device_time": TopFigure(
        metric=DisksSeries.TIME_SECONDS, by=_DEVICE, how="rate_sum", where=_OF_OSDS
    ),
    "device_ops": TopFigure(metric=DisksSeries.OPS, by=_DEVICE, how="rate_sum", where=_OF_OSDS),
    # cluster
    "cluster_up": TopFigure(metric=ClusterSeries.UP, by=(CLUSTER, "reason")),
    "flags": TopFigure(metric=ClusterSeries.FLAG, by=(CLUSTER, "flag")),
    "osd_in_map": TopFigure(metric=ClusterSeries.OSD_UP, by=_OSD),
    # recovery and scrub
    "degraded": TopFigure(metric=RecoverySeries.POOL_DEGRADED_OBJECTS, by=_POOL),
    "misplaced": TopFigure(metric=RecoverySeries.POOL_MISPLACED_OBJECTS, by=_POOL),
    "unfound": TopFigure(metric=RecoverySeries.POOL_UNFOUND_OBJECTS, by=_POOL),
    "recovery_rate": TopFigure(metric=RecoverySeries.POOL_OBJECTS_PER_SECOND, by=_POOL),
    "recovery_bytes": TopFigure(metric=RecoverySeries.POOL_BYTES_PER_SECOND, by=_POOL),
    "recovery_eta": TopFigure(metric=RecoverySeries.POOL_ETA_SECONDS, by=_POOL),
    "scrub_pgs": TopFigure(metric=ScrubSeries.POOL_RUNNING_PGS, by=_LEVEL),
    "scrub_left": TopFigure(metric=ScrubSeries.POOL_RUNNING_OBJECTS_LEFT, by=_LEVEL),
    "scrub_done": TopFigure(metric=ScrubSeries.POOL_RUNNING_OBJECTS_DONE, by=_LEVEL),
    "scrub_rate": TopFigure(metric=ScrubSeries.POOL_OBJECTS_PER_SECOND, by=_LEVEL),
    "scrub_eta": TopFigure(metric=ScrubSeries.POOL_RUNNING_ETA_SECONDS, by=_LEVEL),
    "scrub_overdue": TopFigure(
        metric=ScrubSeries.POOL_SCHEDULE_PGS, by=_LEVEL, how="sum", where={"state": "overdue"}
    ),
    # tenants, per second of the window
    "tenants": TopFigure(
        metric=TenantsSeries.SECONDS,
        by=(*_OSD, *_names(series.TENANT), "state"),
        how="rate_max",
        tenants=TENANTS_SECONDS,
    ),
    "tenant_samples": TopFigure(
        metric=TenantsSeries.SAMPLED,
        by=(*_OSD, "state"),
        how="rate_max",
        tenants=TENANTS_SECONDS,
    ),
    "pools": TopFigure(
        metric=ClusterSeries.POOL_INFO, by=(CLUSTER, "pool_id", "pool"), tenants=TENANTS_SECONDS
    ),
    # a test run
    "run": TopFigure(metric=RunSeries.INFO, by=(*_RUN, "scenario", "point", "repeat", "phase")),
    "run_repeats": TopFigure(metric=RunSeries.REPEATS, by=_RUN),
    "run_repeats_done": TopFigure(metric=RunSeries.REPEATS_DONE, by=_RUN),
    "run_remaining": TopFigure(metric=RunSeries.REMAINING_SECONDS, by=_RUN),
    "client_iops": TopFigure(metric=ClientSeries.IOPS, by=_CLIENT, how="sum"),
    "client_latency": TopFigure(
        metric=bucket(ClientSeries.LATENCY_SECONDS), by=(*_CLIENT, "le"), how="rate_sum"
    ),
}

# What an exporter's page is read for.
WANTED: Final = frozenset(figure.metric for figure in FIGURES.values() if figure.metric)


def wanted_now(selection: Selection, rules: bool) -> Mapping[str, TopFigure]:
    """The figures to ask for: not those of an opened OSD while none is open, and not those that
    replace the rules where the rules are.
    """
    return {
        name: figure
        for name, figure in FIGURES.items()
        if (selection.osd is not None or not figure.opened)
        and (selection.tenants or not figure.tenants)
        and not (rules and figure.judging)
    }
