"""What speaks against percentiles: too few completions, and latencies beyond fio's last bin."""

from collections.abc import Callable, Iterator
from typing import Final

from cephqos_loadgen.plan.words import count
from cephqos_loadgen.report.arrays.bins import Bins
from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.results.figures import LAST_BIN_NS

Wrong = Callable[[Bins, float], bool]


def too_few_completions(run: ReportRun) -> Iterator[Caveat]:
    """Of 500 completions the slowest is beyond p99.8: their p99.9 is not known."""
    few = _rows(run, lambda bins, percent: not bins.knows(percent))
    if few:
        row, bins = min(few, key=lambda pair: pair[1].total)
        names = _names(few, lambda bins, percent: not bins.knows(percent))
        yield Caveat(
            "caution",
            f"Too few completions for {names} in {count(len(few), 'row')}: fewer than one is"
            " beyond it, so what is shown is the slowest one.",
            f"Least: {count(bins.total, 'completion')}, {row.key.phase} of {row.key.point}.",
            tuple(row.key for row, _ in few),
        )


def beyond_the_last_bin(run: ReportRun) -> Iterator[Caveat]:
    """fio counts whatever took longer in its last bin."""
    beyond = _rows(run, _in_last_bin)
    if beyond:
        yield Caveat(
            "serious",
            f"{_names(beyond, _in_last_bin)} of {count(len(beyond), 'row')} is in fio's last bin,"
            f" {_LAST_SECONDS:.1f} s, which holds all that took longer: the real one is at least"
            " that.",
            f"{beyond[0][0].key.phase} of {beyond[0][0].key.point}. Means are exact.",
            tuple(row.key for row, _ in beyond),
        )


_LAST_SECONDS: Final = LAST_BIN_NS * 1e-9


def _in_last_bin(bins: Bins, percent: float) -> bool:
    return (bins.percentile_seconds(percent) or 0.0) >= _LAST_SECONDS


def _rows(run: ReportRun, wrong: Wrong) -> list[tuple[ReportRow, Bins]]:
    """Rows with a percentile of which this is true."""
    return [
        (row, row.bins)
        for row in run.rows
        if row.bins and row.bins.total and any(wrong(row.bins, p) for p in metrics.PERCENTS)
    ]


def _names(rows: list[tuple[ReportRow, Bins]], wrong: Wrong) -> str:
    return listed([f"p{p:g}" for p in metrics.PERCENTS if any(wrong(b, p) for _, b in rows)], 8)


PERCENTILE_CHECKS: Final = (too_few_completions, beyond_the_last_bin)
