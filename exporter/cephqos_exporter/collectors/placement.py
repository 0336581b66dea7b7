"""placement: which CPUs and NUMA nodes an OSD may use and uses, and who shares a reactor's core."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

from cephqos_base.units import format_cpu_list, parse_cpu_list
from cephqos_exporter import procfs
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.strategy import strategy_of
from cephqos_exporter.config import Option, Settings, flag, seconds
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, gauge
from cephqos_exporter.labels import Labels, LabelText, extend_labels, render_labels
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.sampler import Thread, ThreadSamples
from cephqos_exporter.sysfs import Topology, read_topology


def _cpu_list(value: Any) -> tuple[int, ...]:
    """One text as the kernel writes them, or a list of such texts."""
    parts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, bool) or not isinstance(part, str | int) for part in parts):
        raise TypeError(value)
    return tuple(cpu for part in parts for cpu in parse_cpu_list(str(part)))


_TOPOLOGY_SECONDS = 300.0
# Between looks at every thread of a host with reactors, which take 9 µs per thread.
_SCAN_SECONDS = 60.0

_CPU: Final = attrgetter("cpu")
_ALLOWED: Final = attrgetter("allowed")

# Names of reactors, and of the threads that Seastar starts beside each. They do not disturb it: one
# makes system calls that block, while the reactor waits, and one watches the time.
_SEASTAR_THREADS = re.compile(rb"crimson-osd|(reactor|syscall|timer)-\d+")


class _Reactor(NamedTuple):
    cpu: int  # where it last ran
    allowed: frozenset[int]


@dataclass(slots=True)
class _PlacementOsd:
    """What is known of one OSD's placement."""

    labels: Labels
    id: str
    seen: bool = False  # in this scrape
    allowed: frozenset[int] = frozenset()  # CPUs
    used: Counter[int] = field(default_factory=Counter)  # CPU -> threads that last ran there
    nodes: Mapping[int, int] = field(default_factory=dict)  # NUMA node -> threads
    reactors: Mapping[str, _Reactor] = field(default_factory=dict)  # by number
    memory: Mapping[int, int] = field(default_factory=dict)  # NUMA node -> bytes
    memory_read: float | None = None  # when
    lookup: Lookup[bytes] | None = None  # of the memory, under way
    info: LabelText = field(default_factory=lambda: LabelText(""))
    _allowed_lists: frozenset[str] = frozenset()  # of its threads, as the kernel writes them

    def update(self, threads: Iterable[Thread], topology: Topology) -> None:
        """Take in where the threads are now."""
        threads = list(threads)
        self.used = Counter(map(_CPU, threads))
        self.used.pop(-1, None)  # not known yet
        nodes = dict.fromkeys(sorted(set(topology.node.values())), 0)
        for cpu, count in self.used.items():
            node = topology.node.get(cpu, 0)
            nodes[node] = nodes.get(node, 0) + count
        self.nodes = nodes
        self.reactors = {
            _reactor_number(thread.name): _Reactor(
                thread.cpu, frozenset(parse_cpu_list(thread.allowed))
            )
            for thread in threads
            if thread.group == "reactor"
        }
        lists = frozenset(map(_ALLOWED, threads)) - {""}
        if lists != self._allowed_lists:
            self._allowed_lists = lists
            self.allowed = frozenset(cpu for text in lists for cpu in parse_cpu_list(text))
            allowed_nodes = {topology.node[cpu] for cpu in self.allowed if cpu in topology.node}
            extra = {"cpus": format_cpu_list(self.allowed), "nodes": format_cpu_list(allowed_nodes)}
            self.info = extend_labels(self.labels.base, extra)

    def memory_due(self, now: float, interval: float) -> bool:
        return self.memory_read is None or not 0 <= now - self.memory_read < interval

    def memory_family(self) -> Family:
        family = gauge("cephqos_placement_memory_bytes", "Memory of the process by NUMA node.")
        for node, size in sorted(self.memory.items()):
            family.add(self.labels.of("node", str(node)), size)
        return family

    def families(self, *, per_cpu: bool) -> list[Family]:
        info = gauge("cephqos_placement_info", "CPUs and NUMA nodes that an OSD may use.")
        if self.info:
            info.add(self.info, 1)
        allowed = gauge("cephqos_placement_cpus_allowed", "CPUs that an OSD may use.")
        if self.allowed:
            allowed.add(self.labels.base, len(self.allowed))
        used = gauge("cephqos_placement_cpus_used", "CPUs on which a thread of the OSD last ran.")
        used.add(self.labels.base, len(self.used))
        threads = gauge(
            "cephqos_placement_threads", "Threads of an OSD that last ran on a NUMA node."
        )
        for node, count in self.nodes.items():
            threads.add(self.labels.of("node", str(node)), count)
        families = [info, allowed, used, threads]
        if self.reactors:
            ran = gauge("cephqos_placement_reactor_cpu", "The CPU on which a reactor last ran.")
            for number, reactor in self.reactors.items():
                ran.add(self.labels.of("reactor", number), reactor.cpu)
            families.append(ran)
        if per_cpu:
            text = "Threads of an OSD that last ran on a CPU."
            on_cpus = gauge("cephqos_placement_cpu_threads", text)
            for cpu, count in sorted(self.used.items()):
                on_cpus.add(self.labels.of("cpu", str(cpu)), count)
            families.append(on_cpus)
        return families


class _UserThread(NamedTuple):
    """A thread of any process, as far as `_Scan` needs it."""

    key: tuple[int, int]  # tid and start: the kernel gives numbers again
    cpu: int  # where it last ran
    ticks: int  # of CPU time


class _Scan:
    """Which CPUs are used by threads that are no reactors, of all processes of the host."""

    def __init__(self) -> None:
        self.busy: frozenset[int] | None = None  # unknown until two looks can be compared
        self._ticks: dict[tuple[int, int], int] = {}  # by thread
        self._last: float | None = None  # look

    def look(self, proc: Path, now: float) -> None:
        """Compare the CPU time of all threads with that of the last look."""
        if self._last is not None and 0 <= now - self._last < _SCAN_SECONDS:
            return
        ticks: dict[tuple[int, int], int] = {}
        busy = set()
        for pid in procfs.process_ids(proc):
            for thread in _user_threads(proc, pid):
                ticks[thread.key] = thread.ticks
                if thread.ticks > self._ticks.get(thread.key, thread.ticks):
                    busy.add(thread.cpu)
        self.busy = frozenset(busy) if self._last is not None else None
        self._ticks, self._last = ticks, now


class PlacementCollector(
    DaemonCollector[_PlacementOsd],
    name="placement",
    help="CPUs and NUMA nodes that OSDs may use and do use.",
):
    """Allowed CPUs, the CPUs and nodes that threads last ran on, and sharing of reactors' cores.

    `samples` is shared with the threads collector.
    """

    per_cpu = flag(
        "collector.placement.per-cpu",
        False,
        "Report a series for every CPU that a thread last ran on.",
    )
    # At most one OSD per scrape.
    memory_interval = seconds(
        "collector.placement.memory-interval",
        0.0,
        "Seconds between reads of the memory per NUMA node, which take 14 ms per GB of a process; "
        "0: never.",
        most=86400,
    )
    excluded_cpus: ClassVar[Option[tuple[int, ...]]] = Option(
        name="collector.placement.excluded-cpus",
        default=(),
        help=(
            "CPUs that no OSD is meant to use. They are ignored when the placement "
            "strategy is recognised."
        ),
        parse=_cpu_list,
        allowed="CPUs such as 0-1,56-57",
    )

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        samples: ThreadSamples | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self._excluded = frozenset(self.excluded_cpus)
        self._samples = samples or ThreadSamples()
        self._scan = _Scan()
        self._topology: Topology | None = None
        self._topology_read = 0.0
        self._memory_read_begun = False  # in this scrape: one OSD per scrape
        # The host's /proc and the time of the scrape, for `finish`. Not the view itself: it would
        # keep a daemon's replies in memory.
        self._proc_and_time: tuple[Path, float] | None = None

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(inputs.settings, samples=inputs.samples)

    def needed(self, daemon: Daemon, state: _PlacementOsd | None) -> Sequence[Command]:
        return ()

    def first_seen(self, view: DaemonView) -> _PlacementOsd:
        return _PlacementOsd(Labels(view.labels), view.daemon.id)

    def families(self, view: DaemonView, state: _PlacementOsd) -> Iterable[Family]:
        topology = self._read_topology(view)
        sample = self._samples.of(view)
        state.seen = True
        state.update(sample.threads.values(), topology)
        families = state.families(per_cpu=self.per_cpu)
        if self.memory_interval and state.memory_due(view.time, self.memory_interval):
            self._read_memory(state, view)
        if state.memory:
            families.append(state.memory_family())
        self._proc_and_time = view.host.proc, view.time
        return families

    def finish(self) -> Iterable[Family]:
        self._memory_read_begun = False
        osds = [osd for osd in self.states.values() if osd.seen]
        for osd in osds:
            osd.seen = False
        if not osds or self._topology is None or self._proc_and_time is None:
            return []
        families = [_strategy_family(osds, self._topology, self._excluded)]
        if any(osd.reactors for osd in osds):
            self._scan.look(*self._proc_and_time)
            families.append(_sharing_family(osds, self._topology, self._scan))
        return families

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._samples.forget(daemon)

    def _read_topology(self, view: DaemonView) -> Topology:
        age = view.time - self._topology_read
        if self._topology is None or not 0 <= age < _TOPOLOGY_SECONDS:
            self._topology, self._topology_read = read_topology(view.host.sys), view.time
        return self._topology

    def _read_memory(self, osd: _PlacementOsd, view: DaemonView) -> None:
        if osd.lookup is None:
            if self._memory_read_begun:
                return
            self._memory_read_begun = True
            path = f"{view.host.proc}/{view.daemon.pid}/numa_maps"
            osd.lookup = Lookup(partial(procfs.read_all, path))
        try:
            osd.memory = node_memory(osd.lookup.answer())
        except TimeoutError:  # it hangs in a thread of its own
            osd.memory, osd.memory_read = {}, None
            return
        except OSError:  # not the OSD's user, and no CAP_SYS_PTRACE: the series is absent
            osd.memory = {}
        osd.lookup, osd.memory_read = None, view.time


def _user_threads(proc: Path, pid: int) -> Iterable[_UserThread]:
    """A process's threads, without the kernel's and without Seastar's."""
    try:
        for task in (proc / str(pid) / "task").iterdir():
            stat = procfs.parse_stat(procfs.read_once(f"{task}/stat", 1024))
            if stat.flags & procfs.KERNEL_THREAD:
                return
            if not _SEASTAR_THREADS.fullmatch(stat.name):
                key = (int(task.name), stat.start)
                yield _UserThread(key, stat.cpu, stat.user + stat.system)
    except OSError:
        return


def _reactor_number(name: str) -> str:
    return name.removeprefix("reactor-") if name.startswith("reactor-") else "0"


def _sharing_family(osds: Sequence[_PlacementOsd], topology: Topology, scan: _Scan) -> Family:
    family = gauge(
        "cephqos_placement_reactors_shared",
        "Reactors of an OSD that share a CPU. by: reactor, with another reactor; sibling, they use "
        "hardware threads of one core; thread, with a thread that is no reactor.",
    )
    reactors_on = Counter(reactor.cpu for osd in osds for reactor in osd.reactors.values())
    for osd in osds:
        cpus = [reactor.cpu for reactor in osd.reactors.values()]
        if not cpus:
            continue
        on_sibling = [any(reactors_on[c] for c in topology.siblings(cpu)) for cpu in cpus]
        shared = {"reactor": sum(reactors_on[cpu] > 1 for cpu in cpus), "sibling": sum(on_sibling)}
        if scan.busy is not None:
            shared["thread"] = sum(cpu in scan.busy for cpu in cpus)
        for by, count in shared.items():
            family.add(osd.labels.of("by", by), count)
    return family


def _strategy_family(
    osds: Sequence[_PlacementOsd], topology: Topology, excluded: frozenset[int]
) -> Family:
    family = gauge(
        "cephqos_placement_strategy",
        "How the OSDs of this host look placed: default (consecutive cores), by_osd (OSDs in turn, "
        "or even and odd ids, on one socket and the other), by_socket (each OSD's cores spread "
        "evenly over the sockets), unpinned, other.",
    )
    cpus = {osd.id: _cpus_meant_for(osd) for osd in osds}
    family.add(render_labels({"strategy": strategy_of(cpus, topology, excluded)}), 1)
    return family


def _cpus_meant_for(osd: _PlacementOsd) -> frozenset[int]:
    """The CPUs that its reactors may use; without reactors, all that the OSD may use."""
    if osd.reactors:
        return frozenset().union(*(reactor.allowed for reactor in osd.reactors.values()))
    return osd.allowed


def node_memory(numa_maps: bytes) -> dict[int, int]:
    """Bytes by NUMA node; mappings of huge pages count in pages of their own size."""
    total: Counter[int] = Counter()
    for line in numa_maps.splitlines():
        size = procfs.PAGE_SIZE
        pages: list[tuple[int, int]] = []
        for word in line.split()[2:]:
            key, _, value = word.partition(b"=")
            if key[:1] == b"N" and key[1:].isdigit():
                pages.append((int(key[1:]), int(value)))
            elif key == b"kernelpagesize_kB":
                size = int(value) * 1024
        for node, count in pages:
            total[node] += count * size
    return dict(total)
