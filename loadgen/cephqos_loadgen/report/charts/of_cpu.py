"""CPU by group of threads."""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.charts import plots
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.figures.cost import thread_groups
from cephqos_loadgen.report.figures.observe import WHOLE
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text

_GROUPS: Final = 5


def cpu_chart(subject: Subject) -> Iterator[Chart]:
    """CPU of all OSDs by group of threads, of each load of each point."""
    means = _cores_by_group(subject)
    totals: dict[str, float] = {}
    for groups in means.values():
        for group, value in groups.items():
            totals[group] = totals.get(group, 0.0) + value
    if not sum(totals.values()):
        return
    main = sorted(totals, key=lambda group: -totals[group])[:_GROUPS]
    rows = [
        [groups.get(g, 0.0) for g in main] + [sum(v for g, v in groups.items() if g not in main)]
        for groups in means.values()
    ]
    names = [*main, "all others"]
    title = "CPU of all OSDs by group of threads"
    drawing = plots.stacked(title, "cores", list(means), names, rows)
    data = tuple(
        (text(label), *(Cell(f"{v:.3f}", v) for v in row))
        for label, row in zip(means, rows, strict=True)
    )
    columns = (TableColumn("Load", numeric=False), *(TableColumn(name, "cores") for name in names))
    yield Chart("cpu", title, drawing, Table("chart-cpu", title, columns, data))


def _cores_by_group(subject: Subject) -> dict[str, dict[str, float]]:
    """By load, then by group of threads: the mean over the repeats."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in subject.runs:
        for observed in run.finished:
            row = next((r for r in run.rows if r.key.point == observed.record.point), None)
            for part in observed.loads:
                if part.op != "total" or part.window != WHOLE or part.several_depths or not row:
                    continue
                groups = found.setdefault(f"{subject.label(row.key)}: {part.phase}", {})
                spent = thread_groups(observed.samples, part.start, part.end)
                for group, seconds in spent.items():
                    groups.setdefault(group, []).append(seconds / (part.end - part.start))
    return {
        label: {group: sum(values) / len(values) for group, values in groups.items()}
        for label, groups in found.items()
        if groups
    }
