"""The slowest operations that exporters recorded by themselves, and what each waited for."""

import time
from typing import Final

from cephqos_loadgen.recorded_pieces.slow_operations import longest_wait
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, plain_figure, text

_SHOWN: Final = 20
_NOTE: Final = (
    f"At most {_SHOWN} of a run, the slowest first. operations.jsonl in the archive has more, with"
    " all their events."
)
_COLUMNS: Final = (
    TableColumn("Began, UTC", numeric=False),
    TableColumn("OSD", numeric=False),
    TableColumn("Took", "s"),
    TableColumn("Longest wait", "s"),
    TableColumn("Waited after", numeric=False),
    TableColumn("Operation", numeric=False),
)


def operations_table(subject: Subject) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        operations = [op for observed in run.finished for op in observed.operations]
        for op in sorted(operations, key=lambda op: -op["seconds"])[:_SHOWN]:
            event, seconds = longest_wait(op)
            began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(op["started_unix_seconds"]))
            names = text(began), text(op["ceph_daemon"])
            figures = plain_figure(op["seconds"]), plain_figure(seconds)
            lines.append((*names, *figures, text(event), text(op["description"])))
    return Table("operations", "Slowest operations", _COLUMNS, tuple(lines), _NOTE)
