"""CPU by group of threads."""

from collections.abc import Iterator
from typing import Final

from cephqos_loadgen.report.charts import plots
from cephqos_loadgen.report.document import Chart
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_threads import OTHERS, cpu_of_loads, largest_groups
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text

_GROUPS: Final = 5


def cpu_chart(subject: Subject) -> Iterator[Chart]:
    """CPU of all OSDs by group of threads, of each load of one depth of each point."""
    loads = [load for load in cpu_of_loads(subject) if load.depth is None]
    if not loads:
        return
    main = largest_groups(loads, _GROUPS)
    labels = [f"{load.label}: {load.phase}" for load in loads]
    rows = [load.largest(main) for load in loads]
    names = [*main, OTHERS]
    title = "CPU of all OSDs by group of threads"
    drawing = plots.stacked(title, "cores", labels, names, rows)
    data = tuple(
        (text(label), *(Cell(f"{v:.3f}", v) for v in row))
        for label, row in zip(labels, rows, strict=True)
    )
    columns = (TableColumn("Load", numeric=False), *(TableColumn(name, "cores") for name in names))
    yield Chart("cpu", title, drawing, Table("chart-cpu", title, columns, data))
