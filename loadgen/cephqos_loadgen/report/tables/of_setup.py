"""Tables of the setup: what loads cost, what recording cost, the environment."""

from collections.abc import Sequence
from typing import Final

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.environment import environment_facts
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_loads import figure_column, name_columns, recorded_of
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    count,
    plain_figure,
    table_of,
    text,
    text_columns,
)
from cephqos_loadgen.results.host_load import cpu_by_others, disks_by_others
from cephqos_loadgen.run_recording.layout import RECORDED


def cost_table(subject: Subject) -> Table:
    rows = subject.main_loads
    shown = recorded_of(rows, metrics.COST)
    return table_of(
        "cost",
        "CPU, memory and devices",
        rows if shown else [],
        [*name_columns(subject), *map(figure_column, shown)],
        "Means over repeats, while the load ran. OSD CPU is of all OSDs together. Devices are those"
        " that exporters see below OSDs.",
    )


def recording_table(subject: Subject) -> Table:
    lines = [
        _repeat_line(subject.point_label(run, observed.record.point), observed)
        for run in subject.runs
        for observed in run.observations
        if observed.record.point != RECORDED  # an exporter's own recording: its cost is not known
    ]
    return Table(
        "repeats",
        "Repeats: what recording cost, and what others had of the host",
        _REPEAT_COLUMNS,
        tuple(lines),
        "Others: all processes but those of the run and of its cluster, while a load ran, the most"
        " of all loads. Disks: those below the OSDs, at least.",
    )


_REPEAT_COLUMNS: Final = (
    TableColumn("Point", numeric=False),
    TableColumn("Repeat"),
    TableColumn("Status", numeric=False),
    TableColumn("Time", "s"),
    TableColumn("Recording", "% of a core"),
    TableColumn("Exporter CPU", "s"),
    TableColumn("Samples"),
    TableColumn("Failed"),
    TableColumn("CPU by others", "%"),
    TableColumn("Steal", "%"),
    TableColumn("Disks by others", "% of time"),
)


def _repeat_line(label: str, observed: Observation) -> tuple[Cell, ...]:
    record = observed.record
    return (
        text(label),
        count(record.repeat),
        text(record.status),
        plain_figure(record.cost.wall_seconds),
        plain_figure(record.cost.core_share * 100),
        plain_figure(record.cost.exporter_cpu_seconds),
        count(record.metrics.scrapes),
        count(sum(record.metrics.failures.values())),
        *_by_others(observed),
    )


def _by_others(observed: Observation) -> list[Cell]:
    """The most that others had of the host's CPUs and of the OSDs' disks while a load ran."""
    cpus = [cpu for use in observed.hosts_of_loads if (cpu := cpu_by_others(use))]
    disks = [disk for use in observed.hosts_of_loads if (disk := disks_by_others(use))]
    shares = (
        max((cpu.others for cpu in cpus), default=None),
        max((cpu.stolen for cpu in cpus), default=None),
        max((disk.time_share for disk in disks), default=None),
    )
    return [plain_figure(None if share is None else share * 100) for share in shares]


def environment_table(runs: Sequence[ReportRun]) -> Table:
    """What the runs ran on."""
    facts_by_run = [environment_facts(run) for run in runs]
    names = list(dict.fromkeys(name for facts in facts_by_run for name in facts))
    lines = tuple(
        (text(name), *(text(facts.get(name, "not recorded")) for facts in facts_by_run))
        for name in names
    )
    columns = tuple(text_columns("What", *(run.name for run in runs)))
    return Table("environment", "Environment", columns, lines)
