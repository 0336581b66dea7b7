"""Which CPUs OSDs and clients may use and do use, as a map of the host's CPUs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.series import PlacementSeries
from cephqos_base.units import parse_cpu_list
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.report.arrays.samples import Series
from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Table, text, text_columns

_MOST: Final = 12
_WIDTH: Final = 860.0
_LEFT: Final = 110.0
_ROW: Final = 20.0
_TOP: Final = 74.0


@dataclass(slots=True)
class Cores:
    """One OSD or client: CPUs that it may use, those planned for it, those seen in use."""

    name: str
    allowed: frozenset[int] = frozenset()
    planned: frozenset[int] = frozenset()
    used: dict[int, str] = field(default_factory=dict)  # by what

    def word(self, cpu: int) -> str:
        """What stands in the table for a CPU."""
        words = [self.used[cpu]] if cpu in self.used else []
        words += ["planned"] if cpu in self.planned else []
        return ", ".join(words) or ("allowed" if cpu in self.allowed else "")


def core_maps(subject: Subject) -> Iterator[Chart]:
    """Of each point that pins something or has reactors, the first finished repeat."""
    seen: set[tuple[str, str]] = set()
    for run in subject.runs:
        for observed in run.finished:
            key = (run.name, observed.record.point)
            if key in seen or len(seen) >= _MOST:
                continue
            cores = list(_cores(run, observed))
            row = next((row for row in run.rows if row.key.point == observed.record.point), None)
            if row and _tells_something(cores):
                seen.add(key)
                nodes = (run.environment.get("host") or {}).get("numa_cpus") or {}
                yield _chart(subject.label(row.key), len(seen), cores, nodes)


def _tells_something(cores: Sequence[Cores]) -> bool:
    """Whether anything is pinned: where all may use all, a map shows nothing."""
    everything = frozenset[int]().union(*(it.allowed for it in cores)) if cores else frozenset()
    return any(it.used or it.planned or it.allowed != everything for it in cores)


def _cores(run: ReportRun, observed: Observation) -> Iterator[Cores]:
    """OSDs in the order of their numbers, then clients that are pinned."""
    osds = _as_seen(observed)
    for phase in observed.record.phases.values():
        if isinstance(phase.result, PinResult):
            for osd, cpus in phase.result.cpus.items():
                osds.setdefault(osd, Cores(osd)).planned = frozenset(cpus)
    yield from sorted(osds.values(), key=lambda it: (len(it.name), it.name))
    for name, action in _actions(run.plan, observed.record.point):
        if action.get("cpus"):
            yield Cores(f"load {name}", planned=frozenset(map(int, action["cpus"])))


def _as_seen(observed: Observation) -> dict[str, Cores]:
    """OSDs by name, as their exporters saw them."""
    osds: dict[str, Cores] = {}

    def of(series: Series) -> Cores:
        name = series.labels.get("ceph_daemon", "")
        return osds.setdefault(name, Cores(name))

    for series in observed.samples.of(PlacementSeries.INFO):
        of(series).allowed |= frozenset(_cpus(series.labels.get("cpus", "")))
    for series in observed.samples.of(PlacementSeries.CPU_THREADS):
        for cpu in _cpus(series.labels.get("cpu", "")) if series.values.any() else ():
            of(series).used[cpu] = "threads"
    for series in observed.samples.of(PlacementSeries.REACTOR_CPU):
        for cpu in {int(value) for value in series.values}:
            of(series).used[cpu] = f"reactor {series.labels.get('reactor', '')}"
    return osds


def _actions(plan: Mapping[str, Any], point: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for planned in plan.get("points", []):
        if planned.get("name") == point:
            for phase in planned.get("phases", []):
                yield str(phase["name"]), phase["action"]


def _cpus(content: str) -> tuple[int, ...]:
    try:
        return parse_cpu_list(content)
    except UsageError:
        return ()


def _chart(label: str, number: int, cores: Sequence[Cores], nodes: Mapping[str, Any]) -> Chart:
    cpus = sorted(
        {cpu for it in cores for cpu in (*it.allowed, *it.planned, *it.used)}
        | {cpu for content in nodes.values() for cpu in _cpus(str(content))}
    )
    title = f"CPUs of OSDs and clients: {label}"
    columns = tuple(text_columns("Who", *(f"CPU {c}" for c in cpus)))
    rows = tuple((text(it.name), *(text(it.word(cpu)) for cpu in cpus)) for it in cores)
    name = f"cores-{number:02d}"
    table = Table(f"chart-{name}", title, columns, rows)
    return Chart(name, title, _drawing(title, cores, cpus, nodes), table)


def _drawing(
    title: str, cores: Sequence[Cores], cpus: Sequence[int], nodes: Mapping[str, Any]
) -> str:
    wide = min(30.0, (_WIDTH - _LEFT - 20) / max(1, len(cpus)))
    place = {cpu: _LEFT + wide * index for index, cpu in enumerate(cpus)}
    bottom = _TOP + _ROW * len(cores)
    body = [svg.text(8, 20, title, "title")]
    body.append(svg.text(8, 38, "light: may use; frame: planned; dark mark: used", "soft"))
    every = max(1, round(34 / wide))
    for index, cpu in enumerate(cpus):
        if index % every == 0:
            body.append(svg.text(place[cpu] + wide / 2, _TOP - 6, str(cpu), "soft middle"))
    for row, it in enumerate(cores):
        y = _TOP + _ROW * row
        body.append(svg.text(_LEFT - 8, y + 14, svg.cut(it.name, 14), "end"))
        for cpu in cpus:
            body += _cell(it, cpu, place[cpu], y, wide)
    for node, content in sorted(nodes.items()):
        own = [cpu for cpu in _cpus(str(content)) if cpu in place]
        if own and len(nodes) > 1:
            x = place[min(own)]
            body.append(svg.line(x - 1, _TOP - 20, x - 1, bottom, "axis"))
            body.append(svg.text(x + 3, bottom + 16, f"node {node}", "soft"))
    return svg.drawing(_WIDTH, bottom + 28, title, body)


def _cell(it: Cores, cpu: int, x: float, y: float, wide: float) -> Iterator[str]:
    tip = f"{it.name}, CPU {cpu}: {it.word(cpu) or 'not allowed'}"
    if cpu in it.allowed or cpu in it.planned:
        kind = "planned" if cpu in it.planned else "phase"
        yield svg.rect(x, y + 1, wide - 1, _ROW - 3, kind, tip)
    if cpu in it.used:
        series = 1 if it.used[cpu].startswith("reactor") else 0
        size = min(4.0, wide / 2.5)
        yield svg.marker(x + (wide - 1) / 2, y + _ROW / 2, series, tip, size)
