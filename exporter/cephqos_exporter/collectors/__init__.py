"""The collectors: which there are, their options, and how each is made from the settings.

A collector is one file, one class and one entry here. `--collector.NAME` and `--no-collector.NAME`
switch it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cephqos_exporter import options
from cephqos_exporter.collectors.crimson import CrimsonCollector
from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.collectors.histograms import (
    DEFAULT_LONGEST_SECONDS,
    DEFAULT_SIZE_CLASSES,
    HistogramsCollector,
)
from cephqos_exporter.collectors.mclock import MclockCollector
from cephqos_exporter.collectors.ops import OpsCollector
from cephqos_exporter.collectors.perf import DEFAULT_EXCLUDE, DEFAULT_INCLUDE, PerfCollector
from cephqos_exporter.collectors.placement import PlacementCollector
from cephqos_exporter.collectors.recovery import RecoveryCollector
from cephqos_exporter.collectors.scrub import ScrubCollector
from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.config import Option, Settings, choices, flag, integer, number, text, texts
from cephqos_exporter.model import Collector, Host
from cephqos_exporter.procfs import Descriptors, parse_cpu_list
from cephqos_exporter.qos.policy import Policy, load_policy
from cephqos_exporter.sampler import OSD_GROUPS, Samples
from cephqos_exporter.sysfs import DATA_DIRECTORIES


class Making:
    """What the collectors of one exporter are made from."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def host(self) -> Host:
        """Where the host's files are."""
        settings = self.settings
        return Host(
            proc=Path(settings[options.PROC]),
            sys=Path(settings[options.SYS]),
            dev=Path(settings[options.DEV]),
            run=Path(settings[options.RUN]),
        )

    @cached_property
    def samples(self) -> Samples:
        """The threads of all daemons, read once per scrape however many collectors need them."""
        limit = self.settings[THREAD_DESCRIPTORS]
        return Samples(
            groups=None if self.settings[THREAD_ALL_GROUPS] else OSD_GROUPS,
            switches_interval=self.settings[THREAD_SWITCHES_INTERVAL],
            descriptors=Descriptors(limit if limit >= 0 else None),
        )


@dataclass(frozen=True, kw_only=True)
class Registration:
    """How the spine knows a collector."""

    name: str
    help: str
    build: Callable[[Making], Collector]
    options: tuple[Option[Any], ...] = ()
    on: bool = True

    @property
    def switch(self) -> Option[bool]:
        return flag(f"collector.{self.name}", self.on, self.help)


PERF_PRIORITY = integer(
    "collector.perf.min-priority",
    5,
    "Counters of a lower priority are left out; 0: none is.",
    least=0,
    most=10,
)
PERF_INCLUDE = texts(
    "collector.perf.include",
    DEFAULT_INCLUDE,
    "Counters to report whatever their priority.",
    allowed="patterns of logger.counter such as osd.op_*",
)
PERF_EXCLUDE = texts(
    "collector.perf.exclude",
    DEFAULT_EXCLUDE,
    "Counters to leave out; this wins.",
    allowed="patterns of logger.counter such as rocksdb.*",
)
HISTOGRAM_LONGEST = number(
    "collector.histograms.longest",
    DEFAULT_LONGEST_SECONDS,
    "The highest bucket bound.",
    least=0.001,
    most=1000,
    unit="of seconds",
)
HISTOGRAM_BY_SIZE = flag(
    "collector.histograms.by-size",
    False,
    f"Also by request size, in {len(DEFAULT_SIZE_CLASSES)} classes.",
)
QOS_POLICY = text(
    "qos.policy",
    "",
    "File of targets for OSDs whose scheduler promises nothing, or something else.",
    allowed="a path",
)
OPS_LIST_AT_MOST = integer(
    "collector.ops.list-at-most",
    32,
    "Operations in progress up to which they are listed, to find the oldest.",
    least=0,
    most=10_000,
)
THREAD_PROCESSES = texts(
    "collector.threads.processes",
    (),
    "Names of processes without an admin socket whose threads to report too, such as fio.",
)
THREAD_SERIES = flag("collector.threads.per-thread", False, "A series for every thread as well.")
THREAD_ALL_GROUPS = flag(
    "collector.threads.all-groups", False, "Name every thread group, not only those that matter."
)
THREAD_SWITCHES_INTERVAL = number(
    "collector.threads.switches-interval",
    30.0,
    "How often context switches are read, the dearest figure of a thread.",
    least=0,
    most=3600,
    unit="of seconds",
)
THREAD_DESCRIPTORS = integer(
    "collector.threads.descriptors",
    -1,
    "Most files of /proc to keep open, which makes reading them cheap; -1: what the limit allows.",
    least=-1,
    most=10_000_000,
)
DISK_DATA_DIRECTORIES = texts(
    "collector.disks.data-directories",
    DATA_DIRECTORIES,
    "Where OSDs keep their data, should the daemon's own view not be readable.",
    allowed="paths with {id} and {cluster} in them",
)
DISK_LAYERS = choices(
    "collector.disks.layers",
    ("osd", "disk"),
    "Which devices to show: what the OSD opens, the disks beneath.",
    ("osd", "disk"),
)
PLACEMENT_PER_CPU = flag(
    "collector.placement.per-cpu", False, "A series for every CPU that a thread last ran on."
)
PLACEMENT_MEMORY = number(
    "collector.placement.memory-interval",
    0.0,
    "How often to read memory per NUMA node (14 ms per GB of a process); 0: never.",
    least=0,
    most=86400,
    unit="of seconds",
)


def _cpu_list(value: Any) -> tuple[int, ...]:
    """One text as the kernel writes them, or a list of such texts."""
    parts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, bool) or not isinstance(part, str | int) for part in parts):
        raise TypeError(value)
    return tuple(cpu for part in parts for cpu in parse_cpu_list(str(part)))


PLACEMENT_EXCLUDED: Final[Option[tuple[int, ...]]] = Option(
    name="collector.placement.excluded-cpus",
    default=(),
    help="CPUs that no OSD is meant to use, for telling the placement strategy.",
    parse=_cpu_list,
    allowed="CPUs such as 0-1,56-57",
)
CRIMSON_EVERYTHING = flag(
    "collector.crimson.everything", False, "Seastar's other metrics too, hundreds per shard."
)


def _perf(making: Making) -> Collector:
    settings = making.settings
    return PerfCollector(
        min_priority=settings[PERF_PRIORITY],
        include=settings[PERF_INCLUDE],
        exclude=settings[PERF_EXCLUDE],
    )


def _histograms(making: Making) -> Collector:
    settings = making.settings
    return HistogramsCollector(
        longest=settings[HISTOGRAM_LONGEST], by_size=settings[HISTOGRAM_BY_SIZE]
    )


def _mclock(making: Making) -> Collector:
    path = making.settings[QOS_POLICY]
    return MclockCollector(
        policy=load_policy(Path(path)) if path else Policy(),
        data_dirs=making.settings[DISK_DATA_DIRECTORIES],
    )


def _threads(making: Making) -> Collector:
    settings = making.settings
    return ThreadsCollector(
        kinds=settings[options.DAEMONS],
        processes=settings[THREAD_PROCESSES],
        per_thread=settings[THREAD_SERIES],
        samples=making.samples,
        host=making.host,
    )


def _disks(making: Making) -> Collector:
    return DisksCollector(
        layers=making.settings[DISK_LAYERS], data_dirs=making.settings[DISK_DATA_DIRECTORIES]
    )


def _placement(making: Making) -> Collector:
    return PlacementCollector(
        per_cpu=making.settings[PLACEMENT_PER_CPU],
        memory_interval=making.settings[PLACEMENT_MEMORY],
        excluded_cpus=making.settings[PLACEMENT_EXCLUDED],
        samples=making.samples,
    )


REGISTRY: Final[tuple[Registration, ...]] = (
    Registration(
        name="perf",
        help="The daemons' own counters, named as Ceph's exporter names them.",
        build=_perf,
        options=(PERF_PRIORITY, PERF_INCLUDE, PERF_EXCLUDE),
    ),
    Registration(
        name="histograms",
        help="Latency histograms of client operations.",
        build=_histograms,
        options=(HISTOGRAM_LONGEST, HISTOGRAM_BY_SIZE),
    ),
    Registration(
        name="mclock",
        help="What the scheduler promises, what waits in it and what was done.",
        build=_mclock,
        options=(QOS_POLICY,),
    ),
    Registration(
        name="ops",
        help="Operations in progress, blocked and slow.",
        build=lambda making: OpsCollector(list_at_most=making.settings[OPS_LIST_AT_MOST]),
        options=(OPS_LIST_AT_MOST,),
    ),
    Registration(
        name="scrub",
        help="Scrubbing by each OSD: reservations, queue, and the work where it is counted.",
        build=lambda making: ScrubCollector(),
    ),
    Registration(
        name="recovery",
        help="Recovery by each OSD: work done, reservations held and awaited.",
        build=lambda making: RecoveryCollector(),
    ),
    Registration(
        name="threads",
        help="CPU time, waiting and switches of the daemons' threads; memory.",
        build=_threads,
        options=(
            THREAD_PROCESSES,
            THREAD_SERIES,
            THREAD_ALL_GROUPS,
            THREAD_SWITCHES_INTERVAL,
            THREAD_DESCRIPTORS,
        ),
    ),
    Registration(
        name="disks",
        help="Statistics and queue settings of the devices that OSDs use.",
        build=_disks,
        options=(DISK_LAYERS, DISK_DATA_DIRECTORIES),
    ),
    Registration(
        name="placement",
        help="CPUs and NUMA nodes that OSDs may use and do use.",
        build=_placement,
        options=(PLACEMENT_PER_CPU, PLACEMENT_MEMORY, PLACEMENT_EXCLUDED),
    ),
    Registration(
        name="crimson",
        help="Seastar's metrics of Crimson OSDs.",
        build=lambda making: CrimsonCollector(everything=making.settings[CRIMSON_EVERYTHING]),
        options=(CRIMSON_EVERYTHING,),
    ),
)


def all_options() -> tuple[Option[Any], ...]:
    """The switches and options of every collector."""
    found: list[Option[Any]] = []
    for registration in REGISTRY:
        found += [registration.switch, *registration.options]
    return tuple(found)


def build_enabled(making: Making) -> list[Collector]:
    """New instances of the collectors that the settings switch on."""
    return [r.build(making) for r in REGISTRY if making.settings[r.switch]]
