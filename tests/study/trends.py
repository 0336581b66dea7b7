"""The published trends of client-vs-scrub and client-vs-recovery, and what a run says to each.

A trend is a direction, not a figure: which of two settings gives more of something. It is judged
by the interval of the change over repeats.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, ReportRow, ReportRun
from cephqos_loadgen.report.figures.baseline import against_baseline, outcome
from cephqos_loadgen.report.figures.loads import DURING, WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.words import interval, percent, with_unit

Verdict = Literal["agrees", "no difference found", "differs", "not put to the test", "not known"]
SCRUB, RECOVERY = "client-vs-scrub", "client-vs-recovery"
_POLICY: Final = "policy"
ALONE: Final = "alone"


@dataclass(frozen=True, slots=True)
class Side:
    """One study on this machine, and the throughput of clients alone in a run of its own, one
    figure per repeat. Where the study has a phase `alone`, that one counts."""

    run: ReportRun
    baseline: tuple[float, ...]

    def row(self, policy: str, metric: FigureKind) -> ReportRow | None:
        """The row of a policy that has this figure: of the load beside the scrub, if there is one,
        else of the whole load."""
        rows = [
            row
            for row in self.run.rows
            if row.axes.get(_POLICY) == policy
            and metric.key in row.figures
            and row.key.phase != ALONE
        ]
        rank = {DURING["scrub"]: 0, WHOLE: 1}
        loads = [
            row for row in rows if row.key.op == "total" and (row.key.window in rank)
        ]  # background rows are of the whole, too
        found = sorted(loads, key=lambda row: rank[row.key.window])
        if metric in metrics.BACKGROUND:
            found = [row for row in found if row.key.kind == BACKGROUND]
        return found[0] if found else None

    def alone(self, policy: str) -> tuple[float, ...]:
        """What clients get with nothing beside them."""
        for row in self.run.rows:
            own = row.axes.get(_POLICY) == policy and row.key.phase == ALONE
            if own and (row.key.op, row.key.window) == ("total", WHOLE):
                return row.figures[metrics.IOPS.key].samples
        return self.baseline


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run says to a trend."""

    verdict: Verdict
    here: str


@dataclass(frozen=True, slots=True)
class Trend:
    """`published` says what was found elsewhere, with the figures."""

    study: str
    published: str
    judge: Callable[[Side], Judgement]


_UNKNOWN: Final = Judgement("not known", "Not enough repeats finished.")


def more(metric: FigureKind, greater: str, than: str) -> Callable[[Side], Judgement]:
    """The first policy has more of a figure than the second."""

    def judge(side: Side) -> Judgement:
        new, old = side.row(greater, metric), side.row(than, metric)
        if new is None or old is None:
            return _UNKNOWN
        a, b = new.figures[metric.key], old.figures[metric.key]
        found = a.against(b)
        words = (
            f"{greater} {with_unit(metric, a.value)}, {than} {with_unit(metric, b.value)}:"
            f" {percent(found.ratio)} ({interval(found)})."
        )
        return Judgement(_direction(found), words)

    return judge


def _direction(found: ChangeInterval) -> Verdict:
    if not found.known:
        return "not known"
    if not found.beyond_noise:
        return "no difference found"
    return "agrees" if found.absolute > 0 else "differs"


def alike(metric: FigureKind, one: str, other: str, within: float) -> Callable[[Side], Judgement]:
    """Two policies have as much of a figure, to a share of it."""

    def judge(side: Side) -> Judgement:
        new, old = side.row(one, metric), side.row(other, metric)
        if new is None or old is None:
            return _UNKNOWN
        a, b = new.figures[metric.key], old.figures[metric.key]
        found = a.against(b)
        words = f"{one} against {other}: {percent(found.ratio)} ({interval(found)})."
        if found.low is None or found.high is None:
            return Judgement("not known", words)
        if found.beyond_noise and abs(found.ratio or 0.0) > within:
            return Judgement("differs", words)
        sure = max(abs(found.low), abs(found.high)) <= within
        return Judgement("agrees" if sure else "no difference found", words)

    return judge


def keeps(policy: str, share: float, *, breaks: bool = False) -> Callable[[Side], Judgement]:
    """A policy leaves clients this share of their throughput alone, or less than it."""

    def judge(side: Side) -> Judgement:
        row = side.row(policy, metrics.IOPS)
        samples = side.alone(policy)
        if row is None or not samples:
            return _UNKNOWN
        iops = row.figures[metrics.IOPS.key]
        alone = sum(samples) / len(samples)
        found = against_baseline(row, samples)
        words = (
            f"{with_unit(metrics.IOPS, iops.value)} of {with_unit(metrics.IOPS, alone)} alone:"
            f" {iops.value / alone:.0%} ({interval(found)})."
        )
        wanted = "broken" if breaks else "kept"
        kept = outcome(found, share)
        if kept == "not put to the test":
            return Judgement(kept, f"{words} Clients alone were slower: this is no baseline.")
        if kept == "not known":
            return Judgement(kept, words)
        if kept == "too close to call":
            return Judgement("no difference found", words)
        return Judgement("agrees" if kept == wanted else "differs", words)

    return judge


_SLOWER: Final = metrics.RECOVERY_SECONDS
TRENDS: Final = (
    Trend(
        SCRUB,
        "A deep scrub costs clients throughput with WPQ: 27 % of 15,007 IOPS.",
        keeps("wpq", 0.95, breaks=True),
    ),
    Trend(
        SCRUB,
        "It costs clients throughput with high_client_ops: 24 %.",
        keeps("high_client_ops", 0.95, breaks=True),
    ),
    Trend(
        SCRUB,
        "high_client_ops leaves clients more throughput than WPQ: 24 % lost against 27 %.",
        more(metrics.IOPS, "high_client_ops", "wpq"),
    ),
    Trend(
        SCRUB,
        "Mean latency is lower with high_client_ops than with WPQ: by about 3 %, 5.62 ms.",
        more(metrics.MEAN, "wpq", "high_client_ops"),
    ),
    Trend(
        SCRUB,
        "The scrub ends sooner with WPQ than with high_client_ops.",
        more(metrics.SCRUB_SECONDS, "high_client_ops", "wpq"),
    ),
    Trend(
        SCRUB,
        "The scrub takes longest with high_recovery_ops, longer than with high_client_ops.",
        more(metrics.SCRUB_SECONDS, "high_recovery_ops", "high_client_ops"),
    ),
    Trend(
        RECOVERY,
        "Boosted recovery with WPQ violates a reservation of half the baseline:"
        " 2,544 of 21,500 IOPS.",
        keeps("wpq_boosted", 0.5, breaks=True),
    ),
    *(
        Trend(RECOVERY, f"{profile} keeps it: {iops:,} IOPS.", keeps(profile, 0.5))
        for profile, iops in (
            ("high_client_ops", 11209),
            ("balanced", 11017),
            ("high_recovery_ops", 11153),
        )
    ),
    Trend(
        RECOVERY,
        "high_client_ops leaves clients more than boosted WPQ: 11,209 IOPS against 2,544.",
        more(metrics.IOPS, "high_client_ops", "wpq_boosted"),
    ),
    Trend(
        RECOVERY,
        "Latency is lower with high_client_ops than with boosted WPQ: 5.7 ms against about 25 ms.",
        more(metrics.MEAN, "wpq_boosted", "high_client_ops"),
    ),
    Trend(
        RECOVERY,
        "The profiles leave clients the same throughput, within 2 %.",
        alike(metrics.IOPS, "high_recovery_ops", "high_client_ops", 0.02),
    ),
    Trend(
        RECOVERY,
        "Recovery takes longer with high_client_ops than with balanced: 966 s against 647 s.",
        more(_SLOWER, "high_client_ops", "balanced"),
    ),
    Trend(
        RECOVERY,
        "Recovery takes longer with balanced than with high_recovery_ops: 647 s against 488 s.",
        more(_SLOWER, "balanced", "high_recovery_ops"),
    ),
    Trend(
        RECOVERY,
        "Boosted WPQ recovers faster than high_recovery_ops: about 350 objects/s against 159.",
        more(metrics.RECOVERY_OBJECT_RATE, "wpq_boosted", "high_recovery_ops"),
    ),
)


def judged(sides: Mapping[str, Side]) -> Iterator[tuple[Trend, Judgement]]:
    """Every trend, with what these runs say to it."""
    for trend in TRENDS:
        side = sides.get(trend.study)
        yield trend, trend.judge(side) if side else _UNKNOWN
