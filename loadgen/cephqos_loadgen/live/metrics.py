"""A run's live state as metrics: METRICS says which there are, LiveMetrics fills them in."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cephqos_base.bounds import FIO_BOUNDS
from cephqos_loadgen.engines.fio_output import DIRECTIONS, IoTotals, buckets
from cephqos_loadgen.live.state import Live, LiveClient


class MetricSpec(NamedTuple):
    """What a metric is."""

    type: str
    # Besides `run`, and `cluster` (its fsid) once the cluster is reached.
    labels: tuple[str, ...]
    help: str


_CLIENT = ("engine", "load", "client", "op")
_INTERVAL = "over the last one-second interval"

METRICS = {
    "cephqos_run_info": MetricSpec(
        "gauge", ("scenario", "point", "repeat", "phase"), "Always 1: where the run is."
    ),
    "cephqos_run_phase_start_timestamp_seconds": MetricSpec(
        "gauge",
        ("point", "repeat", "phase"),
        "When a phase that is running started, in seconds since 1970.",
    ),
    "cephqos_run_start_timestamp_seconds": MetricSpec(
        "gauge", (), "When the run started, in seconds since 1970."
    ),
    "cephqos_run_repeats": MetricSpec("gauge", (), "Repeats of all points of the matrix."),
    "cephqos_run_repeats_done": MetricSpec("gauge", (), "Repeats that are finished."),
    "cephqos_run_remaining_seconds": MetricSpec("gauge", (), "Estimated time to the end."),
    "cephqos_run_fill_ratio": MetricSpec(
        "gauge", ("pool", "unit"), "How much of a pool that is being filled is written, 0 to 1."
    ),
    "cephqos_run_fill_remaining_seconds": MetricSpec(
        "gauge", ("pool", "unit"), "Estimated time until the pool is filled."
    ),
    "cephqos_run_scrubbed_objects": MetricSpec("gauge", (), "Objects that the scrub has done."),
    "cephqos_run_scrub_left_objects": MetricSpec("gauge", (), "Objects that it has to do."),
    "cephqos_run_scrub_remaining_seconds": MetricSpec(
        "gauge", (), "Estimated time until the scrub is done."
    ),
    "cephqos_run_recovered_objects": MetricSpec(
        "gauge", (), "Objects recovered since the repeat started."
    ),
    "cephqos_run_recovery_left_objects": MetricSpec(
        "gauge", (), "Object copies misplaced or degraded."
    ),
    "cephqos_run_recovery_remaining_seconds": MetricSpec(
        "gauge", (), "Estimated time until recovery is done."
    ),
    "cephqos_client_ops_total": MetricSpec("counter", _CLIENT, "I/Os that load clients completed."),
    "cephqos_client_bytes_total": MetricSpec("counter", _CLIENT, "Bytes that load clients moved."),
    "cephqos_client_iops": MetricSpec("gauge", _CLIENT, f"I/Os per second {_INTERVAL}."),
    "cephqos_client_bytes_per_second": MetricSpec("gauge", _CLIENT, f"Bandwidth {_INTERVAL}."),
    "cephqos_client_latency_mean_seconds": MetricSpec(
        "gauge", _CLIENT, f"Mean completion latency {_INTERVAL}."
    ),
    "cephqos_client_latency_seconds": MetricSpec(
        "histogram",
        _CLIENT,
        "Completion latency at the client, from fio's bins of at most 1.6 % width;"
        " none of rados bench, which has no bins.",
    ),
}


class _Page:
    """Metrics in the order of the table; those without samples are left out."""

    def __init__(self, common_labels: dict[str, str]) -> None:
        self._common_labels = common_labels
        self._metrics = {
            name: Metric(name.removesuffix("_total"), spec.help, spec.type)
            for name, spec in METRICS.items()
        }

    def add(self, name: str, value: float | None, suffix: str = "", **labels: str) -> None:
        if value is not None:
            self._metrics[name].add_sample(name + suffix, {**self._common_labels, **labels}, value)

    def metrics(self) -> Iterator[Metric]:
        return (metric for metric in self._metrics.values() if metric.samples)


class LiveMetrics(Collector):
    """A collector for a registry of `prometheus_client`."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def collect(self) -> Iterator[Metric]:
        live, where = self._live, self._live.where
        common_labels = {"run": where.run}
        if where.cluster:
            common_labels["cluster"] = where.cluster
        page = _Page(common_labels)
        for phase in where.phases or ("",):
            labels = {"scenario": where.scenario, "point": where.point}
            page.add("cephqos_run_info", 1, **labels, repeat=str(where.repeat), phase=phase)
        for phase, started in where.phases.items():
            labels = {"point": where.point, "repeat": str(where.repeat), "phase": phase}
            page.add("cephqos_run_phase_start_timestamp_seconds", started, **labels)
        page.add("cephqos_run_start_timestamp_seconds", live.started)
        page.add("cephqos_run_repeats_done", live.repeats[0])
        page.add("cephqos_run_repeats", live.repeats[1])
        page.add("cephqos_run_remaining_seconds", live.eta)
        _add_cluster(page, live)
        for (phase, name), client in live.clients.items():
            for op in DIRECTIONS:
                labels = {"engine": client.engine, "load": phase, "client": name, "op": op}
                _add_totals(page, client.total(op), labels)
                if phase in where.phases:
                    _add_interval(page, client, op, labels)
        return page.metrics()


def _add_cluster(page: _Page, live: Live) -> None:
    """Pools that are filled, scrub, recovery."""
    now = time.time()
    for (pool, unit), fill in live.fills.items():
        share = fill.done / max(1.0, fill.total)
        page.add("cephqos_run_fill_ratio", share, pool=pool, unit=unit)
        page.add("cephqos_run_fill_remaining_seconds", fill.left(now), pool=pool, unit=unit)
    if live.scrub is not None:
        page.add("cephqos_run_scrubbed_objects", live.scrub.done)
        page.add("cephqos_run_scrub_left_objects", live.scrub.left)
        page.add("cephqos_run_scrub_remaining_seconds", live.scrub.seconds_left(now))
    if live.recovery is not None:
        page.add("cephqos_run_recovered_objects", live.recovery.done)
        page.add("cephqos_run_recovery_left_objects", live.recovery.left)
        page.add("cephqos_run_recovery_remaining_seconds", live.recovery.seconds_left)


def _add_totals(page: _Page, total: IoTotals, labels: dict[str, str]) -> None:
    if not total.ios:
        return
    page.add("cephqos_client_ops_total", total.ios, **labels)
    page.add("cephqos_client_bytes_total", total.bytes, **labels)
    if not total.bins_ns:
        return
    name = "cephqos_client_latency_seconds"
    for bound, count in zip((*FIO_BOUNDS, None), buckets(total.bins_ns), strict=True):
        le = "+Inf" if bound is None else f"{bound:.10g}"
        page.add(name, count, "_bucket", **labels, le=le)
    page.add(name, total.latency_sum, "_sum", **labels)
    page.add(name, total.latency_count, "_count", **labels)


def _add_interval(page: _Page, client: LiveClient, op: str, labels: dict[str, str]) -> None:
    """Gauges of a client that is at work. If it has ended or hangs, there are none."""
    if client.silent_seconds(time.time()) or not client.seconds or not client.total(op).ios:
        return
    interval = client.interval.get(op)
    if interval is None:
        return
    page.add("cephqos_client_iops", interval.ios / client.seconds, **labels)
    page.add("cephqos_client_bytes_per_second", interval.bytes / client.seconds, **labels)
    mean = interval.mean if interval.ios else None
    page.add("cephqos_client_latency_mean_seconds", mean, **labels)
