"""cgroup: limits of an OSD's container or unit, what they hold back, and its pressure (PSI)."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from cephqos_base.series import CgroupSeries
from cephqos_exporter import procfs
from cephqos_exporter.cgroups import CgroupLimits, Cgroups, find_cgroups, read_limits
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.interval import ReadInterval
from cephqos_exporter.config import Settings, seconds
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family, FamilyType, Form
from cephqos_exporter.labels import Labels, LabelText
from cephqos_exporter.sysfs import device_by_number, read_text

# In the order in which they are shown: a family's type and help.
_FAMILIES: Final[Mapping[str, tuple[FamilyType, str]]] = {
    CgroupSeries.CPU_LIMIT: (
        "gauge",
        "CPUs that the OSD's container or unit may use at a time: the tightest limit of its cgroup "
        "and those above it. Absent without a limit, or where the cgroup is not seen.",
    ),
    CgroupSeries.MEMORY_LIMIT_BYTES: (
        "gauge",
        "Memory limit of the OSD's container or unit: the tightest limit of its cgroup and those "
        "above it. Absent without a limit, or where the cgroup is not seen.",
    ),
    CgroupSeries.IO_LIMIT_OPS: (
        "gauge",
        "Requests per second that the OSD's container or unit may send to a device.",
    ),
    CgroupSeries.IO_LIMIT_BYTES: (
        "gauge",
        "Bytes per second that the OSD's container or unit may move from or to a device.",
    ),
    CgroupSeries.CPU_PERIODS: (
        "counter",
        "Periods in which the OSD ran under a CPU limit, summed over the cgroups that have one, "
        "since the exporter first saw the daemon.",
    ),
    CgroupSeries.CPU_THROTTLED_PERIODS: (
        "counter",
        "Periods in which the CPU limit was used up, since the exporter first saw the daemon.",
    ),
    CgroupSeries.CPU_THROTTLED_SECONDS: (
        "counter",
        "Time that threads were stopped by the CPU limit, summed over CPUs, since the exporter "
        "first saw the daemon.",
    ),
    CgroupSeries.MEMORY_USED_BYTES: (
        "gauge",
        "Memory used in the cgroup with the tightest memory limit, file cache included.",
    ),
    CgroupSeries.MEMORY_LIMIT_HITS: (
        "counter",
        "How often the memory limit was reached, so that memory had to be reclaimed.",
    ),
    CgroupSeries.MEMORY_OOM_KILLS: (
        "counter",
        "Processes killed because the memory limit was reached. A container that is started again "
        "begins at 0.",
    ),
    CgroupSeries.IO_OPS: (
        "counter",
        "Requests of the cgroup that has an I/O limit, to the limited device, before they are "
        "merged. Absent where requests are not limited.",
    ),
    CgroupSeries.IO_BYTES: (
        "counter",
        "Bytes of the cgroup that has an I/O limit, from or to the limited device. Absent where "
        "bytes are not limited.",
    ),
    CgroupSeries.PRESSURE_SECONDS: (
        "counter",
        "Time in which at least one thread of the OSD's cgroup waited for a resource (PSI). Needs "
        "cgroup version 2.",
    ),
}

_V1_IO_COUNTERS: Final = {
    "iops": "blkio.throttle.io_serviced_recursive",
    "bps": "blkio.throttle.io_service_bytes_recursive",
}
# Files with a line for each device of the host. All others are shorter than a page.
_LONG_FILES: Final = ("io.stat", *_V1_IO_COUNTERS.values())
# What reading a file raises if it is not there or has other content.
_GONE: Final = (OSError, ValueError, LookupError)

_SeriesKey = tuple[str, LabelText]  # name and labels


@dataclass(slots=True)
class _CounterFiles:
    """Files to read at every scrape. `parse` takes what is in them, and gives a number for each of
    the series."""

    paths: Sequence[str]
    parse: Callable[..., Sequence[float]]
    series: Sequence[_SeriesKey]
    _contents: Sequence[bytes] = ()  # of the files, when they were last parsed
    _numbers: Sequence[float] = ()

    def read(self, files: "_Files") -> Sequence[float]:
        """The numbers now. Files that have not changed, as of an idle OSD, are not parsed again."""
        contents = [files.read(path) for path in self.paths]
        if contents != self._contents:
            self._contents, self._numbers = contents, self.parse(*contents)
        return self._numbers


class _LimitedIo(NamedTuple):
    """An I/O limit of a device, and where what was done under it is counted."""

    limit_series: str
    done_series: str
    labels: LabelText
    device: str  # major:minor
    kind: str  # riops, wiops, rbps, wbps: as in CgroupLimits
    limit: int
    level: Path  # the cgroup that has the limit


@dataclass(slots=True)
class _Throttling:
    """What CPU limits held back: the growth of each cgroup's counts, summed over the cgroups.

    A sum of the counts themselves would jump whenever a limit is set or removed.
    """

    before: dict[str, Sequence[float]] = field(default_factory=dict)  # by file
    sums: Sequence[float] = (0, 0, 0)  # periods, throttled periods, throttled seconds

    def watch(self, levels: Iterable[Path]) -> Sequence[str]:
        """The files to read from now on."""
        paths = [f"{level}/cpu.stat" for level in levels]
        self.before = {path: self.before[path] for path in paths if path in self.before}
        return paths

    def grow(self, paths: Sequence[str], *files: bytes) -> Sequence[float]:
        """The sums, once what is in the files now is added."""
        counts = dict(zip(paths, map(_throttling, files), strict=True))
        for path, now in counts.items():
            growth = zip(self.sums, now, self.before.get(path, now), strict=True)
            self.sums = [total + max(0, new - old) for total, new, old in growth]
        self.before = counts
        return self.sums


@dataclass(slots=True)
class _Files:
    """The files of a cgroup. They stay open, as to open one takes longer than to read it."""

    descriptors: procfs.Descriptors
    _open: dict[str, int] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """The whole file."""
        fd = self._open.get(path, -1)
        if fd < 0:
            fd = self._open[path] = self.descriptors.open(path)
        if not path.endswith(_LONG_FILES):
            return procfs.read_once(path) if fd < 0 else os.pread(fd, 4096, 0)
        if fd < 0:
            return procfs.read_all(path)
        raw = os.pread(fd, 4096, 0)
        while len(raw) >= 4096 and (part := os.pread(fd, 65536, len(raw))):
            raw += part
        return raw

    def close(self) -> None:
        for fd in self._open.values():
            self.descriptors.close(fd)
        self._open.clear()


@dataclass(slots=True)
class _CgroupOsd:
    labels: Labels
    interval: ReadInterval  # between looks for cgroups and limits
    files: _Files
    cgroup_text: str = ""  # of /proc/PID/cgroup
    groups: Cgroups = field(default_factory=Cgroups)
    limits: CgroupLimits | None = None
    throttling: _Throttling = field(default_factory=_Throttling)
    # The form's series: first those of the limits, with fixed values, then those of the sources.
    form: Form | None = None
    series: Sequence[_SeriesKey] = ()
    limit_values: Sequence[float] = ()
    sources: Sequence[_CounterFiles] = ()


class CgroupCollector(
    DaemonCollector[_CgroupOsd],
    name="cgroup",
    help="Limits of the OSDs' containers and units (cgroups), and what they hold back.",
):
    """CPU, memory and I/O limits, throttling, and pressure, of cgroup versions 1 and 2."""

    interval = seconds(
        "collector.cgroup.interval",
        30.0,
        "Seconds between reads of the limits of an OSD's container or unit.",
    )

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        descriptors: procfs.Descriptors | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self._descriptors = descriptors or procfs.Descriptors()

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(inputs.settings, descriptors=inputs.samples.descriptors)

    def needed(self, daemon: Daemon, state: _CgroupOsd | None) -> Sequence[Command]:
        return ()

    def first_seen(self, view: DaemonView) -> _CgroupOsd:
        files = _Files(self._descriptors)
        return _CgroupOsd(Labels(view.labels), ReadInterval(self.interval), files)

    def forget(self, daemon: Daemon) -> None:
        if daemon in self.states:
            self.states[daemon].files.close()
        super().forget(daemon)

    def families(self, view: DaemonView, state: _CgroupOsd) -> Iterable[Family]:
        due = state.interval.due or state.form is None
        if due:
            _find_limits(state, view)
        state.interval.scraped(view.time, read=due)
        if state.form is None:
            return ()
        try:
            return state.form.fill([*state.limit_values, *_read(state.sources, state.files)])
        except _GONE:  # the cgroup has gone, or is another one now
            state.files.close()
            state.form, state.cgroup_text = None, ""
            return ()


def _find_limits(state: _CgroupOsd, view: DaemonView) -> None:
    """Find the OSD's cgroups, their limits, and the files to read at each scrape."""
    if not view.daemon.pid:
        raise ReplyMissing("pid", "unknown")
    text = read_text(view.host.proc / str(view.daemon.pid) / "cgroup") or ""
    if text != state.cgroup_text or not state.groups.cpu.levels:
        state.cgroup_text, state.groups, state.limits = text, find_cgroups(view.host, text), None
    limits = read_limits(state.groups)
    if state.form is not None and limits == state.limits:
        return
    state.limits = limits
    state.files.close()
    io = list(_limited_io(limits, view.host.sys, state.labels))
    limit_values = dict(_limit_values(limits, io, state.labels))
    sources = list(_readable(_sources(state, limits, io), state.files))
    series = [*limit_values, *(key for source in sources for key in source.series)]
    state.limit_values, state.sources = list(limit_values.values()), sources
    if state.form is None or series != state.series:
        state.form, state.series = Form.of(_families(series)), series


def _families(series: Iterable[_SeriesKey]) -> Iterable[Family]:
    by_name: dict[str, Family] = {}
    for name, labels in series:
        by_name.setdefault(name, Family(name, *_FAMILIES[name])).add(labels, 0)
    return by_name.values()


def _limit_values(
    limits: CgroupLimits, io: Iterable[_LimitedIo], labels: Labels
) -> Iterator[tuple[_SeriesKey, float]]:
    """The limits by series."""
    if limits.cpus is not None:
        yield (CgroupSeries.CPU_LIMIT, labels.base), limits.cpus
    if limits.memory is not None:
        yield (CgroupSeries.MEMORY_LIMIT_BYTES, labels.base), limits.memory
    for limited in io:
        yield (limited.limit_series, limited.labels), limited.limit


def _limited_io(limits: CgroupLimits, sys: Path, labels: Labels) -> Iterator[_LimitedIo]:
    """The I/O limits of devices that the host has, those of requests first."""
    for unit, limit_series, done_series in (
        ("iops", CgroupSeries.IO_LIMIT_OPS, CgroupSeries.IO_OPS),
        ("bps", CgroupSeries.IO_LIMIT_BYTES, CgroupSeries.IO_BYTES),
    ):
        for (device, kind), (limit, level) in sorted(limits.io.items()):
            name = device_by_number(sys, device)
            if kind[1:] == unit and name:
                text = labels.of("device", name, "op", "read" if kind[0] == "r" else "write")
                yield _LimitedIo(limit_series, done_series, text, device, kind, limit, level)


def _sources(
    state: _CgroupOsd, limits: CgroupLimits, io: Iterable[_LimitedIo]
) -> Iterator[_CounterFiles]:
    groups, labels = state.groups, state.labels
    cpu_files = state.throttling.watch(limits.cpu_levels)
    if cpu_files:
        yield _CounterFiles(
            cpu_files,
            partial(state.throttling.grow, cpu_files),
            [
                (CgroupSeries.CPU_PERIODS, labels.base),
                (CgroupSeries.CPU_THROTTLED_PERIODS, labels.base),
                (CgroupSeries.CPU_THROTTLED_SECONDS, labels.base),
            ],
        )
    if limits.memory_level is not None:
        yield from _memory_sources(limits.memory_level, labels, v2=groups.memory.v2)
    yield from _io_sources(io, v2=groups.io.v2)
    if groups.pressure is not None:
        for resource in procfs.PRESSURE_RESOURCES:
            yield _CounterFiles(
                [f"{groups.pressure}/{resource}.pressure"],
                _pressure,
                [(CgroupSeries.PRESSURE_SECONDS, labels.of("resource", resource))],
            )


def _memory_sources(level: Path, labels: Labels, *, v2: bool) -> Iterator[_CounterFiles]:
    used_file = "memory.current" if v2 else "memory.usage_in_bytes"
    used = (CgroupSeries.MEMORY_USED_BYTES, labels.base)
    hits = (CgroupSeries.MEMORY_LIMIT_HITS, labels.base)
    kills = (CgroupSeries.MEMORY_OOM_KILLS, labels.base)
    yield _CounterFiles([f"{level}/{used_file}"], _one_number, [used])
    if v2:
        yield _CounterFiles([f"{level}/memory.events"], _memory_events, [hits, kills])
    else:
        yield _CounterFiles([f"{level}/memory.failcnt"], _one_number, [hits])
        yield _CounterFiles([f"{level}/memory.oom_control"], _oom_kills, [kills])


def _io_sources(io: Iterable[_LimitedIo], *, v2: bool) -> Iterator[_CounterFiles]:
    """What was done under each limit. Several limits may be counted in one file."""
    by_file: dict[str, list[_LimitedIo]] = {}
    for limited in io:
        file = "io.stat" if v2 else _V1_IO_COUNTERS[limited.kind[1:]]
        by_file.setdefault(f"{limited.level}/{file}", []).append(limited)
    for path, in_file in by_file.items():
        fields = [_io_field(limited.device, limited.kind, v2=v2) for limited in in_file]
        series = [(limited.done_series, limited.labels) for limited in in_file]
        yield _CounterFiles([path], partial(_io_done, fields), series)


def _readable(sources: Iterable[_CounterFiles], files: _Files) -> Iterator[_CounterFiles]:
    """The sources that this kernel has and this user may read."""
    for source in sources:
        with suppress(*_GONE):
            _read([source], files)
            yield source


def _read(sources: Iterable[_CounterFiles], files: _Files) -> list[float]:
    return [number for source in sources for number in source.read(files)]


def _fields(raw: bytes) -> dict[bytes, int]:
    """A file with a name and a number on each line."""
    words = raw.split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False)}


def _throttling(raw: bytes) -> Sequence[float]:
    counts = _fields(raw)
    if b"throttled_usec" in counts:  # version 2
        seconds = counts[b"throttled_usec"] / 1e6
    else:
        seconds = counts[b"throttled_time"] / 1e9
    return counts[b"nr_periods"], counts[b"nr_throttled"], seconds


def _memory_events(raw: bytes) -> Sequence[float]:
    events = _fields(raw)
    return events[b"high"] + events[b"max"], events[b"oom_kill"]


def _oom_kills(raw: bytes) -> Sequence[float]:
    return (_fields(raw)[b"oom_kill"],)


def _io_field(device: str, limit: str, *, v2: bool) -> tuple[bytes, bytes]:
    """The device and the name under which its file counts what was done under a limit."""
    reads, unit = limit[0] == "r", limit[1:]
    if v2:
        name = ("r" if reads else "w") + ("ios" if unit == "iops" else "bytes")
    else:
        name = "Read" if reads else "Write"
    return device.encode(), name.encode()


def _io_done(wanted: Sequence[tuple[bytes, bytes]], raw: bytes) -> Sequence[float]:
    """The counts of `wanted`, each a device and a name.

    Lines are `8:0 Write 12` in version 1, `8:0 rbytes=1 wbytes=2 rios=3 wios=4 ...` in version 2.
    """
    devices = {device for device, _ in wanted}
    done = dict.fromkeys(wanted, 0)  # a device is listed from its first request on
    for words in map(bytes.split, raw.replace(b"=", b" ").splitlines()):
        if words and words[0] in devices:
            named = zip(words[1::2], words[2::2], strict=False)
            done.update(((words[0], name), int(value)) for name, value in named)
    return [done[field] for field in wanted]


def _one_number(raw: bytes) -> Sequence[float]:
    return (int(raw),)


def _pressure(raw: bytes) -> Sequence[float]:
    return (procfs.parse_pressure(raw),)
