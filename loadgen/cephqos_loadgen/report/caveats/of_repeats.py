"""What speaks against repeats: too few of them, a spread, or a drift within them."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from cephqos_loadgen.report.caveats.caveat import Caveat, load_name
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Key, ReportRow, ReportRun, key_of
from cephqos_loadgen.report.figures.loads import WHOLE, LoadPart
from cephqos_loadgen.report.figures.observe import Observation

_ENOUGH_REPEATS: Final = 3
_UNSTABLE: Final = 0.10
_DRIFT: Final = 0.10


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
        worst, row = max(rows, key=lambda pair: pair[0])
        yield Caveat(
            "caution",
            f"Throughput differs much between repeats: the deviation is above {_UNSTABLE:.0%} of"
            f" the mean in {len(rows)} of {_loads(run)} rows.",
            f"Most: {worst:.0%}, {_named(row)}.",
            tuple(each.key for _, each in rows),
        )


def _loads(run: ReportRun) -> int:
    return sum(metrics.IOPS.key in row.figures and row.key.window == WHOLE for row in run.rows)


def _named(row: ReportRow) -> str:
    return f"{load_name(row.key.phase, row.key.depth)} of {row.key.point}"


def drift(run: ReportRun) -> Iterator[Caveat]:
    """The first third of a load differs from its last, without background work to explain it."""
    drifting: dict[Key, tuple[float, str]] = {}
    for observed in run.finished:
        for part in observed.loads:
            if not part.is_whole:
                continue
            moved = _moved(observed, part)
            key = key_of(run.name, observed, part)
            if moved is not None and abs(moved) > max(_DRIFT, abs(drifting.get(key, (0.0, ""))[0])):
                drifting[key] = (moved, f"repeat {observed.record.repeat}")
    if drifting:
        key, (moved, where) = max(drifting.items(), key=lambda item: abs(item[1][0]))
        yield Caveat(
            "caution",
            f"Throughput drifts: the last third of a load differs from its first by more than"
            f" {_DRIFT:.0%} in {len(drifting)} of {_loads(run)} rows, in seconds without background"
            " work.",
            f"Most: {moved:+.0%}, {key.phase} of {key.point}, {where}.",
            tuple(drifting),
        )


def _moved(observed: Observation, part: LoadPart) -> float | None:
    """Last third against first, of the quiet seconds; None of fewer than nine."""
    table = observed.intervals
    chosen = table.of(part.phase, part.depth) & table.within([(part.start, part.end)])
    for stretches in observed.stretches.values():
        chosen &= ~table.within(stretches)
    if not chosen.any():
        return None
    start = float(table.middles[chosen].min())
    seconds = np.floor(table.middles[chosen] - start).astype(np.int64)
    done = np.bincount(seconds, table.ios[chosen].astype(np.float64))
    # The last interval of a load is short: its I/Os count for its time, not for a second.
    took = np.bincount(seconds, table.seconds[chosen])
    done, took = done[took > 0], took[took > 0]
    third = len(done) // 3
    first = float(done[:third].sum() / took[:third].sum()) if third >= 3 else 0.0
    return float(done[-third:].sum() / took[-third:].sum()) / first - 1 if first else None
