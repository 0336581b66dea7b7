"""Tables of the setup: what loads cost, what recording cost, the environment."""

from collections.abc import Sequence

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.environment import environment_facts
from cephqos_loadgen.report.figures.observe import WHOLE
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import present
from cephqos_loadgen.report.tables.table import (
    Table,
    TableColumn,
    count,
    figure,
    plain_figure,
    text,
)


def cost_table(subject: Subject) -> Table:
    rows = [
        row
        for row in subject.loads(curves=False)
        if row.key.op == "total" and row.key.window == WHOLE
    ]
    wanted = present(rows, metrics.COST)
    lines = [
        (
            text(subject.label(row.key)),
            text(row.key.phase),
            *(figure(metric, row.value(metric.key)) for metric in wanted),
        )
        for row in (rows if wanted else [])
    ]
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn("Load", numeric=False),
        *(TableColumn(metric.title, metric.unit) for metric in wanted),
    )
    return Table(
        "cost",
        "CPU, memory and devices",
        columns,
        tuple(lines),
        "Means over repeats, while the load ran. OSD CPU is of all OSDs together. Devices are those"
        " that exporters see below OSDs.",
    )


def recording_table(subject: Subject) -> Table:
    lines = []
    for run in subject.runs:
        for observed in run.observations:
            record = observed.record
            row = next((row for row in run.rows if row.key.point == record.point), None)
            label = subject.label(row.key) if row else record.point
            lines.append(
                (
                    text(label),
                    count(record.repeat),
                    text(record.status),
                    plain_figure(record.cost.wall_seconds),
                    plain_figure(record.cost.core_share * 100),
                    plain_figure(record.cost.exporter_cpu_seconds),
                    count(record.metrics.scrapes),
                    count(sum(record.metrics.failures.values())),
                )
            )
    columns = (
        TableColumn("Point", numeric=False), TableColumn("Repeat"),
        TableColumn("Status", numeric=False),
        TableColumn("Time", "s"), TableColumn("Recording", "% of a core"),
        TableColumn("Exporter CPU", "s"),
        TableColumn("Samples"), TableColumn("Failed"),
    )  # fmt: skip
    return Table("repeats", "Repeats, and what recording cost", columns, tuple(lines))


def environment_table(runs: Sequence[ReportRun]) -> Table:
    """What the runs ran on."""
    facts = [environment_facts(run) for run in runs]
    names = list(dict.fromkeys(name for found in facts for name in found))
    lines = tuple(
        (text(name), *(text(found.get(name, "not recorded")) for found in facts)) for name in names
    )
    columns = (
        TableColumn("What", numeric=False),
        *(TableColumn(run.name, numeric=False) for run in runs),
    )
    return Table("environment", "Environment", columns, lines)
