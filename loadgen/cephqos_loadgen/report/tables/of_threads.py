"""CPU of the OSDs by group of threads: of each load, and of each step of a curve."""

from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.report.figures.cost import thread_groups
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    depth_cell,
    text,
    text_columns,
)
from cephqos_loadgen.report.words import number

_GROUPS: Final = 10
OTHERS: Final = "all others"


@dataclass(frozen=True, slots=True)
class LoadCpu:
    """Cores of all OSDs together by group of threads, the mean over the repeats."""

    label: str
    phase: str
    depth: int | None  # of a curve
    cores: dict[str, float]

    def largest(self, groups: list[str]) -> list[float]:
        """Those of these groups, then the sum of all others."""
        rest = sum(value for group, value in self.cores.items() if group not in groups)
        return [*(self.cores.get(group, 0.0) for group in groups), rest]


def cpu_of_loads(subject: Subject) -> list[LoadCpu]:
    """Every load and step whose threads were recorded."""
    loads: dict[tuple[str, str, int | None], dict[str, list[float]]] = {}
    for run in subject.runs:
        for observed in run.finished:
            row = next((r for r in run.rows if r.key.point == observed.record.point), None)
            for part in observed.loads:
                if part.op != "total" or part.window != WHOLE or part.end <= part.start or not row:
                    continue
                depth = part.depth if part.several_depths else None
                groups = loads.setdefault((subject.label(row.key), part.phase, depth), {})
                spent = thread_groups(observed.samples, part.start, part.end)
                for group, seconds in spent.items():
                    groups.setdefault(group, []).append(seconds / (part.end - part.start))
    return [
        LoadCpu(*load, {group: sum(values) / len(values) for group, values in groups.items()})
        for load, groups in loads.items()
        if any(map(any, groups.values()))
    ]


def largest_groups(loads: list[LoadCpu], most: int) -> list[str]:
    """The groups with the most CPU time of all loads together."""
    totals: dict[str, float] = {}
    for load in loads:
        for group, cores in load.cores.items():
            totals[group] = totals.get(group, 0.0) + cores
    used = (group for group, cores in totals.items() if cores)
    return sorted(used, key=lambda group: -totals[group])[:most]


def threads_table(subject: Subject) -> Table:
    loads = cpu_of_loads(subject)
    curves = any(load.depth is not None for load in loads)
    groups = largest_groups(loads, _GROUPS)
    lines = [
        (
            text(load.label),
            text(load.phase),
            *([depth_cell(load.depth)] if curves else []),
            *(Cell(number(cores), cores) for cores in load.largest(groups)),
        )
        for load in loads
    ]
    columns = (
        *text_columns("Point", "Load"),
        *([TableColumn("Depth")] if curves else []),
        *(TableColumn(name, "cores") for name in (*groups, OTHERS)),
    )
    title = "CPU of all OSDs by group of threads"
    return Table("threads", title, columns, tuple(lines), "Means over repeats, while the load ran.")
