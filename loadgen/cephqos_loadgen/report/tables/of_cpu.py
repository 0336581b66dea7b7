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

_GROUPS: Final = 10


@dataclass(frozen=True, slots=True)
class _LoadCpu:
    """Cores of all OSDs together by group of threads, the mean over the repeats."""

    label: str
    phase: str
    depth: int | None  # of a curve
    cores: Mapping[str, float]


def threads_table(subject: Subject) -> Table:
    loads = list(_cpu_of_loads(subject))
    curves = any(load.depth is not None for load in loads)
    totals: dict[str, float] = defaultdict(float)
    for load in loads:
        for group, cores in load.cores.items():
            totals[group] += cores
    groups = sorted(filter(totals.get, totals), key=lambda group: -totals[group])[:_GROUPS]
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
        if any(map(any, groups.values())):
            yield _LoadCpu(
                *load, {group: sum(values) / len(values) for group, values in groups.items()}
            )


# -- which CPUs ------------------------------------------------------------------------------------

_PLACES: Final = tuple(
    text_columns("Point", "Who", "May use", "Planned", "Threads ran on", "Reactors")
)
_PLACES_NOTE: Final = (
    "Of the first finished repeat of each point that pins something or has reactors."
)


@dataclass(slots=True)
class _CpusOf:
    """The CPUs of one OSD or client."""

    allowed: set[int] = field(default_factory=set)
    planned: set[int] = field(default_factory=set)
    threads: set[int] = field(default_factory=set)
    reactors: set[int] = field(default_factory=set)

    def cells(self) -> Iterator[Cell]:
        for cpus in (self.allowed, self.planned, self.threads, self.reactors):
            yield text(format_cpu_list(sorted(cpus)) or "–")


def cpus_table(subject: Subject) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        for point, observed in run.first_repeats.items():
            label = text(subject.point_label(run, point))
            own = _cpus(run, observed)
            if _tells_something(own):
                lines += [(label, text(name), *own[name].cells()) for name in own]
    return Table("cpus", "CPUs of OSDs and clients", _PLACES, tuple(lines), _PLACES_NOTE)


def _tells_something(own: dict[str, _CpusOf]) -> bool:
    """Whether anything is pinned."""
    everything = {cpu for its in own.values() for cpu in its.allowed}
    return any(
        its.planned or its.threads or its.reactors or its.allowed != everything
        for its in own.values()
    )


def _cpus(run: ReportRun, observed: Observation) -> dict[str, _CpusOf]:
    """By OSD in the order of their numbers, then by client that is pinned."""
    osds: dict[str, _CpusOf] = {}
    for series in observed.samples.of(PlacementSeries.INFO):
        its = osds.setdefault(series.labels.get("ceph_daemon", ""), _CpusOf())
        its.allowed |= _parsed(series.labels.get("cpus", ""))
    for series in observed.samples.of(PlacementSeries.CPU_THREADS):
        its = osds.setdefault(series.labels.get("ceph_daemon", ""), _CpusOf())
        its.threads |= _parsed(series.labels.get("cpu", "")) if series.values.any() else set()
    for series in observed.samples.of(PlacementSeries.REACTOR_CPU):
        its = osds.setdefault(series.labels.get("ceph_daemon", ""), _CpusOf())
        its.reactors |= set(map(int, series.values))
    for phase in observed.record.phases.values():
        if isinstance(phase.result, PinResult):
            for osd, cpus in phase.result.cpus.items():
                osds.setdefault(osd, _CpusOf()).planned |= set(cpus)
    own = {name: osds[name] for name in sorted(osds, key=osd_order)}
    for point, planned in run.planned_phases:
        own_cpus = planned["action"].get("cpus")
        if point == observed.record.point and own_cpus:
            own[f"load {planned['name']}"] = _CpusOf(planned=set(map(int, own_cpus)))
    return own


def _parsed(cpus: str) -> set[int]:
    try:
        return set(parse_cpu_list(cpus))
    except UsageError:  # of an archive that was changed
        return set()
