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
    """A percentile needs at least one completion beyond it: p99.9 needs 1,000."""
    unknown = _affected(run, lambda bins, percent: not bins.knows(percent))
    if unknown:
        fewest = min(unknown, key=lambda affected: affected.bins.total)
        yield Caveat(
            "caution",
            f"Too few completions for {_names(unknown)} in {count(len(unknown), 'row')}: fewer than"
            " one is beyond it, so what is shown is the slowest one.",
            f"Least: {count(fewest.bins.total, 'completion')}, {fewest.row.key.phase} of"
            f" {fewest.row.key.point}.",
            tuple(affected.row.key for affected in unknown),
        )


def beyond_the_last_bin(run: ReportRun) -> Iterator[Caveat]:
    """A percentile in fio's last bin, where fio also counts all that took longer."""

    def in_last_bin(bins: Bins, percent: float) -> bool:
        return (bins.percentile_seconds(percent) or 0.0) >= _LAST_SECONDS

    beyond = _affected(run, in_last_bin)
    if beyond:
        first = beyond[0].row.key
        yield Caveat(
            "serious",
            f"{_names(beyond)} of {count(len(beyond), 'row')} is in fio's last bin,"
            f" {_LAST_SECONDS:.1f} s, which holds all that took longer: the real one is at least"
            " that.",
            f"{first.phase} of {first.point}. Means are exact.",
            tuple(affected.row.key for affected in beyond),
        )


@dataclass(frozen=True, slots=True)
class _Affected:
    """A row with percentiles that are not what they seem."""

    row: ReportRow
    bins: Bins
    percents: Sequence[float]


def _affected(run: ReportRun, is_wrong: Callable[[Bins, float], bool]) -> list[_Affected]:
    """Rows with completions for some of whose percentiles `is_wrong` is true."""
    affected = []
    for row in run.rows:
        if row.bins and row.bins.total:
            percents = [percent for percent in metrics.PERCENTS if is_wrong(row.bins, percent)]
            affected += [_Affected(row, row.bins, percents)] if percents else []
    return affected


def _names(affected: Sequence[_Affected]) -> str:
    percents = {percent for row in affected for percent in row.percents}
    return listed([f"p{percent:g}" for percent in sorted(percents)], 8)


PERCENTILE_CHECKS: Final = (too_few_completions, beyond_the_last_bin)
