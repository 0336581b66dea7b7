"""CPU of the OSDs by group of threads, and which CPUs they may use, were planned for, and use."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.series import PlacementSeries
from cephqos_base.units import format_cpu_list, osd_order, parse_cpu_list
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.cost import thread_groups
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    depth_cell,
    plain_figure,
    text,
    text_columns,
)

_MOST_GROUPS: Final = 10  # that have a column; the others are added up


@dataclass(frozen=True, slots=True)
class _LoadCpu:
    """Cores of all OSDs together by group of threads, the mean over the repeats."""

    label: str
    phase: str
    depth: int | None  # of a curve
    cores: Mapping[str, float]


def threads_table(subject: Subject) -> Table:
    """A row per load, a column per group of threads, the busiest first."""
    loads = list(_cpu_of_loads(subject))
    curves = any(load.depth is not None for load in loads)
    totals: dict[str, float] = defaultdict(float)
    for load in loads:
        for group, cores in load.cores.items():
            totals[group] += cores
    used = [group for group, cores in totals.items() if cores]
    groups = sorted(used, key=lambda group: -totals[group])[:_MOST_GROUPS]
    lines = []
    for load in loads:
        cells = [text(load.label), text(load.phase)]
        cells += [depth_cell(load.depth)] if curves else []
        cells += [plain_figure(load.cores.get(group, 0.0)) for group in groups]
        others = sum(cores for group, cores in load.cores.items() if group not in groups)
        lines.append((*cells, plain_figure(others)))
    columns = (
        *text_columns("Point", "Load"),
        *([TableColumn("Depth")] if curves else []),
        *(TableColumn(name, "cores") for name in (*groups, "all others")),
    )
    title = "CPU of all OSDs by group of threads"
    return Table("threads", title, columns, tuple(lines), "Means over repeats, while the load ran.")


def _cpu_of_loads(subject: Subject) -> Iterator[_LoadCpu]:
    """Every load and step whose threads were recorded."""
    loads: dict[tuple[str, str, int | None], dict[str, list[float]]] = {}
    for run in subject.runs:
        for observed in run.finished:
            label = subject.point_label(run, observed.record.point)
            for part in observed.loads:
                if not part.is_whole or part.end <= part.start:
                    continue
                key = (label, part.phase, part.depth_of_curve)
                groups = loads.setdefault(key, defaultdict(list))
                for group, seconds in thread_groups(observed.samples, part.start, part.end).items():
                    groups[group].append(seconds / (part.end - part.start))
    for load, groups in loads.items():
        means = {group: sum(cores) / len(cores) for group, cores in groups.items()}
        if any(means.values()):
            yield _LoadCpu(*load, means)


_CPUS_COLUMNS: Final = tuple(
    text_columns("Point", "Who", "May use", "Planned", "Threads ran on", "Reactors")
)
_CPUS_NOTE: Final = (
    "Of the first finished repeat of each point that pins something or has reactors."
)


@dataclass(slots=True)
class _CpusOf:
    """The CPUs of one OSD or client."""

    allowed: set[int] = field(default_factory=set)  # by the kernel
    planned: set[int] = field(default_factory=set)  # by a phase `pin`, or the load's `cpus`
    threads: set[int] = field(default_factory=set)  # on which threads ran
    reactors: set[int] = field(default_factory=set)  # of Crimson

    def cells(self) -> Iterator[Cell]:
        for cpus in (self.allowed, self.planned, self.threads, self.reactors):
            yield text(format_cpu_list(sorted(cpus)) or "–")


def cpus_table(subject: Subject) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        for point, observed in run.first_repeats.items():
            label = text(subject.point_label(run, point))
            cpus_of = _cpus_of_osds_and_clients(run, observed)
            if _something_is_pinned(cpus_of):
                lines += [(label, text(name), *cpus.cells()) for name, cpus in cpus_of.items()]
    return Table("cpus", "CPUs of OSDs and clients", _CPUS_COLUMNS, tuple(lines), _CPUS_NOTE)


def _something_is_pinned(cpus_of: Mapping[str, _CpusOf]) -> bool:
    """Whether a plan or the kernel binds anything to a part of the CPUs that all of them have."""
    all_allowed = {cpu for cpus in cpus_of.values() for cpu in cpus.allowed}
    return any(
        cpus.planned or cpus.threads or cpus.reactors or cpus.allowed != all_allowed
        for cpus in cpus_of.values()
    )


def _cpus_of_osds_and_clients(run: ReportRun, observed: Observation) -> dict[str, _CpusOf]:
    """By OSD in the order of their numbers, then by load whose clients are pinned."""
    osds: dict[str, _CpusOf] = defaultdict(_CpusOf)
    for series in observed.samples.of(PlacementSeries.INFO):
        osds[series.labels.get("ceph_daemon", "")].allowed |= _parsed(series.labels.get("cpus", ""))
    for series in observed.samples.of(PlacementSeries.CPU_THREADS):
        ran = _parsed(series.labels.get("cpu", "")) if series.values.any() else set()
        osds[series.labels.get("ceph_daemon", "")].threads |= ran
    for series in observed.samples.of(PlacementSeries.REACTOR_CPU):
        osds[series.labels.get("ceph_daemon", "")].reactors |= set(map(int, series.values))
    for phase in observed.record.phases.values():
        if isinstance(phase.result, PinResult):
            for osd, cpus in phase.result.cpus.items():
                osds[osd].planned |= set(cpus)
    cpus_of = {name: osds[name] for name in sorted(osds, key=osd_order)}
    for point, phase_plan in run.planned_phases:
        client_cpus = phase_plan["action"].get("cpus")
        if point == observed.record.point and client_cpus:
            cpus_of[f"load {phase_plan['name']}"] = _CpusOf(planned=set(map(int, client_cpus)))
    return cpus_of


def _parsed(cpus: str) -> set[int]:
    try:
        return set(parse_cpu_list(cpus))
    except UsageError:  # of an archive that was changed
        return set()
