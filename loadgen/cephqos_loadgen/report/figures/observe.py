"""Figures of one repeat of an archive: loads by step, background work, and costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cephqos_base.series import (
    IMMEDIATE,
    ClusterSeries,
    PlacementSeries,
    ScrubSeries,
    TenantsSeries,
)
from cephqos_loadgen.advise.facts import FAMILIES as ADVICE_FAMILIES
from cephqos_loadgen.archive.reader import RecordedRepeat
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.record.files import read_lines
from cephqos_loadgen.record.layout import CLUSTER_FILE, HOST_FILE, INTERVALS_FILE, METRICS_FILE
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.attained import FAMILIES as ATTAINED_FAMILIES
from cephqos_loadgen.report.figures.attained import kept_by_clients
from cephqos_loadgen.report.figures.bins import Bins
from cephqos_loadgen.report.figures.cost import FAMILIES as COST_FAMILIES
from cephqos_loadgen.report.figures.cost import cost_of
from cephqos_loadgen.report.figures.intervals import Intervals, Mask, read_intervals
from cephqos_loadgen.report.figures.samples import Samples, read_samples
from cephqos_loadgen.report.figures.statistics import Floats
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.host import HostUse, step_name
from cephqos_loadgen.results.phase import LoadResult, PhaseRecord, Step
from cephqos_loadgen.results.repeat import RepeatRecord

Stretch = tuple[float, float]

# The parts of a load that rows are about.
WHOLE = "all of it"
DURING = {"scrub": "during scrub", "recovery": "during recovery"}
QUIET = "without either"
# Shorter parts say nothing about a load.
_LEAST_SECONDS = 2.0
_RECOVERING = ("recovering", "backfilling")
FAMILIES = COST_FAMILIES | ATTAINED_FAMILIES | ADVICE_FAMILIES | {ScrubSeries.POOL_OBJECTS}
FAMILIES |= {TenantsSeries.SECONDS, TenantsSeries.SAMPLED, ClusterSeries.POOL_INFO}
FAMILIES |= {PlacementSeries.INFO, PlacementSeries.REACTOR_CPU, PlacementSeries.CPU_THREADS}


@dataclass(frozen=True, slots=True, eq=False)
class LoadPart:
    """A load at one depth, or the part of it in which background work ran."""

    phase: str
    depth: int
    op: str  # total, read, write
    window: str
    several_depths: bool
    start: float
    end: float
    seconds: float
    ios: int
    iops: float
    bytes_per_second: float
    mean_seconds: float
    deviation_seconds: float | None
    bins: Bins
    cost: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class ObservedCause:
    """When one cause was the main one of a class on an OSD; `by` is the culprit, if any."""

    osd: str
    work: str
    cause: str
    by: str
    times: Floats  # seconds since the epoch, one per evaluation

    @property
    def name(self) -> str:
        return f"{self.cause} by {self.by}" if self.by not in ("", IMMEDIATE) else self.cause


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """All that a report takes from one repeat."""

    record: RepeatRecord
    loads: tuple[LoadPart, ...]
    background: Mapping[str, Mapping[str, float]]  # by phase
    stretches: Mapping[str, Sequence[Stretch]]  # when scrub and recovery were active
    intervals: Intervals
    samples: Samples
    host: Mapping[str, HostUse]
    looks: Sequence[Mapping[str, Any]]  # one look at the cluster per second
    operations: Sequence[Mapping[str, Any]]  # slow ones, of an exporter's own recording
    absent: tuple[str, ...]  # files that the archive lacks
    causes: tuple[ObservedCause, ...] | None = None  # None: rules were not evaluated

    @property
    def hosts_of_loads(self) -> list[HostUse]:
        """What the host did in each phase with clients."""
        phases = dict.fromkeys(part.phase for part in self.loads)
        return [self.host[phase] for phase in phases if phase in self.host]


def observe(repeat: RecordedRepeat, hosts: Mapping[str, str]) -> Observation:
    """Read one repeat, and take its figures. `hosts` are by OSD."""
    folder, record = repeat.folder, repeat.record
    names = (INTERVALS_FILE, METRICS_FILE, HOST_FILE, CLUSTER_FILE)
    absent = tuple(name for name in names if not (folder / name).exists())
    lines = read_lines(folder / names[0]) if names[0] not in absent else iter(())
    intervals = read_intervals(lines)
    samples = read_samples(folder / names[1], FAMILIES)
    host = repeat.host() if names[2] not in absent else {}
    looks = repeat.cluster() if names[3] not in absent else []
    stretches = {
        "scrub": _merge(_phases_of(record, "scrub")),
        "recovery": _merge(recovering(looks)),
    }
    loads = tuple(_loads(record, intervals, stretches, samples, host, hosts))
    background = {name: _background(phase) for name, phase in record.phases.items()}
    most = max((_misplaced(look) for look in looks), default=0)
    for figures in background.values():
        if metrics.RECOVERY_OBJECTS.key in figures:
            figures[metrics.MISPLACED.key] = float(most)
    return Observation(
        record=record,
        loads=loads,
        background={name: figures for name, figures in background.items() if figures},
        stretches=stretches,
        intervals=intervals,
        samples=samples,
        host=host,
        looks=looks,
        operations=repeat.operations(),
        absent=absent,
    )


# -- when background work was active ---------------------------------------------------------------


def _phases_of(record: RepeatRecord, kind: str) -> Iterator[Stretch]:
    for phase in record.phases.values():
        if phase.kind == kind:
            yield phase.start_unix_seconds, phase.end_unix_seconds


def recovering(looks: Sequence[Mapping[str, Any]]) -> Iterator[Stretch]:
    """From each look that found recovery or backfill to the next look."""
    for look, following in pairwise(looks):
        states = look.get("pgmap", {}).get("pgs_by_state", [])
        parts = {part for state in states for part in str(state["state_name"]).split("+")}
        if parts.intersection(_RECOVERING):
            yield float(look["time"]), float(following["time"])


def _merge(stretches: Iterator[Stretch]) -> list[Stretch]:
    found: list[Stretch] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _misplaced(look: Mapping[str, Any]) -> int:
    pools = look.get("pools", {}).values()
    return sum(int(pool.get("num_objects_misplaced", 0)) for pool in pools)


# -- loads -----------------------------------------------------------------------------------------


def _loads(
    record: RepeatRecord,
    intervals: Intervals,
    stretches: Mapping[str, Sequence[Stretch]],
    samples: Samples,
    host: Mapping[str, HostUse],
    hosts: Mapping[str, str],
) -> Iterator[LoadPart]:
    for name, phase in record.phases.items():
        result = phase.result
        if not isinstance(result, LoadResult):
            continue
        for number, step in enumerate(result.steps, start=1):
            clients = _clients(name, step, number, host)
            cost = cost_of(step, samples, clients, hosts)
            cost |= kept_by_clients(samples, *step.counted)
            whole = _whole(name, step, result.is_curve, cost)
            yield whole
            if step.read and step.write:
                for op, figures in (("read", step.read), ("write", step.write)):
                    yield replace(whole, op=op, cost={}, **_figures(figures))
            chosen = intervals.of(name, step.depth)
            chosen &= intervals.within([step.counted])
            yield from _windows(whole, chosen, intervals, stretches)


def _clients(phase: str, step: Step, number: int, host: Mapping[str, HostUse]) -> HostUse | None:
    """CPU of the clients of one step: their processes are PHASE.CLIENT, then PHASE.CLIENT.2 …

    If the step was recorded by itself, what they used in its ramp is not included.
    """
    use = host.get(step_name(phase, step.depth), host.get(phase))
    if use is None:
        return None
    own = {
        name: process
        for name, process in use.processes.items()
        if name.startswith(f"{phase}.") and _step_of(name.removeprefix(f"{phase}.")) == number
    }
    return HostUse(use.seconds, use.cpu, use.disks, own) if own else None


def _step_of(client: str) -> int:
    """`client.0` is of the first step, `client.0.2` of the second."""
    parts = client.split(".")
    return int(parts[2]) if len(parts) == 3 and parts[2].isdigit() else 1


def _whole(phase: str, step: Step, several_depths: bool, cost: Mapping[str, float]) -> LoadPart:
    return LoadPart(
        phase=phase,
        depth=step.depth,
        op="total",
        window=WHOLE,
        several_depths=several_depths,
        start=step.counted[0],
        end=step.counted[1],
        seconds=step.seconds,
        cost=cost,
        **_figures(step.total),
    )


def _figures(figures: LoadFigures) -> dict[str, Any]:
    return {
        "ios": figures.ios,
        "iops": figures.iops,
        "bytes_per_second": figures.bytes_per_second,
        "mean_seconds": figures.latency_mean_seconds,
        "deviation_seconds": figures.latency_deviation_seconds,
        "bins": Bins.of(figures.latency_bins_ns),
    }


def _windows(
    whole: LoadPart,
    chosen: Mask,
    intervals: Intervals,
    stretches: Mapping[str, Sequence[Stretch]],
) -> Iterator[LoadPart]:
    """The parts of a load with and without background work; none if there was no such work."""
    busy = np.zeros(len(chosen), np.bool_)
    windows: dict[str, Mask] = {}
    for work, found in stretches.items():
        active = chosen & intervals.within(found)
        busy |= active
        windows[DURING[work]] = active
    if not busy.any():
        return
    windows[QUIET] = chosen & ~busy
    for window, mask in windows.items():
        part = _part(whole, window, mask, intervals)
        if part and part.seconds >= _LEAST_SECONDS:
            yield part


def _part(whole: LoadPart, window: str, mask: Mask, intervals: Intervals) -> LoadPart | None:
    ios = int(intervals.ios[mask].sum())
    if not ios:
        return None
    bins = intervals.bins(mask)
    jobs = len(np.unique(intervals.job[mask]))
    return replace(
        whole,
        window=window,
        seconds=float(intervals.seconds[mask].sum()) / jobs,
        ios=ios,
        iops=intervals.rate(mask),
        bytes_per_second=intervals.bytes_per_second(mask),
        mean_seconds=float(intervals.latency_sum[mask].sum()) / ios,
        deviation_seconds=bins.deviation_seconds,
        bins=bins,
        cost={},
    )


# -- background work -------------------------------------------------------------------------------


def _background(phase: PhaseRecord) -> dict[str, float]:
    """Scrub and recovery of one phase; empty if it did neither."""
    found: dict[str, float] = {}
    scrub = phase.result
    if isinstance(scrub, ScrubResult):
        found[metrics.SCRUB_SECONDS.key] = scrub.seconds
        found[metrics.SCRUB_OBJECTS.key] = float(scrub.objects)
        found[metrics.SCRUB_AT_ONCE.key] = float(scrub.scrubbing_at_once)
        if scrub.seconds > 0:
            found[metrics.SCRUB_BANDWIDTH.key] = scrub.bytes_per_second
            found[metrics.SCRUB_OBJECT_RATE.key] = scrub.objects_per_second
    recovery = phase.recovery
    if recovery and recovery.objects:
        found[metrics.RECOVERY_OBJECTS.key] = float(recovery.objects)
        if recovery.objects_per_second is not None and recovery.bytes_per_second is not None:
            found[metrics.RECOVERY_OBJECT_RATE.key] = recovery.objects_per_second
            found[metrics.RECOVERY_BANDWIDTH.key] = recovery.bytes_per_second
        if recovery.finished:
            found[metrics.RECOVERY_SECONDS.key] = recovery.seconds
    return found
