"""What speaks against repeats: too few of them, a spread, or a drift within them."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from cephqos_loadgen.report.caveats.caveat import Caveat, load_name
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Key, ReportRun, key_of
from cephqos_loadgen.report.figures.loads import WHOLE, LoadPart
from cephqos_loadgen.report.figures.observe import Observation

_ENOUGH_REPEATS: Final = 3
_UNSTABLE: Final = 0.10  # deviation over mean
_DRIFT: Final = 0.10  # last third of a load over the first, less 1
_LEAST_THIRD_SECONDS: Final = 3


def few_repeats(run: ReportRun) -> Iterator[Caveat]:
    few = [row for row in run.rows if row.repeats < _ENOUGH_REPEATS]
    whole = [row for row in few if row.key.window == WHOLE]
    if whole:
        points = {row.key.point for row in whole}
        least = min(row.repeats for row in whole)
        words = "one repeat" if least == 1 else f"{least} repeats"
        yield Caveat(
            "serious" if least == 1 else "caution",
            f"Too few repeats: {words} of some points, {_ENOUGH_REPEATS} are the least that show"
            " a spread." + (" Of one repeat no interval can be given." if least == 1 else ""),
            f"{len(points)} of {len({row.key.point for row in run.rows})} points.",
            tuple(row.key for row in few if row.key.point in points),
        )


def unstable(run: ReportRun) -> Iterator[Caveat]:
    """The spread over repeats is large."""
    rows = []
    for row in run.rows:
        iops = row.figures.get(metrics.IOPS.key)
        if iops and row.key.window == WHOLE and (iops.variation or 0.0) > _UNSTABLE:
            rows.append((iops.variation or 0.0, row))
    if rows:
        variation, row = max(rows, key=lambda pair: pair[0])
        most = f"{load_name(row.key.phase, row.key.depth)} of {row.key.point}"
        yield Caveat(
            "caution",
            f"Throughput differs much between repeats: the deviation is above {_UNSTABLE:.0%} of"
            f" the mean in {len(rows)} of {_load_rows(run)} rows.",
            f"Most: {variation:.0%}, {most}.",
            tuple(row.key for _, row in rows),
        )


def _load_rows(run: ReportRun) -> int:
    """How many rows are of a whole load."""
    return sum(metrics.IOPS.key in row.figures and row.key.window == WHOLE for row in run.rows)


def drift(run: ReportRun) -> Iterator[Caveat]:
    """The first third of a load differs from its last, without background work to explain it."""
    drifting: dict[Key, tuple[float, str]] = {}  # the drift, and in which repeat it is largest
    for observed in run.finished:
        for part in observed.loads:
            if not part.is_whole:
                continue
            change = _change_within(observed, part)
            key = key_of(run.name, observed, part)
            largest, _ = drifting.get(key, (0.0, ""))
            if change is not None and abs(change) > max(_DRIFT, abs(largest)):
                drifting[key] = (change, f"repeat {observed.record.repeat}")
    if drifting:
        key, (change, repeat) = max(drifting.items(), key=lambda item: abs(item[1][0]))
        yield Caveat(
            "caution",
            f"Throughput drifts: the last third of a load differs from its first by more than"
            f" {_DRIFT:.0%} in {len(drifting)} of {_load_rows(run)} rows, in seconds without"
            " background work.",
            f"Most: {change:+.0%}, {key.phase} of {key.point}, {repeat}.",
            tuple(drifting),
        )


def _change_within(observed: Observation, part: LoadPart) -> float | None:
    """Throughput of the last third over that of the first, less 1, in seconds without background
    work; None where a third would have too few of them, or nothing completed in the first."""
    intervals = observed.intervals
    chosen = intervals.of(part.phase, part.depth) & intervals.within([(part.start, part.end)])
    for stretches in observed.stretches.values():
        chosen &= ~intervals.within(stretches)
    if not chosen.any():
        return None
    start = float(intervals.middles[chosen].min())
    # By number, so that the array is as long as there are intervals, whatever times they have.
    _, second = np.unique(np.floor(intervals.middles[chosen] - start), return_inverse=True)
    ios = np.bincount(second, intervals.ios[chosen].astype(np.float64))
    # The last interval of a load is short: its I/Os count for its time, not for a second.
    seconds = np.bincount(second, intervals.seconds[chosen])
    ios, seconds = ios[seconds > 0], seconds[seconds > 0]
    third = len(ios) // 3
    if third < _LEAST_THIRD_SECONDS:
        return None
    first = float(ios[:third].sum() / seconds[:third].sum())
    last = float(ios[-third:].sum() / seconds[-third:].sum())
    return last / first - 1 if first else None
