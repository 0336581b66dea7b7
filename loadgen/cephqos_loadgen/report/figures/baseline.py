"""A throughput against a baseline: whether a share of it was kept, and whether that can be said."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from cephqos_loadgen.report.arrays.statistics import ChangeInterval, change
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import LOAD, ReportRow, ReportRun
from cephqos_loadgen.report.figures.loads import WHOLE

Outcome = Literal["kept", "broken", "too close to call", "not put to the test", "not known"]
# Clients alone are not slower than clients beside other work. If a load did more than its baseline
# by more than this share, the baseline was disturbed or belongs to another load.
_SLACK: Final = 0.05


class LoadWithAlone(NamedTuple):
    """A load beside other work, and the same load alone."""

    row: ReportRow
    alone: ReportRow


def against_baseline(
    row: ReportRow, baseline: Sequence[float], *, exact: bool = False
) -> ChangeInterval:
    """The change of a load's throughput from the baseline, which has a figure per repeat. One that
    a user gave as a number is exact."""
    return change(row.figures[metrics.IOPS.key].samples, baseline, exact_reference=exact)


def is_no_baseline(change_of_load: ChangeInterval) -> bool:
    """Whether the load did clearly more than its baseline."""
    return change_of_load.ratio is not None and change_of_load.ratio > _SLACK


def outcome(change_of_load: ChangeInterval, share: float) -> Outcome:
    """Whether the load kept this share of its baseline, beyond noise."""
    low, high = change_of_load.low, change_of_load.high
    if is_no_baseline(change_of_load):
        return "not put to the test"
    if low is None or high is None:
        return "not known"
    if 1 + low >= share:
        return "kept"
    return "broken" if 1 + high < share else "too close to call"


def alone_phases(run: ReportRun) -> Mapping[tuple[str, str], str]:
    """By point and phase: the earlier phase with which the plan compares its load."""
    return {
        (point, str(phase["name"])): phase["against"]
        for point, phase in run.planned_phases
        if phase.get("against")
    }


def loads_with_alone(run: ReportRun) -> list[LoadWithAlone]:
    """Each load and its parts, with the load alone of the same point, if the plan names one."""
    alone_of = alone_phases(run)
    whole_loads = {
        (row.key.point, row.key.phase): row
        for row in run.rows
        if row.key.kind == LOAD and (row.key.op, row.key.window) == ("total", WHOLE)
    }
    pairs = []
    for row in run.rows:
        phase_alone = alone_of.get((row.key.point, row.key.phase), "")
        alone = whole_loads.get((row.key.point, phase_alone))
        if alone and row.key.kind == LOAD and row.key.op == "total":
            pairs.append(LoadWithAlone(row, alone))
    return pairs
