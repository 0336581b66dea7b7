"""threads: where a daemon's CPU time goes, by thread group; its memory, and BlueStore's share."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cephqos_base.series import DaemonSeries
from cephqos_exporter import core_options, sampler
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.config import Settings, flag, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host, ReplyMissing
from cephqos_exporter.daemon_errors import Malformed
from cephqos_exporter.families import Family, Form, counter, gauge
from cephqos_exporter.labels import Labels, extend_labels, render_labels
from cephqos_exporter.procfs import CLOCK_TICKS, PAGE_SIZE, process_ids, process_name

MEMPOOLS = "dump_mempools"
_NAME_BYTES = 15  # of a process's name, which the kernel keeps


@dataclass(slots=True)
class _Daemon:
    labels: Labels
    # The last reply, and its bytes of the pools that have ever used memory.
    pools: tuple[Any, dict[str, int]] | None = None
    form: Form | None = None
    series: Sequence[object] = ()  # on which the series of the form depend


class ThreadsCollector(
    DaemonCollector[_Daemon],
    name="threads",
    help="CPU time, waiting and switches of the daemons' threads; memory.",
):
    """CPU time, waiting and switches per thread group; resident memory; memory pools.

    `kinds`: the daemons to sample (`osd`; `mon`, `mgr`, `mds`, `client` on request). `samples` is
    shared with the placement collector, and holds to the options of threads.
    """

    processes = texts(
        "collector.threads.processes",
        (),
        "Names of processes without an admin socket whose threads are reported too, such as fio.",
    )
    per_thread = flag(
        "collector.threads.per-thread", False, "Report a series for every thread as well."
    )
    all_groups = sampler.ALL_GROUPS
    switches_interval = sampler.SWITCHES_INTERVAL
    descriptors = sampler.DESCRIPTORS

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        kinds: Collection[str] = ("osd",),
        samples: sampler.ThreadSamples | None = None,
        host: Host | None = None,
        clock: Callable[[], float] = time.time,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self.kinds = frozenset(kinds)
        self._samples = samples or sampler.ThreadSamples()
        self._processes = _Processes(
            frozenset(self.processes), self._samples, (host or Host()).proc, clock
        )

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        kinds = inputs.settings[core_options.DAEMONS]
        return cls(inputs.settings, kinds=kinds, samples=inputs.samples, host=inputs.host)

    def needed(self, daemon: Daemon, state: _Daemon | None) -> Sequence[Command]:
        if daemon.kind != "osd":
            return ()
        return (Command(MEMPOOLS, ttl=30),)  # pools change slowly

    def first_seen(self, view: DaemonView) -> _Daemon:
        return _Daemon(Labels(view.labels))

    def families(self, view: DaemonView, state: _Daemon) -> Iterable[Family]:
        sample = self._samples.of(view)
        pools = _mempools(view.replies[MEMPOOLS], state) if MEMPOOLS in view.replies else {}
        series = (sample.waits_known, *sample.groups), tuple(pools)
        if state.form is None or state.series != series:
            state.form = Form.of(_families(state.labels, sample, pools))
            state.series = series
        filled = state.form.fill([*_numbers(sample), *pools.values()])
        return [*filled, _thread_family(state.labels, sample)] if self.per_thread else filled

    def finish(self) -> Iterable[Family]:
        return self._processes.families()

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._samples.forget(daemon)


def _families(
    labels: Labels, sample: sampler.ProcessSample, pools: Iterable[str]
) -> Iterable[Family]:
    """All families of a daemon: their samples in the order of `_numbers`, then the pools."""
    families = _group_families()
    _add_groups(families, labels, sample.groups, sample.waits_known)
    families += _daemon_families(labels, sample)
    memory = gauge(
        "cephqos_daemon_mempool_bytes",
        "Memory in Ceph's memory pools, by pool. A pool appears once it has used memory.",
    )
    for pool in pools:
        memory.add(labels.of("pool", pool), 0)
    return [*families, memory]


def _numbers(sample: sampler.ProcessSample) -> Iterable[float]:
    groups = sample.groups.values()
    for group in groups:
        yield group.threads
    for group in groups:
        yield group.user / CLOCK_TICKS
        yield group.system / CLOCK_TICKS
    for group in groups:
        yield group.busiest_ns / 1e9
    for group in groups if sample.waits_known else ():
        yield group.wait_ns / 1e9
    for group in groups:
        yield group.voluntary
        yield group.involuntary
    yield sample.process.user / CLOCK_TICKS
    yield sample.process.system / CLOCK_TICKS
    yield sample.process.resident_pages * PAGE_SIZE
    yield sample.process.stopped


def _mempools(reply: Any, daemon: _Daemon) -> dict[str, int]:
    """Bytes by pool, of the pools that have ever used memory."""
    if daemon.pools is None or daemon.pools[0] is not reply:
        known = daemon.pools[1] if daemon.pools is not None else {}
        sizes = {pool: size for pool, size in _pool_bytes(reply) if size or pool in known}
        daemon.pools = reply, sizes
    return daemon.pools[1]


class _Processes:
    """Processes found by name, without a socket. Threads are summed over processes of a name."""

    def __init__(
        self,
        names: frozenset[str],
        samples: sampler.ThreadSamples,
        proc: Path,
        clock: Callable[[], float],
    ) -> None:
        self._names = names
        self._by_start = {name.encode()[:_NAME_BYTES]: name for name in names}
        self._samples = samples
        self._proc = proc
        self._clock = clock
        self._looks: dict[int, int] = {}  # how often a pid's name was looked at
        self._live: dict[int, tuple[str, sampler.ProcessSample]] = {}
        self._ended: dict[str, dict[str, sampler.ThreadGroup]] = {name: {} for name in names}
        self._labels = {name: Labels(render_labels({"process": name})) for name in names}

    def families(self) -> list[Family]:
        if not self._names:
            return []
        self._discover()
        now = self._clock()
        for pid, (_, sample) in list(self._live.items()):
            try:
                sample.update(now)
            except ReplyMissing:
                self._end(pid)
        families = _group_families()
        memory = _memory_family()
        for name in sorted(self._names):
            samples = [sample for known, sample in self._live.values() if known == name]
            groups = _sum_groups([self._ended[name], *(sample.groups for sample in samples)])
            if groups:
                waits_known = all(sample.waits_known for sample in samples)
                _add_groups(families, self._labels[name], groups, waits_known)
            if samples:
                resident = sum(sample.process.resident_pages for sample in samples)
                memory.add(self._labels[name].base, resident * PAGE_SIZE)
        return [*families, memory]

    def _discover(self) -> None:
        present = set(process_ids(self._proc))
        for pid in self._looks.keys() - present:
            del self._looks[pid]
        for pid in present - self._live.keys():
            # Twice: between fork and exec a process has its parent's name.
            looks = self._looks.get(pid, 0)
            if looks < 2:
                self._looks[pid] = looks + 1
                self._look(pid)

    def _look(self, pid: int) -> None:
        name = self._by_start.get(process_name(self._proc, pid) or b"")
        if name is not None:
            with suppress(ReplyMissing):
                self._live[pid] = (name, self._samples.open(self._proc, pid))

    def _end(self, pid: int) -> None:
        name, sample = self._live.pop(pid)
        self._ended[name] = _sum_groups([self._ended[name], sample.groups])
        for group in self._ended[name].values():
            group.threads = 0
        sample.close()


def _pool_bytes(reply: Any) -> Iterator[tuple[str, int]]:
    try:
        pools = reply["mempool"]["by_pool"]
        for pool, figures in pools.items():
            yield pool, int(figures["bytes"])
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise Malformed(f"{MEMPOOLS}: no bytes by pool") from exc


def _sum_groups(parts: Iterable[dict[str, sampler.ThreadGroup]]) -> dict[str, sampler.ThreadGroup]:
    total: dict[str, sampler.ThreadGroup] = {}
    for part in parts:
        for name, group in part.items():
            into = total.setdefault(name, sampler.ThreadGroup())
            into.threads += group.threads
            into.user += group.user
            into.system += group.system
            into.wait_ns += group.wait_ns
            into.busiest_ns += group.busiest_ns
            into.voluntary += group.voluntary
            into.involuntary += group.involuntary
    return total


def _group_families() -> list[Family]:
    return [
        gauge("cephqos_threads", "Threads in the group."),
        counter(
            "cephqos_threads_cpu_seconds_total",
            "CPU time of the group's threads, by mode. Threads that have ended are "
            "included as last seen.",
        ),
        counter(
            "cephqos_threads_busiest_cpu_seconds_total",
            "CPU time of the busiest thread of the group, chosen again for each "
            "interval between two scrapes. Its rate is that thread's share of one CPU; "
            "at 1 the thread can do no more.",
        ),
        counter(
            "cephqos_threads_wait_seconds_total",
            "Time that threads of the group were ready to run and waited for a CPU. "
            "Absent where the kernel does not count it.",
        ),
        counter(
            "cephqos_threads_switches_total",
            "Context switches of the group's threads. They are read at intervals, not "
            "at every scrape.",
        ),
    ]


def _add_groups(
    families: list[Family],
    labels: Labels,
    groups: dict[str, sampler.ThreadGroup],
    waits_known: bool,
) -> None:
    threads, cpu, busiest, wait, switches = families
    for name, group in groups.items():
        base = labels.of("group", name)
        threads.add(base, group.threads)
        cpu.add(labels.of("group", name, "mode", "user"), group.user / CLOCK_TICKS)
        cpu.add(labels.of("group", name, "mode", "system"), group.system / CLOCK_TICKS)
        busiest.add(base, group.busiest_ns / 1e9)
        if waits_known:
            wait.add(base, group.wait_ns / 1e9)
        switches.add(labels.of("group", name, "kind", "voluntary"), group.voluntary)
        switches.add(labels.of("group", name, "kind", "involuntary"), group.involuntary)


def _memory_family() -> Family:
    return gauge("cephqos_daemon_resident_bytes", "Resident memory of the process.")


def _daemon_families(labels: Labels, sample: sampler.ProcessSample) -> list[Family]:
    cpu = counter(
        "cephqos_daemon_cpu_seconds_total",
        "CPU time of the whole process since it started, by mode. Threads that have "
        "ended are included.",
    )
    cpu.add(labels.of("mode", "user"), sample.process.user / CLOCK_TICKS)
    cpu.add(labels.of("mode", "system"), sample.process.system / CLOCK_TICKS)
    memory = _memory_family()
    memory.add(labels.base, sample.process.resident_pages * PAGE_SIZE)
    stopped = gauge(
        DaemonSeries.STOPPED,
        "1 if the process was stopped when it was scraped (SIGSTOP, a debugger), else 0. A frozen "
        "cgroup does not show here.",
    )
    stopped.add(labels.base, sample.process.stopped)
    return [cpu, memory, stopped]


def _thread_family(labels: Labels, sample: sampler.ProcessSample) -> Family:
    family = counter("cephqos_threads_thread_cpu_seconds_total", "CPU time of one thread.")
    for thread in sample.threads.values():
        # Labels are not kept: threads come and go, and this option is on only to investigate.
        extra = {"group": thread.group, "thread": thread.name, "tid": str(thread.tid)}
        family.add(extend_labels(labels.base, extra), thread.run_ns / 1e9)
    return family
