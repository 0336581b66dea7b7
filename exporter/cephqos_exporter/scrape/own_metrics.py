"""The exporter about itself: what each daemon and collector gave, what it cost, what it is.

Metrics of its process have prometheus_client's names and texts. The library itself would take 1 MB
of memory here, and ten times as long for the samples of a host with 60 OSDs.
"""

import gc
import os
import platform
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cephqos_base.series import ExporterSeries
from cephqos_base.version import __version__
from cephqos_exporter.families import Family, counter, gauge, single
from cephqos_exporter.labels import LabelText, extend_labels, render_labels
from cephqos_exporter.procfs import CLOCK_TICKS
from cephqos_exporter.scrape.part import Part


class OwnMetrics:
    """Families from the parts of a page; process metrics unless switched off. `more`: of a part of
    the exporter that takes no part in scrapes."""

    def __init__(
        self,
        *,
        process: bool = True,
        discovers: bool = True,
        more: Callable[[], Iterable[Family]] = tuple,
    ) -> None:
        self._more = more
        self._process = ProcessFigures() if process else None
        self._extended: dict[tuple[LabelText, str, str], LabelText] = {}
        self._discovers = discovers
        versions = {"version": __version__, "python_version": platform.python_version()}
        text, labels = "Version of the exporter.", render_labels(versions)
        self._build = single(ExporterSeries.BUILD_INFO, "gauge", text, labels, 1)

    def families(self, parts: Sequence[Part], seconds: float) -> Iterable[Family]:
        daemons = _by_labels(parts)
        yield from self._scrape(parts, len(daemons), seconds)
        yield from self._daemons(daemons)
        yield _not_understood([*daemons.values(), *(p for p in parts if p.labels is None)])
        yield from self._more()
        yield self._build
        if self._process is not None:
            yield from self._process.families()

    def _with(self, labels: LabelText, name: str, value: str) -> LabelText:
        key = (labels, name, value)
        if key not in self._extended:
            if len(self._extended) > 100_000:  # daemons came and went for years
                self._extended.clear()
            self._extended[key] = extend_labels(labels, {name: value})
        return self._extended[key]

    def _scrape(self, parts: Sequence[Part], daemons: int, took: float) -> Iterable[Family]:
        """About the scrape as a whole."""
        spent: Counter[str] = Counter()
        success: dict[str, bool] = {}
        for part in parts:
            spent.update(part.seconds)
            if part.labels is None:
                success.update(part.success)
        text = (
            "Daemons found by their admin sockets. 0: there are none, or the exporter's user may "
            "not see them."
        )
        none = LabelText("")
        if self._discovers:
            yield single("cephqos_discovery_daemons", "gauge", text, none, daemons)
        text = "Time that this scrape took."
        yield single("cephqos_exporter_scrape_duration_seconds", "gauge", text, none, took)
        for name, text, figures in (
            (
                "cephqos_collector_duration_seconds",
                "Time that a collector spent in this scrape, over all daemons.",
                spent,
            ),
            (
                "cephqos_collector_host_success",
                "1: the collector produced its metrics for the host or the cluster in this scrape.",
                success,
            ),
        ):
            family = gauge(name, text)
            for collector, value in figures.items():
                family.add(self._with(none, "collector", collector), value)
            yield family

    def _daemons(self, daemons: dict[LabelText, Part]) -> Iterable[Family]:
        up = gauge(
            "cephqos_daemon_up",
            "1: the daemon answered on its admin socket in this scrape. 0: it did not, "
            "for the reason given.",
        )
        seconds = gauge(
            "cephqos_daemon_scrape_duration_seconds",
            "Time until the daemon's replies had arrived or were given up.",
        )
        success = gauge(
            "cephqos_collector_success",
            "1: the collector produced its metrics for the daemon in this scrape. "
            "Absent where it is not meant for the daemon.",
        )
        left_out = gauge(
            "cephqos_daemon_samples_left_out",
            "Samples left out of this scrape: invalid (NaN, infinite, a count below 0, bad labels) "
            "or beyond --scrape.max-series (limit). Absent while there are none.",
        )
        for labels, part in sorted(daemons.items()):
            up.add(self._with(labels, "reason", part.down), not part.down)
            seconds.add(labels, part.took)
            for collector, good in part.success.items():
                success.add(self._with(labels, "collector", collector), good)
            for reason, samples in part.left_out.items():
                left_out.add(self._with(labels, "reason", reason), samples)
        return up, seconds, success, left_out


def _not_understood(parts: Iterable[Part]) -> Family:
    family = counter(
        ExporterSeries.COLLECTOR_NOT_UNDERSTOOD,
        "How often the collector found something in a reply of Ceph that it does not understand. "
        "What needs it is absent. The log says what it was, once. Absent while all is understood.",
    )
    for part in parts:
        for collector, what, total in part.not_understood or ():
            own = {"collector": collector, "what": what}
            family.add(extend_labels(part.labels or LabelText(""), own), total)
    return family


class ProcessFigures:
    """The metrics of prometheus_client's collectors of the process, of Python and of its garbage.

    Theirs of the process lists the open descriptors. This process has thousands, and listing 4,500
    takes as long as two OSDs. From Linux 6.2 on, the size of the directory is their number.
    """

    def __init__(self) -> None:
        # Read once: it changes when the clock is set.
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        self._started = round(boot + int(_stat()[19]) / CLOCK_TICKS, 2)
        self._python = single("python_info", "gauge", "Python platform information", _python(), 1)

    def families(self) -> Iterable[Family]:
        yield self._python
        yield from _garbage()
        none = LabelText("")
        stat = _stat()
        text = "Total user and system CPU time spent in seconds."
        used = (int(stat[11]) + int(stat[12])) / CLOCK_TICKS
        yield single("process_cpu_seconds_total", "counter", text, none, used)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        for name, text, value in (
            ("open_fds", "Number of open file descriptors.", _open_descriptors()),
            ("max_fds", "Maximum number of open file descriptors.", limit),
            (
                "resident_memory_bytes",
                "Resident memory size in bytes.",
                int(stat[21]) * resource.getpagesize(),
            ),
            ("virtual_memory_bytes", "Virtual memory size in bytes.", int(stat[20])),
            (
                "start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                self._started,
            ),
        ):
            yield single(f"process_{name}", "gauge", text, none, value)


_GENERATIONS = [render_labels({"generation": str(number)}) for number in range(3)]


def _garbage() -> Iterable[Family]:
    stats = gc.get_stats()
    for name, key, text in (
        ("objects_collected", "collected", "Objects collected during gc"),
        ("objects_uncollectable", "uncollectable", "Uncollectable objects found during GC"),
        ("collections", "collections", "Number of times this generation was collected"),
    ):
        family = counter(f"python_gc_{name}_total", text)
        for labels, generation in zip(_GENERATIONS, stats, strict=True):
            family.add(labels, generation[key])
        yield family


def _python() -> LabelText:
    major, minor, patchlevel = platform.python_version_tuple()
    return render_labels(
        {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "major": major,
            "minor": minor,
            "patchlevel": patchlevel,
        }
    )


def _stat() -> list[str]:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()


def _open_descriptors() -> int:
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))  # noqa: PTH116, PTH208


def _by_labels(parts: Sequence[Part]) -> dict[LabelText, Part]:
    """Each daemon once: a socket that answered wins over a stale one of the same name."""
    parts_by_labels: dict[LabelText, Part] = {}
    for part in parts:
        if part.labels is None:
            continue
        other = parts_by_labels.get(part.labels)
        if other is None or (other.down and (not part.down or other.nameless)):
            parts_by_labels[part.labels] = part
    return parts_by_labels
