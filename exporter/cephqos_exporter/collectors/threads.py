"""threads: where a daemon's CPU time goes, by thread group; its memory, and BlueStore's share."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from cephqos_exporter import core_options, sampler
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.daemon_errors import Malformed
from cephqos_exporter.families import Family, Form, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.procfs import CLOCK_TICKS, PAGE_SIZE

MEMPOOLS = "dump_mempools"
_MODES = ("user", "system")


@dataclass(slots=True)
class _Daemon:
    labels: Labels
    # A reply, kept for a while, and what it says of the pools that have ever used memory.
    pools: tuple[Any, dict[str, int]] | None = None
    form: Form | None = None
    series: Sequence[object] = ()  # what decided which series the form has


class ThreadsCollector(
    DaemonCollector[_Daemon],
    name="threads",
    help="CPU time, waiting and switches of the daemons' threads; memory.",
):
    """CPU time, waiting and switches per thread group; resident memory; memory pools.

    `kinds`: the daemons to sample (`osd`; `mon`, `mgr`, `mds`, `client` on request). `samples` is
    shared with the placement collector, and holds to the options of threads.
    """

    all_groups = sampler.ALL_GROUPS

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        kinds: Collection[str] = ("osd",),
        samples: sampler.ThreadSamples | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self.kinds = frozenset(kinds)
        self._samples = samples or sampler.ThreadSamples()

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        kinds = inputs.settings[core_options.DAEMONS]
        return cls(inputs.settings, kinds=kinds, samples=inputs.samples)

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
        return state.form.fill([*_numbers(sample), *pools.values()])

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._samples.forget(daemon)


def _families(
    labels: Labels, sample: sampler.ProcessSample, pools: Iterable[str]
) -> Iterable[Family]:
    """All families of a daemon: their samples in the order of `_numbers`, then the pools."""
    process = counter(
        "cephqos_daemon_cpu_seconds_total",
        "CPU time of the whole process since it started, by mode. Threads that have ended are "
        "included.",
    )
    for mode in _MODES:
        process.add(labels.of("mode", mode), 0)
    resident = gauge("cephqos_daemon_resident_bytes", "Resident memory of the process.")
    resident.add(labels.base, 0)
    memory = gauge(
        "cephqos_daemon_mempool_bytes",
        "Memory in Ceph's memory pools, by pool. A pool appears once it has used memory.",
    )
    for pool in pools:
        memory.add(labels.of("pool", pool), 0)
    groups = _group_families(labels, sample.groups, sample.waits_known)
    return [*groups, process, resident, memory]


def _group_families(labels: Labels, groups: Iterable[str], waits_known: bool) -> list[Family]:
    families = threads, cpu, busiest, wait, switches = [
        gauge("cephqos_threads", "Threads in the group."),
        counter(
            "cephqos_threads_cpu_seconds_total",
            "CPU time of the group's threads, by mode. Threads that have ended are included as "
            "last seen.",
        ),
        counter(
            "cephqos_threads_busiest_cpu_seconds_total",
            "CPU time of the busiest thread of the group, chosen again for each interval between "
            "two scrapes. Its rate is that thread's share of one CPU; at 1 the thread can do no "
            "more.",
        ),
        counter(
            "cephqos_threads_wait_seconds_total",
            "Time that threads of the group were ready to run and waited for a CPU. Absent where "
            "the kernel does not count it.",
        ),
        counter(
            "cephqos_threads_switches_total",
            "Context switches of the group's threads. They are read at intervals, not at every "
            "scrape.",
        ),
    ]
    for name in groups:
        for family in (threads, busiest, wait) if waits_known else (threads, busiest):
            family.add(labels.of("group", name), 0)
        for mode in _MODES:
            cpu.add(labels.of("group", name, "mode", mode), 0)
        for kind in ("voluntary", "involuntary"):
            switches.add(labels.of("group", name, "kind", kind), 0)
    return families


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


def _mempools(reply: Any, daemon: _Daemon) -> dict[str, int]:
    """Bytes by pool, of the pools that have ever used memory."""
    if daemon.pools is None or daemon.pools[0] is not reply:
        known = daemon.pools[1] if daemon.pools is not None else {}
        sizes = {pool: size for pool, size in _pool_bytes(reply) if size or pool in known}
        daemon.pools = reply, sizes
    return daemon.pools[1]


def _pool_bytes(reply: Any) -> Iterator[tuple[str, int]]:
    try:
        pools = reply["mempool"]["by_pool"]
        for pool, figures in pools.items():
            yield pool, int(figures["bytes"])
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise Malformed(f"{MEMPOOLS}: no bytes by pool") from exc
