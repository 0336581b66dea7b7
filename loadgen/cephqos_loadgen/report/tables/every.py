"""All tables of a report, in the order of the page."""

from collections.abc import Iterator

from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_advice import advice_table
from cephqos_loadgen.report.tables.of_axes import axis_tables
from cephqos_loadgen.report.tables.of_changes import change_tables
from cephqos_loadgen.report.tables.of_cpu import cpus_table, threads_table
from cephqos_loadgen.report.tables.of_loads import background_table, curves_table, loads_table
from cephqos_loadgen.report.tables.of_operations import operations_table
from cephqos_loadgen.report.tables.of_reservations import reservations_table
from cephqos_loadgen.report.tables.of_setup import cost_table, environment_table, recording_table
from cephqos_loadgen.report.tables.of_tenants import tenants_table
from cephqos_loadgen.report.tables.of_waiting import waiting_table
from cephqos_loadgen.report.tables.table import Table


def tables(subject: Subject) -> Iterator[Table]:
    """The loads first, then how they differ, what else ran, and what stands behind them."""
    built = (
        loads_table(subject),
        *change_tables(subject),
        *axis_tables(subject),
        background_table(subject),
        curves_table(subject),
        reservations_table(subject),
        waiting_table(subject),
        advice_table(subject),
        tenants_table(subject),
        operations_table(subject),
        cost_table(subject),
        threads_table(subject),
        cpus_table(subject),
        recording_table(subject),
    )
    yield from (table for table in built if table.rows)
    yield environment_table(subject.runs)
