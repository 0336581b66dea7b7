"""Reads one repeat of an archive and takes its figures: `observe` makes an `Observation`, from
which tables, charts and caveats of a report are made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cephqos_base.series import (
    IMMEDIATE,
    AccountSeries,
    ClusterSeries,
    PlacementSeries,
    ScrubSeries,
    TenantsSeries,
)
from cephqos_loadgen.advise.facts import FAMILIES as ADVICE_FAMILIES
from cephqos_loadgen.archive.reader import RecordedRepeat
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.report.arrays.intervals import Intervals, read_intervals
from cephqos_loadgen.report.arrays.samples import Samples, read_samples
from cephqos_loadgen.report.arrays.statistics import Floats
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.attained import FAMILIES as ATTAINED_FAMILIES
from cephqos_loadgen.report.figures.cost import FAMILIES as COST_FAMILIES
from cephqos_loadgen.report.figures.loads import LoadPart, Stretch, loads_of
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.phase import PhaseRecord
from cephqos_loadgen.results.repeat import RepeatRecord
from cephqos_loadgen.run_recording.files import read_lines
from cephqos_loadgen.run_recording.layout import (
    CLUSTER_FILE,
    HOST_FILE,
    INTERVALS_FILE,
    METRICS_FILE,
)

_RECOVERING = ("recovering", "backfilling")
# What is read of `metrics.columns`, which has many more families.
FAMILIES = COST_FAMILIES | ATTAINED_FAMILIES | ADVICE_FAMILIES | {ScrubSeries.POOL_OBJECTS}
FAMILIES |= {TenantsSeries.SECONDS, TenantsSeries.SQUARES, ClusterSeries.POOL_INFO}
FAMILIES |= {AccountSeries.SECONDS}
FAMILIES |= {PlacementSeries.INFO, PlacementSeries.REACTOR_CPU, PlacementSeries.CPU_THREADS}


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
    host: Mapping[str, HostUse]  # by phase, or by step (see `results.host.step_name`)
    looks: Sequence[Mapping[str, Any]]  # one look at the cluster per second
    operations: Sequence[Mapping[str, Any]]  # slow ones, of an exporter's own recording
    absent: tuple[str, ...]  # files that the archive lacks
    causes: tuple[ObservedCause, ...] | None = None  # None: rules were not evaluated

    @property
    def where(self) -> str:
        return f"{self.record.point}, repeat {self.record.repeat}"

    @property
    def hosts_of_loads(self) -> list[HostUse]:
        """What the host did in each phase with clients."""
        phases = dict.fromkeys(part.phase for part in self.loads)
        return [self.host[phase] for phase in phases if phase in self.host]


def observe(repeat: RecordedRepeat, hosts: Mapping[str, str]) -> Observation:
    """Read one repeat, and take its figures. `hosts` are the OSDs' host names, by OSD."""
    folder, record = repeat.folder, repeat.record
    needed = (INTERVALS_FILE, METRICS_FILE, HOST_FILE, CLUSTER_FILE)
    absent = tuple(name for name in needed if not (folder / name).exists())
    lines = read_lines(folder / INTERVALS_FILE) if INTERVALS_FILE not in absent else iter(())
    intervals = read_intervals(lines)
    samples = read_samples(folder / METRICS_FILE, FAMILIES)
    host = repeat.host() if HOST_FILE not in absent else {}
    looks = repeat.cluster() if CLUSTER_FILE not in absent else []
    phases = record.phases.values()
    scrubs = ((it.start_unix_seconds, it.end_unix_seconds) for it in phases if it.kind == "scrub")
    stretches = {
        "scrub": _merge(scrubs),
        "recovery": _merge(recovering(looks)),
    }
    loads = tuple(loads_of(record, intervals, stretches, samples, host, hosts))
    background = {name: _background(phase) for name, phase in record.phases.items()}
    most_misplaced = max((_misplaced(look) for look in looks), default=0)
    for figures in background.values():
        if metrics.RECOVERY_OBJECTS.key in figures:
            figures[metrics.MISPLACED.key] = float(most_misplaced)
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


def recovering(looks: Sequence[Mapping[str, Any]]) -> Iterator[Stretch]:
    """From each look that found recovery or backfill to the next look."""
    for look, following in pairwise(looks):
        states = look.get("pgmap", {}).get("pgs_by_state", [])
        # A state reads `active+undersized+degraded+remapped+backfilling`.
        words = {word for state in states for word in str(state["state_name"]).split("+")}
        if words.intersection(_RECOVERING):
            yield float(look["time"]), float(following["time"])


def _merge(stretches: Iterator[Stretch]) -> list[Stretch]:
    """Those that touch or overlap are one."""
    merged: list[Stretch] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _misplaced(look: Mapping[str, Any]) -> int:
    pools = look.get("pools", {}).values()
    return sum(int(pool.get("num_objects_misplaced", 0)) for pool in pools)


def _background(phase: PhaseRecord) -> dict[str, float]:
    """Scrub and recovery of one phase; empty if it did neither."""
    figures: dict[str, float] = {}
    scrub = phase.result
    if isinstance(scrub, ScrubResult):
        figures[metrics.SCRUB_SECONDS.key] = scrub.seconds
        figures[metrics.SCRUB_OBJECTS.key] = float(scrub.objects)
        figures[metrics.SCRUB_AT_ONCE.key] = float(scrub.scrubbing_at_once)
        if scrub.seconds > 0:
            figures[metrics.SCRUB_BANDWIDTH.key] = scrub.bytes_per_second
            figures[metrics.SCRUB_OBJECT_RATE.key] = scrub.objects_per_second
    recovery = phase.recovery
    if recovery and recovery.objects:
        figures[metrics.RECOVERY_OBJECTS.key] = float(recovery.objects)
        if recovery.objects_per_second is not None and recovery.bytes_per_second is not None:
            figures[metrics.RECOVERY_OBJECT_RATE.key] = recovery.objects_per_second
            figures[metrics.RECOVERY_BANDWIDTH.key] = recovery.bytes_per_second
        if recovery.finished:
            figures[metrics.RECOVERY_SECONDS.key] = recovery.seconds
    return figures
