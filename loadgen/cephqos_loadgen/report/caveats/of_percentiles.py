"""What speaks against percentiles: too few completions, and latencies beyond fio's last bin."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.plan.words import count
from cephqos_loadgen.report.arrays.bins import Bins
from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.results.figures import LAST_BIN_NS

_LAST_SECONDS: Final = LAST_BIN_NS * 1e-9


def too_few_completions(run: ReportRun) -> Iterator[Caveat]:
    """Of 500 completions the slowest is beyond p99.8: their p99.9 is not known."""
    few = _affected(run, lambda bins, percent: not bins.knows(percent))
    if few:
        least = min(few, key=lambda it: it.bins.total)
        yield Caveat(
            "caution",
            f"Too few completions for {_names(few)} in {count(len(few), 'row')}: fewer than one is"
            " beyond it, so what is shown is the slowest one.",
            f"Least: {count(least.bins.total, 'completion')}, {least.row.key.phase} of"
            f" {least.row.key.point}.",
            tuple(it.row.key for it in few),
        )


def beyond_the_last_bin(run: ReportRun) -> Iterator[Caveat]:
    """fio counts whatever took longer in its last bin."""
    beyond = _affected(run, lambda bins, p: (bins.percentile_seconds(p) or 0.0) >= _LAST_SECONDS)
    if beyond:
        first = beyond[0].row.key
        yield Caveat(
            "serious",
            f"{_names(beyond)} of {count(len(beyond), 'row')} is in fio's last bin,"
            f" {_LAST_SECONDS:.1f} s, which holds all that took longer: the real one is at least"
            " that.",
            f"{first.phase} of {first.point}. Means are exact.",
            tuple(it.row.key for it in beyond),
        )


@dataclass(frozen=True, slots=True)
class _Affected:
    """A row with percentiles that are not what they seem."""

    row: ReportRow
    bins: Bins
    percents: Sequence[float]


def _affected(run: ReportRun, wrong: Callable[[Bins, float], bool]) -> list[_Affected]:
    """Rows with completions and percentiles of which this is true."""
    affected = []
    for row in run.rows:
        if row.bins and row.bins.total:
            percents = [percent for percent in metrics.PERCENTS if wrong(row.bins, percent)]
            affected += [_Affected(row, row.bins, percents)] if percents else []
    return affected


def _names(affected: Sequence[_Affected]) -> str:
    percents = {percent for it in affected for percent in it.percents}
    return listed([f"p{percent:g}" for percent in sorted(percents)], 8)


PERCENTILE_CHECKS: Final = (too_few_completions, beyond_the_last_bin)
