"""A throughput against a baseline: whether a share of it was kept, and whether that can be said."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from cephqos_loadgen.report.arrays.statistics import ChangeInterval, change
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import LOAD, ReportRow, ReportRun
from cephqos_loadgen.report.figures.loads import WHOLE

Outcome = Literal["kept", "broken", "too close to call", "not put to the test", "not known"]
# Clients alone are not slower than clients beside other work. If a load did more than its baseline
# by more than this, the baseline was disturbed or belongs to another load.
_SLACK: Final = 0.05


def against_baseline(
    row: ReportRow, baseline: Sequence[float], *, exact: bool = False
) -> ChangeInterval:
    """Throughput of a load. A baseline that was given as a figure is exact."""
    return change(row.figures[metrics.IOPS.key].samples, baseline, exact_reference=exact)


def is_no_baseline(change_of_load: ChangeInterval) -> bool:
    """The load did clearly more than its baseline."""
    return change_of_load.ratio is not None and change_of_load.ratio > _SLACK


def outcome(moved: ChangeInterval, share: float) -> Outcome:
    """Whether the load kept this share of its baseline, beyond noise."""
    if is_no_baseline(moved):
        return "not put to the test"
    if moved.low is None or moved.high is None:
        return "not known"
    if 1 + moved.low >= share:
        return "kept"
    return "broken" if 1 + moved.high < share else "too close to call"


def alone_phases(run: ReportRun) -> Mapping[tuple[str, str], str]:
    """By point and phase: the earlier phase with which the plan compares its load."""
    return {
        (point, str(phase["name"])): phase["against"]
        for point, phase in run.planned_phases
        if phase.get("against")
    }


def pairs(run: ReportRun) -> list[tuple[ReportRow, ReportRow]]:
    """Each load and its parts, with the load alone of the same point, if the plan names one."""
    names = alone_phases(run)
    whole = {
        (row.key.point, row.key.phase): row
        for row in run.rows
        if row.key.kind == LOAD and (row.key.op, row.key.window) == ("total", WHOLE)
    }
    both = []
    for row in run.rows:
        alone = whole.get((row.key.point, names.get((row.key.point, row.key.phase), "")))
        if alone and row.key.kind == LOAD and row.key.op == "total":
            both.append((row, alone))
    return both
