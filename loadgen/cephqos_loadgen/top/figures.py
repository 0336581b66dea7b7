"""The series that the view reads: the table FIGURES, which serves both sources.

A figure is asked of Prometheus with `promql`, or computed from two scrapes of an exporter with
`computed`. Both give one value for each combination of its labels (`by`):

    "attained" -> {("FSID", "osd.3", "client"): 118.0, …}
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal

from cephqos_base import series
from cephqos_base.prometheus import unheard
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
# The values of a figure, by the values of its labels.
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
    """What is asked for."""

    cluster: str | None = None  # None: all
    osd: str | None = None  # the opened one
    tenants: bool = False  # whether tenants are shown


@dataclass(frozen=True, slots=True)
class TopFigure:
    """One figure of the view."""

    metric: str  # "": only the recording rule has it
    by: Key  # the labels whose values are the key
    _: KW_ONLY
    # The value itself, or its rate; of several series with one key the largest, or their sum.
    how: Literal["max", "sum", "rate_max", "rate_sum"] = "max"
    where: Mapping[str, str] | None = None  # labels that the series must have
    recorded: str = ""  # the recording rule that has the same value, cheaper
    opened: bool = False  # needed only while an OSD is opened, and only of that OSD
    judging: bool = False  # needed only without rules, for the judge
    # Needed only while tenants are shown. Their counters are sampled so seldom that a rate needs
    # Prometheus, and this many seconds.
    tenants_window: float = 0.0
    top: int = 0  # this many of the largest are enough while no OSD is opened

    @property
    def is_rate(self) -> bool:
        return self.how.startswith("rate")

    def promql(self, selection: Selection, window: float, *, late: bool = False) -> list[str]:
        """Queries, the best first. The next one is for when a query finds nothing.

        `late`: some exporters missed a scrape just now, so the last values of their OSDs count.
        """

        def instant(of: str) -> str:
            return f"{of} or {unheard(of, window)}" if late and DAEMON in self.by else of

        selector = render_labels(self._labels(selection))
        queries = []
        if self.recorded:
            queries.append(instant(f"{self.recorded}{{{selector}}}"))
        if self.metric:
            value = f"{self.metric}{{{selector}}}"
            if self.is_rate:
                milliseconds = round(max(window, self.tenants_window) * 1000)
                value = f"rate({value}[{milliseconds}ms])"
            else:
                value = instant(value)
            aggregate = self.how.removeprefix("rate_")
            queries.append(f"{aggregate} by ({', '.join(self.by)}) ({value})")
        if self.top and selection.osd is None:
            queries = [f"topk({self.top}, {query})" for query in queries]
        return queries

    def computed(
        self, before: PageSamples | None, now: PageSamples, selection: Selection
    ) -> Values:
        """The figure from two scrapes. While there is only one, a rate has no values."""
        values: Values = {}
        samples: Iterable[tuple[Labels, float]] = now.samples.get(self.metric, {}).values()
        if self.is_rate:
            if before is None or now.time <= before.time or self.tenants_window:
                return {}
            samples = _rates(before, now, self.metric)
        wanted = self._labels(selection).items()
        for labels, value in samples:
            if all(labels.get(name, "") == text for name, text in wanted):
                self.put(values, tuple(labels.get(name, "") for name in self.by), value)
        return values

    def put(self, values: Values, key: Key, value: float) -> None:
        """Add the value of a series: of several with one key the largest counts, or their sum."""
        if key not in values:
            values[key] = value
        elif self.how.endswith("sum"):
            values[key] += value
        else:
            values[key] = max(values[key], value)

    def _labels(self, selection: Selection) -> dict[str, str]:
        """The labels that its series must have, by the table and by what is selected."""
        labels = dict(self.where or {})
        if selection.cluster is not None and CLUSTER in self.by:
            labels[CLUSTER] = selection.cluster
        if selection.osd is not None and DAEMON in self.by and (self.opened or self.top):
            labels[DAEMON] = selection.osd
        return labels


def _rates(before: PageSamples, now: PageSamples, metric: str) -> Iterator[tuple[Labels, float]]:
    """Increase per second. A counter that fell was reset: its value is the increase."""
    seconds = now.time - before.time
    old = before.samples.get(metric, {})
    for series_text, (labels, value) in now.samples.get(metric, {}).items():
        if series_text in old:
            earlier = old[series_text][1]
            yield labels, (value - earlier if value >= earlier else value) / seconds


def _names(labels: str) -> Key:
    """The labels of a text for PromQL: "cluster, ceph_daemon"."""
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
    "up": TopFigure(DaemonSeries.UP, (*_OSD, "reason")),
    "version": TopFigure(ExporterSeries.BUILD_INFO, ("version",), how="sum"),
    "scheduler": TopFigure(
        QosSeries.SCHEDULER_INFO, (*_OSD, "in_force", "profile", "media", "reservations")
    ),
    # classes
    "attained": TopFigure(QosSeries.OPS, _CLASS, how="rate_max", recorded=PerClass.ATTAINED_OPS),
    "reserved": TopFigure(QosSeries.RESERVATION_OPS, _CLASS, recorded=PerClass.RESERVED_OPS),
    "limit": TopFigure(QosSeries.LIMIT_OPS, _CLASS),
    "queued": TopFigure(QosSeries.QUEUE_LENGTH, _CLASS, how="sum", recorded=PerClass.QUEUE_LENGTH),
    "lag": TopFigure(
        QosSeries.RESERVATION_LAG_SECONDS, _CLASS, recorded=PerClass.RESERVATION_LAG_SECONDS
    ),
    "demand": TopFigure("", _CLASS, recorded=PerClass.DEMAND),
    "violated": TopFigure("", _CLASS, recorded=PerClass.VIOLATED),
    "shortfall": TopFigure("", _CLASS, recorded=PerClass.SHORTFALL_OPS),
    "cause": TopFigure("", (*_CLASS, "cause", "by"), recorded=PerClass.MAIN_CAUSE),
    "violated_seconds": TopFigure("", _CLASS, recorded=PerClass.VIOLATED_SECONDS, opened=True),
    # what the state of a class is judged by without rules
    "client_waiting": TopFigure(QosSeries.CLIENT_WAIT_SECONDS, _OSD, how="rate_max", judging=True),
    "throttle_waiting": TopFigure(
        QosSeries.THROTTLE_WAIT_SECONDS, _OSD, how="rate_sum", judging=True
    ),
    "store_used": TopFigure(
        QosSeries.THROTTLE_USED_RATIO, _OSD, where={"throttle": "bluestore"}, judging=True
    ),
    "client_present": TopFigure(QosSeries.CLIENT_OPS_IN_PROGRESS, _OSD, judging=True),
    "store_seconds": TopFigure(QosSeries.STORE_SECONDS, _OSD, how="rate_max", judging=True),
    "store_transactions": TopFigure(
        QosSeries.STORE_TRANSACTIONS, _OSD, how="rate_max", judging=True
    ),
    # OSDs
    "capacity": TopFigure(QosSeries.CAPACITY_OPS, _OSD, recorded=PerOsd.CAPACITY_OPS),
    "delivered": TopFigure(
        QosSeries.DELIVERED_OPS, _OSD, how="rate_max", recorded=PerOsd.DELIVERED_OPS
    ),
    "in_progress": TopFigure(OpsSeries.IN_PROGRESS, _OSD, opened=True),
    "blocked": TopFigure(OpsSeries.BLOCKED, _OSD),
    "oldest": TopFigure(OpsSeries.OLDEST_AGE_SECONDS, _OSD, opened=True),
    "throttle": TopFigure(QosSeries.THROTTLE_USED_RATIO, (*_OSD, "throttle"), opened=True),
    # latency of clients' operations, as OSDs see it; per second and bucket
    "latency": TopFigure(bucket(OpSeries.LATENCY_SECONDS), (CLUSTER, "op", "le"), how="rate_sum"),
    "osd_latency": TopFigure(
        bucket(OpSeries.LATENCY_SECONDS), (*_OSD, "op", "le"), how="rate_sum", opened=True
    ),
    # threads and devices
    "threads": TopFigure(
        ThreadsSeries.BUSIEST_CPU_SECONDS, (*_OSD, "group"), how="rate_max", top=BUSIEST
    ),
    "device_busy": TopFigure(
        DisksSeries.BUSY_SECONDS, _DEVICE, how="rate_max", where=_OF_OSDS, top=BUSIEST
    ),
    "device_depth": TopFigure(
        DisksSeries.WEIGHTED_SECONDS, _DEVICE, how="rate_max", where=_OF_OSDS
    ),
    "device_time": TopFigure(DisksSeries.TIME_SECONDS, _DEVICE, how="rate_sum", where=_OF_OSDS),
    "device_ops": TopFigure(DisksSeries.OPS, _DEVICE, how="rate_sum", where=_OF_OSDS),
    # cluster
    "cluster_up": TopFigure(ClusterSeries.UP, (CLUSTER, "reason")),
    "flags": TopFigure(ClusterSeries.FLAG, (CLUSTER, "flag")),
    "osd_in_map": TopFigure(ClusterSeries.OSD_UP, _OSD),
    # recovery and scrub
    "degraded": TopFigure(RecoverySeries.POOL_DEGRADED_OBJECTS, _POOL),
    "misplaced": TopFigure(RecoverySeries.POOL_MISPLACED_OBJECTS, _POOL),
    "unfound": TopFigure(RecoverySeries.POOL_UNFOUND_OBJECTS, _POOL),
    "recovery_rate": TopFigure(RecoverySeries.POOL_OBJECTS_PER_SECOND, _POOL),
    "recovery_bytes": TopFigure(RecoverySeries.POOL_BYTES_PER_SECOND, _POOL),
    "recovery_eta": TopFigure(RecoverySeries.POOL_ETA_SECONDS, _POOL),
    "recovery_left": TopFigure(RecoverySeries.CLUSTER_ETA_SECONDS, (CLUSTER, "bound")),
    "scrub_pgs": TopFigure(ScrubSeries.POOL_RUNNING_PGS, _LEVEL),
    "scrub_left": TopFigure(ScrubSeries.POOL_RUNNING_OBJECTS_LEFT, _LEVEL),
    "scrub_done": TopFigure(ScrubSeries.POOL_RUNNING_OBJECTS_DONE, _LEVEL),
    "scrub_rate": TopFigure(ScrubSeries.POOL_OBJECTS_PER_SECOND, _LEVEL),
    "scrub_eta": TopFigure(ScrubSeries.POOL_RUNNING_ETA_SECONDS, (*_LEVEL, "bound")),
    "scrub_overdue": TopFigure(
        ScrubSeries.POOL_SCHEDULE_PGS, _LEVEL, how="sum", where={"state": "overdue"}
    ),
    # tenants, per second of the window
    "tenants": TopFigure(
        TenantsSeries.SECONDS,
        (*_OSD, *_names(series.TENANT), "state"),
        how="rate_max",
        tenants_window=TENANTS_SECONDS,
    ),
    "tenant_squares": TopFigure(
        TenantsSeries.SQUARES, (*_OSD, "state"), how="rate_max", tenants_window=TENANTS_SECONDS
    ),
    "pools": TopFigure(
        ClusterSeries.POOL_INFO, (CLUSTER, "pool_id", "pool"), tenants_window=TENANTS_SECONDS
    ),
    # a test run
    "run": TopFigure(RunSeries.INFO, (*_RUN, "scenario", "point", "repeat", "phase")),
    "run_repeats": TopFigure(RunSeries.REPEATS, _RUN),
    "run_repeats_done": TopFigure(RunSeries.REPEATS_DONE, _RUN),
    "run_remaining": TopFigure(RunSeries.REMAINING_SECONDS, _RUN),
    "client_iops": TopFigure(ClientSeries.IOPS, _CLIENT, how="sum"),
    "client_latency": TopFigure(
        bucket(ClientSeries.LATENCY_SECONDS), (*_CLIENT, "le"), how="rate_sum"
    ),
}

# The metrics that are read from the page of an exporter.
WANTED: Final = frozenset(figure.metric for figure in FIGURES.values() if figure.metric)


def wanted_now(selection: Selection, rules: bool) -> Mapping[str, TopFigure]:
    """The figures to ask for; `rules`: whether the recording rules are there."""

    def is_needed(figure: TopFigure) -> bool:
        if figure.opened and selection.osd is None:
            return False
        if figure.tenants_window and not selection.tenants:
            return False
        return not (figure.judging and rules)

    return {name: figure for name, figure in FIGURES.items() if is_needed(figure)}
