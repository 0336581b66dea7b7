"""What speaks against a baseline: a load that did more than it."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.figures.baseline import (
    against_baseline,
    is_no_baseline,
    loads_with_alone,
)
from cephqos_loadgen.report.figures.environment import environment_differences
from cephqos_loadgen.report.words import with_unit


def slower_than_the_load(rows: Sequence[ReportRow], base: Sequence[float]) -> Iterator[Caveat]:
    """The baseline that was given did less than loads that are compared with it."""
    if base:
        faster = [row for row in rows if is_no_baseline(against_baseline(row, base))]
        yield from _caveat("The baseline", [(row, fmean(base)) for row in faster])


def of_another_environment(runs: Sequence[ReportRun], base: ReportRun | None) -> Iterator[Caveat]:
    """The baseline's machine or cluster is not that of the runs."""
    differing = [line for run in runs if base for line in environment_differences(base, run)]
    if differing:
        yield Caveat(
            "serious",
            "The baseline is of another environment: changes from it may come from there.",
            "; ".join(dict.fromkeys(differing)),
            tuple(row.key for run in runs for row in run.rows),
        )


def slower_alone(run: ReportRun) -> Iterator[Caveat]:
    """Clients alone did less than the same load beside background work."""
    faster = []
    for row, alone in loads_with_alone(run):
        base = alone.figures[metrics.IOPS.key]
        if is_no_baseline(against_baseline(row, base.samples)):
            faster.append((row, base.value))
    yield from _caveat("The load alone", faster)


def _caveat(baseline: str, faster: Sequence[tuple[ReportRow, float]]) -> Iterator[Caveat]:
    """`faster` are the rows that did more, each with the IOPS of its baseline."""
    if faster:
        row, base = max(faster, key=lambda pair: pair[0].figures[metrics.IOPS.key].value / pair[1])
        iops = row.figures[metrics.IOPS.key].value
        rows = "row" if len(faster) == 1 else "rows"
        yield Caveat(
            "serious",
            f"{baseline} is slower than what is compared with it in {len(faster)} {rows}: it is no"
            " baseline for them, and no reservation was tested there.",
            f"Most: {row.key.phase} of {row.key.point} did {with_unit(metrics.IOPS, iops)}, the"
            f" baseline {with_unit(metrics.IOPS, base)}.",
            tuple(row.key for row, _ in faster),
        )
