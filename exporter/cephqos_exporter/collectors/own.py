"""The exporter about itself: what each daemon and collector gave, what it cost, what it is."""

import math
import os
import platform
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from cephqos_base.version import __version__
from cephqos_exporter.ceph.pids import process_start
from cephqos_exporter.daemon import Host
from cephqos_exporter.families import Family, FamilyType
from cephqos_exporter.labels import LabelText, extend_labels, render_labels
from cephqos_exporter.procfs import CLOCK_TICKS
from cephqos_exporter.report import DaemonReport, ScrapeReport


class OwnReporter:
    """Families from a scrape's report; process metrics unless switched off."""

    def __init__(self, *, process: bool = True, discovers: bool = True) -> None:
        self._started = _started() if process else None
        self._discovers = discovers
        self._extended: dict[tuple[LabelText, str, str], LabelText] = {}
        self._build = render_labels(
            {"version": __version__, "python_version": platform.python_version()}
        )

    def families(self, report: ScrapeReport) -> Iterable[Family]:
        if self._discovers:
            found = Family(
                "cephqos_discovery_daemons",
                "gauge",
                (
                    "Daemons found by their admin sockets. 0: there are none, or the "
                    "exporter's user may not see them."
                ),
            )
            found.add(LabelText(""), len(report.daemons))
            yield found
        yield from self._daemons(report.daemons.values())
        yield from self._collectors(report)
        build = Family("cephqos_exporter_build_info", "info", "Version of the exporter.")
        build.add(self._build, 1)
        yield build
        if self._started is not None:
            yield from _process_families(self._started)

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
            (
                "1: the daemon answered on its admin socket in this scrape. 0: it did not, "
                "for the reason given."
            ),
        )
        seconds = Family(
            "cephqos_daemon_scrape_duration_seconds",
            "gauge",
            "Time until the daemon's replies had arrived or were given up.",
        )
        success = Family(
            "cephqos_collector_success",
            "gauge",
            (
                "1: the collector produced its metrics for the daemon in this scrape. "
                "Absent where it is not meant for the daemon."
            ),
        )
        left_out = Family(
            "cephqos_daemon_samples_left_out",
            "gauge",
            "Samples left out of this scrape: invalid (NaN, infinite, a count below 0, bad labels) "
            "or beyond --scrape.max-series (limit). Absent while there are none.",
        )
        for daemon in sorted(daemons, key=lambda report: report.labels):
            up.add(self._with(daemon.labels, "reason", daemon.reason), daemon.up)
            seconds.add(daemon.labels, daemon.seconds)
            for collector, good in daemon.success.items():
                success.add(self._with(daemon.labels, "collector", collector), good)
            for reason, samples in daemon.left_out.items():
                left_out.add(self._with(daemon.labels, "reason", reason), samples)
        yield up
        yield seconds
        yield success
        yield left_out

    def _collectors(self, report: ScrapeReport) -> Iterable[Family]:
        seconds = Family(
            "cephqos_collector_duration_seconds",
            "gauge",
            "Time that a collector spent in this scrape, over all daemons.",
        )
        host = Family(
            "cephqos_collector_host_success",
            "gauge",
            ("1: the collector produced its metrics for the host or the cluster in this scrape."),
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


def _process_families(started: float) -> Iterable[Family]:
    """What prometheus_client reports of a process, under the same names.

    Not by that library because it lists every open descriptor, of which this process has thousands.
    """
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    figures: tuple[tuple[str, FamilyType, str, float], ...] = (
        (
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            (int(stat[11]) + int(stat[12])) / ticks,
        ),
        ("process_open_fds", "gauge", "Number of open file descriptors.", _open_descriptors()),
        ("process_max_fds", "gauge", "Maximum number of open file descriptors.", limit),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
            int(stat[21]) * resource.getpagesize(),
        ),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", int(stat[20])),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            started,
        ),
    )
    for name, kind, text, value in figures:
        yield Family(name, kind, text, [("", LabelText(""), value)])


def _started() -> float:
    """When this process did, since the epoch. Once, as it moves with the clock."""
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    ticks = process_start(Host(), os.getpid())
    return math.nan if ticks is None else round(boot + ticks / CLOCK_TICKS, 2)


def _open_descriptors() -> int:
    # Linux tells their number as the directory's size from 6.2 on.
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))  # noqa: PTH116, PTH208
