"""The exporter about itself: what each daemon and collector gave, what it cost, what it is.

Metrics of the process have the names and help of prometheus_client's. Its objects would take ten
times the CPU: a tenth of a scrape of four OSDs.
"""

import gc
import os
import platform
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from cephqos_base.series import ExporterSeries
from cephqos_base.version import __version__
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import LabelText, extend_labels, render_labels
from cephqos_exporter.procfs import CLOCK_TICKS
from cephqos_exporter.scrape.part import Part

_WITHOUT: Final = LabelText("")
_GENERATIONS: Final = tuple(render_labels({"generation": str(it)}) for it in range(3))
_COLLECTIONS: Final = (
    ("collected", "python_gc_objects_collected_total", "Objects collected during gc"),
    (
        "uncollectable",
        "python_gc_objects_uncollectable_total",
        "Uncollectable objects found during GC",
    ),
    (
        "collections",
        "python_gc_collections_total",
        "Number of times this generation was collected",
    ),
)


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
        self._discovers = discovers
        self._process = _Process() if process else None
        self._extended: dict[tuple[LabelText, str, str], LabelText] = {}
        version = {"version": __version__, "python_version": platform.python_version()}
        name, text = "cephqos_exporter_build_info", "Version of the exporter."
        self._build = single(name, "info", text, render_labels(version), 1)

    def families(self, parts: Sequence[Part], seconds: float) -> Iterable[Family]:
        daemons = _by_labels(parts)
        if self._discovers:
            text = (
                "Daemons found by their admin sockets. 0: there are none, or the exporter's user "
                "may not see them."
            )
            yield single("cephqos_discovery_daemons", "gauge", text, _WITHOUT, len(daemons))
        yield from self._collectors(parts)
        name, text = "cephqos_exporter_scrape_duration_seconds", "Time that this scrape took."
        yield single(name, "gauge", text, _WITHOUT, seconds)
        yield self._build
        yield from self._daemons(daemons)
        yield _not_understood([*daemons.values(), *(p for p in parts if p.labels is None)])
        yield from self._more()
        if self._process is not None:
            yield from self._process.families()

    def _collectors(self, parts: Iterable[Part]) -> Iterable[Family]:
        seconds: Counter[str] = Counter()
        success: dict[str, bool] = {}
        for part in parts:
            seconds.update(part.seconds)
            if part.labels is None:
                success.update(part.success)
        for name, text, found in (
            (
                "cephqos_collector_duration_seconds",
                "Time that a collector spent in this scrape, over all daemons.",
                seconds,
            ),
            (
                "cephqos_collector_host_success",
                "1: the collector produced its metrics for the host or the cluster in this scrape.",
                success,
            ),
        ):
            family = Family(name, "gauge", text)
            for collector, value in found.items():
                family.add(self._with(_WITHOUT, "collector", collector), value)
            yield family

    def _with(self, labels: LabelText, name: str, value: str) -> LabelText:
        key = (labels, name, value)
        if key not in self._extended:
            if len(self._extended) > 100_000:  # daemons came and went for years
                self._extended.clear()
            self._extended[key] = extend_labels(labels, {name: value})
        return self._extended[key]

    def _daemons(self, daemons: dict[LabelText, Part]) -> Iterable[Family]:
        up = Family(
            "cephqos_daemon_up",
            "gauge",
            "1: the daemon answered on its admin socket in this scrape. 0: it did not, "
            "for the reason given.",
        )
        seconds = Family(
            "cephqos_daemon_scrape_duration_seconds",
            "gauge",
            "Time until the daemon's replies had arrived or were given up.",
        )
        success = Family(
            "cephqos_collector_success",
            "gauge",
            "1: the collector produced its metrics for the daemon in this scrape. "
            "Absent where it is not meant for the daemon.",
        )
        left_out = Family(
            "cephqos_daemon_samples_left_out",
            "gauge",
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
    family = Family(
        ExporterSeries.COLLECTOR_NOT_UNDERSTOOD,
        "counter",
        "How often the collector found something in a reply of Ceph that it does not understand. "
        "What needs it is absent. The log says what it was, once. Absent while all is understood.",
    )
    for part in parts:
        for collector, what, total in part.not_understood or ():
            own = {"collector": collector, "what": what}
            family.add(extend_labels(part.labels or LabelText(""), own), total)
    return family


class _Process:
    """The metrics of prometheus_client's collectors of the process, its garbage and its Python.

    Its ProcessCollector lists the open descriptors. This process has thousands, and listing 4,500
    takes as long as two OSDs. From Linux 6.2 on, the size of the directory is their number.
    """

    def __init__(self) -> None:
        # Read once: it changes when the clock is set.
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        self._started = round(boot + int(_stat()[19]) / CLOCK_TICKS, 2)
        major, minor, patch = platform.python_version_tuple()
        about = {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "major": major,
            "minor": minor,
            "patchlevel": patch,
        }
        name, text = "python_info", "Python platform information"
        self._python = single(name, "gauge", text, render_labels(about), 1)

    def families(self) -> Iterable[Family]:
        stats = gc.get_stats()
        for key, name, text in _COLLECTIONS:
            samples = [("", of, it[key]) for of, it in zip(_GENERATIONS, stats, strict=True)]
            yield Family(name, "counter", text, samples)
        yield self._python
        stat = _stat()
        seconds = (int(stat[11]) + int(stat[12])) / CLOCK_TICKS
        name, text = "process_cpu_seconds_total", "Total user and system CPU time spent in seconds."
        yield single(name, "counter", text, _WITHOUT, seconds)
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
            yield single(f"process_{name}", "gauge", text, _WITHOUT, value)


def _stat() -> list[str]:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()


def _open_descriptors() -> int:
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))  # noqa: PTH116, PTH208


def _by_labels(parts: Sequence[Part]) -> dict[LabelText, Part]:
    """Each daemon once: a socket that answered wins over a stale one of the same name."""
    found: dict[LabelText, Part] = {}
    for part in parts:
        if part.labels is None:
            continue
        other = found.get(part.labels)
        if other is None or (other.down and (not part.down or other.nameless)):
            found[part.labels] = part
    return found
