"""The published trends of client-vs-scrub and client-vs-recovery, and what a run says to each.

A trend is a direction, not a figure: which of two settings gives more of something. It is judged
by the interval of the change over repeats, together with all others (Holm): of so many trends one
would come out by chance.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_base.series import BEST_EFFORT
from cephqos_base.series import RECOVERY as RECOVERY_CLASS
from cephqos_loadgen.report.arrays.statistics import CONFIDENCE, ChangeInterval, holm, t_quantile
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.baseline import against_baseline, outcome
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.words import interval, listed, percent, with_unit

from .reasons import LIMIT, RESERVATION, Reason, bounds_of, waits_behind
from .side import RECOVERY, SCRUB, Side

Verdict = Literal[
    "agrees",
    "the other way round",
    "differs",
    "no difference found",
    "not put to the test",
    "not known",
]
DECIDED: Final = ("agrees", "the other way round", "differs")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run says to a trend. `chance`: how often this verdict would come out if it were not
    so; None where nothing was decided."""

    verdict: Verdict
    here: str
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Trend:
    """`published` says what was found elsewhere, with the figures; `reason` why a run here may
    differ. `same_as` is the trend whose measurement this one is, too: with a fixed number of
    operations in flight, latency is that number over IOPS. It is judged with it and not counted."""

    study: str
    published: str
    judge: Callable[[Side], Judgement]
    reason: Reason | None = None
    same_as: str = ""


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
        cut = [policy for policy in (greater, than) if side.is_cut_off(policy, metric)]
        if cut:
            reason = "Clients were ended before the recovery of"
            return Judgement("not known", f"{words} {reason} {listed(cut)}: its time is no less.")
        return Judgement(_direction(found), words, found.chance)

    return judge


def _direction(found: ChangeInterval) -> Verdict:
    if not found.known:
        return "not known"
    if not found.beyond_noise:
        return "no difference found"
    return "agrees" if found.absolute > 0 else "the other way round"


def equivalent(found: ChangeInterval, within: float) -> bool | None:
    """Whether new and old surely differ by less than a factor of 1 + `within`: two one-sided tests
    of 5 % each (TOST). None: not known."""
    if found.error is None or found.ratio is None:
        return None
    reach = t_quantile(CONFIDENCE, found.degrees) * found.error
    return abs(math.log(1 + found.ratio)) + reach <= math.log(1 + within)


def alike(metric: FigureKind, one: str, other: str, within: float) -> Callable[[Side], Judgement]:
    """Two policies have as much of a figure, to a share of it: two one-sided tests (TOST)."""

    def judge(side: Side) -> Judgement:
        new, old = side.row(one, metric), side.row(other, metric)
        if new is None or old is None:
            return _UNKNOWN
        a, b = new.figures[metric.key], old.figures[metric.key]
        found = a.against(b)
        words = f"{one} against {other}: {percent(found.ratio)} ({interval(found)})."
        if found.low is None or found.high is None:
            return Judgement("not known", words)
        bounds = (1 + within, 1 / (1 + within))
        nearest = max(filter(None, (found.chance_of_beyond(b, sides=1) for b in bounds)), default=0)
        if equivalent(found, within):
            return Judgement("agrees", words, nearest)
        if found.low > within or found.high < 1 / (1 + within) - 1:
            return Judgement("differs", words, nearest)
        return Judgement("no difference found", words)

    return judge


def keeps(policy: str, share: float, *, breaks: bool = False) -> Callable[[Side], Judgement]:
    """A policy leaves clients this share of their throughput alone, or less than it. That it keeps
    the share says something only if another policy of the same run breaks it."""

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
        chance = found.chance_of_beyond(share, sides=1)
        if kept == wanted == "kept" and not _is_broken_by_another(side, policy, share):
            return Judgement("not put to the test", f"{words} No policy broke it here.")
        return Judgement("agrees" if kept == wanted else "differs", words, chance)

    return judge


def _is_broken_by_another(side: Side, policy: str, share: float) -> bool:
    others = [other for other in side.policies if other != policy]
    rows = [(side.row(other, metrics.IOPS), side.alone(other)) for other in others]
    return any(
        outcome(against_baseline(row, alone), share) == "broken"
        for row, alone in rows
        if row and alone
    )


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
        same_as="high_client_ops leaves clients more throughput than WPQ: 24 % lost against 27 %.",
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
        same_as="high_client_ops leaves clients more than boosted WPQ: 11,209 IOPS against 2,544.",
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
    """Every trend, with what these runs say to it, all judged together."""
    found = {
        trend.published: trend.judge(sides[trend.study]) if trend.study in sides else _UNKNOWN
        for trend in TRENDS
    }
    counted = {
        trend.published: chance
        for trend in TRENDS
        if not trend.same_as
        and found[trend.published].verdict in DECIDED
        and (chance := found[trend.published].chance) is not None
    }
    stand = dict(zip(counted, holm(list(counted.values())), strict=True))
    for trend in TRENDS:
        judgement = found[trend.published]
        decides = trend.same_as or trend.published
        if judgement.verdict in DECIDED and not stand.get(decides, False):
            words = f"{judgement.here} Among {len(counted)} trends, that may be chance."
            judgement = Judgement("no difference found", words)
        yield trend, judgement
