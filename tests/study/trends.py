"""The published trends of client-vs-scrub and client-vs-recovery, and what a run says to each.

A trend is a direction, not a figure: which of two settings gives more of something. It is judged
by the interval of the change over repeats.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_base.series import BEST_EFFORT
from cephqos_base.series import RECOVERY as RECOVERY_CLASS
from cephqos_loadgen.report.arrays.statistics import ChangeInterval
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.baseline import against_baseline, outcome
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.words import interval, percent, with_unit

from .reasons import LIMIT, RESERVATION, Reason, bounds_of, waits_behind
from .side import RECOVERY, SCRUB, Side

Verdict = Literal["agrees", "no difference found", "differs", "not put to the test", "not known"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run says to a trend."""

    verdict: Verdict
    here: str


@dataclass(frozen=True, slots=True)
class Trend:
    """`published` says what was found elsewhere, with the figures; `reason` why a run here may
    differ."""

    study: str
    published: str
    judge: Callable[[Side], Judgement]
    reason: Reason | None = None


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
_APART: Final = waits_behind(
    BEST_EFFORT,
    *("wpq", "high_client_ops"),
    meaning="The lab's devices are held to so many reads and so many writes, each by itself:"
    " a scrub, which reads, takes nothing from clients that write.",
)
_BY_RELEASE: Final = bounds_of(
    LIMIT,
    BEST_EFFORT,
    *("high_client_ops", "balanced", "high_recovery_ops"),
    meaning="In 17.2, which the study had, high_client_ops reserved 25 % for best effort and set no"
    " limit. Here it reserves nothing and limits, and high_recovery_ops does not limit.",
)
_BY_PRIORITY: Final = waits_behind(
    RECOVERY_CLASS,
    *("wpq_boosted", "high_client_ops"),
    meaning="In the scheduler's queue WPQ goes by priority: clients have 63, recovery 3 or less. In"
    " the study, recovery filled the store below the queue.",
)
TRENDS: Final = (
    Trend(
        SCRUB,
        "A deep scrub costs clients throughput with WPQ: 27 % of 15,007 IOPS.",
        keeps("wpq", 0.95, breaks=True),
        _APART,
    ),
    Trend(
        SCRUB,
        "It costs clients throughput with high_client_ops: 24 %.",
        keeps("high_client_ops", 0.95, breaks=True),
        _APART,
    ),
    Trend(
        SCRUB,
        "high_client_ops leaves clients more throughput than WPQ: 24 % lost against 27 %.",
        more(metrics.IOPS, "high_client_ops", "wpq"),
        _APART,
    ),
    Trend(
        SCRUB,
        "Mean latency is lower with high_client_ops than with WPQ: by about 3 %, 5.62 ms.",
        more(metrics.MEAN, "wpq", "high_client_ops"),
        _APART,
    ),
    Trend(
        SCRUB,
        "The scrub ends sooner with WPQ than with high_client_ops.",
        more(metrics.SCRUB_SECONDS, "high_client_ops", "wpq"),
        _BY_RELEASE,
    ),
    Trend(
        SCRUB,
        "The scrub takes longest with high_recovery_ops, longer than with high_client_ops.",
        more(metrics.SCRUB_SECONDS, "high_recovery_ops", "high_client_ops"),
        _BY_RELEASE,
    ),
    Trend(
        RECOVERY,
        "Boosted recovery with WPQ violates a reservation of half the baseline:"
        " 2,544 of 21,500 IOPS.",
        keeps("wpq_boosted", 0.5, breaks=True),
        _BY_PRIORITY,
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
        _BY_PRIORITY,
    ),
    Trend(
        RECOVERY,
        "Latency is lower with high_client_ops than with boosted WPQ: 5.7 ms against about 25 ms.",
        more(metrics.MEAN, "wpq_boosted", "high_client_ops"),
        _BY_PRIORITY,
    ),
    Trend(
        RECOVERY,
        "The profiles leave clients the same throughput, within 2 %.",
        alike(metrics.IOPS, "high_recovery_ops", "high_client_ops", 0.02),
        bounds_of(
            RESERVATION,
            RECOVERY_CLASS,
            *("high_client_ops", "high_recovery_ops"),
            meaning="Operations wait in the queue here, so clients lack what recovery has"
            " reserved.",
        ),
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
        _BY_PRIORITY,
    ),
)


def judged(sides: Mapping[str, Side]) -> Iterator[tuple[Trend, Judgement]]:
    """Every trend, with what these runs say to it."""
    for trend in TRENDS:
        side = sides.get(trend.study)
        yield trend, trend.judge(side) if side else _UNKNOWN
