"""All caveats about a run, the gravest first."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from cephqos_loadgen.report.caveats.caveat import Caveat, Check, gravest_first
from cephqos_loadgen.report.caveats.of_baseline import slower_alone
from cephqos_loadgen.report.caveats.of_cluster import CLUSTER_CHECKS
from cephqos_loadgen.report.caveats.of_load import LOAD_CHECKS
from cephqos_loadgen.report.caveats.of_percentiles import PERCENTILE_CHECKS
from cephqos_loadgen.report.caveats.of_repeats import drift, few_repeats, unstable
from cephqos_loadgen.report.caveats.of_run import (
    busy_host,
    costly_recording,
    cut_off,
    grave_findings,
    lost_samples,
    lost_seconds,
    not_whole,
    other_findings,
)
from cephqos_loadgen.report.figures.analysis import ReportRun

_MOST_ALIKE: Final = 3  # caveats that say the same of different points are listed one by one

CHECKS: Final[tuple[Check, ...]] = (
    not_whole,
    cut_off,
    grave_findings,
    few_repeats,
    slower_alone,
    *CLUSTER_CHECKS,
    *LOAD_CHECKS,
    *PERCENTILE_CHECKS,
    unstable,
    drift,
    busy_host,
    lost_samples,
    lost_seconds,
    costly_recording,
    other_findings,
)


def caveats(run: ReportRun) -> list[Caveat]:
    """All caveats, the gravest first."""
    return gravest_first(gathered([caveat for check in CHECKS for caveat in check(run)], run))


def gathered(caveats: Iterable[Caveat], run: ReportRun) -> Iterator[Caveat]:
    """What is said alike of many points and repeats is said once, and how often. Texts are alike if
    they differ in names of points and in numbers only."""
    points = sorted({o.record.point for o in run.observations}, key=len, reverse=True)
    names_and_numbers = re.compile("|".join([*map(re.escape, points), r"\d+"]))
    groups: dict[tuple[str, str], list[Caveat]] = {}
    for caveat in caveats:
        alike = (caveat.severity, names_and_numbers.sub("", caveat.text))
        groups.setdefault(alike, []).append(caveat)
    for group in groups.values():
        if len(group) <= _MOST_ALIKE:
            yield from group
            continue
        rows = dict.fromkeys(key for caveat in group for key in caveat.rows)
        text = f"{group[0].text} The same {len(group) - 1} times more."
        yield replace(group[0], text=text, rows=tuple(rows))
