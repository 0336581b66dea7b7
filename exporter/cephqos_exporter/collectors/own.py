"""The exporter about itself: what each daemon and collector gave, what it cost, what it is."""

import platform
from collections.abc import Iterable

from prometheus_client import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from cephqos_exporter.model import Family, FamilyType, LabelText, extend_labels, render_labels
from cephqos_exporter.scrape import DaemonReport, ScrapeReport
from cephqos_exporter.version import __version__


class OwnReporter:
    """Families from a scrape's report; process metrics unless switched off."""

    def __init__(self, *, process: bool = True) -> None:
        self._process = ProcessCollector(registry=CollectorRegistry()) if process else None
        self._extended: dict[tuple[LabelText, str, str], LabelText] = {}
        self._build = render_labels(
            {"version": __version__, "python_version": platform.python_version()}
        )

    def families(self, report: ScrapeReport) -> Iterable[Family]:
        yield from self._daemons(report.daemons.values())
        yield from self._collectors(report)
        build = Family("cephqos_exporter_build_info", "info", "Version of the exporter.")
        build.add(self._build, 1)
        yield build
        if self._process is not None:
            yield from _process_families(self._process)

    def _with(self, labels: LabelText, name: str, value: str) -> LabelText:
        key = (labels, name, value)
        if key not in self._extended:
            if len(self._extended) > 100_000:  # daemons came and went for years
                self._extended.clear()
            self._extended[key] = extend_labels(labels, {name: value})
        return self._extended[key]

    def _daemons(self, daemons: Iterable[DaemonReport]) -> Iterable[Family]:
        up = Family(
            "cephqos_daemon_up",
            "gauge",
            "Whether the daemon answered on its admin socket in this scrape; if not, the reason.",
        )
        seconds = Family(
            "cephqos_daemon_scrape_duration_seconds",
            "gauge",
            "Time until the daemon's replies had come, or until they were given up.",
        )
        success = Family(
            "cephqos_collector_success",
            "gauge",
            "Whether the collector could make its metrics of the daemon in this scrape.",
        )
        for daemon in sorted(daemons, key=lambda report: report.labels):
            up.add(self._with(daemon.labels, "reason", daemon.reason), daemon.up)
            seconds.add(daemon.labels, daemon.seconds)
            for collector, good in daemon.success.items():
                success.add(self._with(daemon.labels, "collector", collector), good)
        yield up
        yield seconds
        yield success

    def _collectors(self, report: ScrapeReport) -> Iterable[Family]:
        seconds = Family(
            "cephqos_collector_duration_seconds",
            "gauge",
            "Time that a collector spent in this scrape, over all daemons.",
        )
        host = Family(
            "cephqos_collector_host_success",
            "gauge",
            "Whether the collector could make its metrics of the host or the cluster.",
        )
        for name, value in report.collector_seconds.items():
            seconds.add(render_labels({"collector": name}), value)
        for name, good in (report.finish | report.sources).items():
            host.add(render_labels({"collector": name}), good)
        yield seconds
        yield host
        whole = Family(
            "cephqos_exporter_scrape_duration_seconds", "gauge", "Time that this scrape took."
        )
        whole.add(LabelText(""), report.seconds)
        yield whole


def _process_families(collector: ProcessCollector) -> Iterable[Family]:
    for metric in collector.collect():
        kind: FamilyType = "counter" if metric.type == "counter" else "gauge"
        name = f"{metric.name}_total" if kind == "counter" else metric.name
        family = Family(name, kind, metric.documentation)
        for sample in metric.samples:
            family.add(render_labels(sample.labels), sample.value)
        yield family
