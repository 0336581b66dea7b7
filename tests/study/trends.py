"""The published trends of studies A and B, and what this machine says to each.

A trend is a direction, not a figure: which of two settings gives more of something. It is judged
within each lab, by the interval of the change over labs, together with all others of its experiment
(Holm): of so many trends one would come out by chance. Trends of profiles are judged twice: with
the allocations that the profiles have today, and with those of the study's release.

Settings are policies; one that ends in `@scrub` or `@recovery` is of the time in which that ran
only. Clients beside recovery are compared in that time, those beside a scrub in their whole load,
as in study B.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

from cephqos_loadgen.report.arrays.statistics import CONFIDENCE, ChangeInterval, holm, t_quantile
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.baseline import outcome
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.words import interval, listed, percent, with_unit

from .experiments import (
    APART,
    BOTH,
    COST,
    EXPERIMENTS,
    HDD,
    HDD_WIDE,
    PROFILES,
    PUBLISHED,
    RECOVERY,
    SCRUB,
    SMALL,
    TEN,
    Experiment,
)
from .side import Figure, Side, Sides, compared, paired, ratios_differ

Verdict = Literal[
    "agrees",
    "the other way round",
    "differs",
    "may be chance",
    "no difference found",
    "not put to the test",
    "not known",
]
DECIDED: Final = ("agrees", "the other way round", "differs")
COMPARED: Final = (*DECIDED, "may be chance", "no difference found")
DIFFERENT: Final = ("the other way round", "differs")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run says to a trend. `chance`: how often figures so far apart would come out if there
    were nothing to see; None where nothing was compared. `null`: the factor between the two where
    there is nothing to see. `figures`: what it is made from.
    """

    verdict: Verdict
    here: str
    chance: float | None = None
    figures: tuple[Figure, ...] = ()
    null: str = "1"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is compared, by settings, so that other allocations can be put in their place."""

    settings: tuple[str, ...]
    judge: Callable[[Side, tuple[str, ...]], Judgement]

    def __call__(self, side: Side | None, *, published: bool = False) -> Judgement:
        names = self.published if published else self.settings
        return self.judge(side.in_labs_of(names), names) if side else _UNKNOWN

    @property
    def published(self) -> tuple[str, ...]:
        return tuple(map(with_published, self.settings))


def policy_of(setting: str) -> str:
    return setting.partition("@")[0].rpartition("/")[2]


def with_published(setting: str) -> str:
    """The same profile with the allocations of the study's release."""
    head, slash, rest = setting.rpartition("/")
    policy, at, window = rest.partition("@")
    return f"{head}{slash}{PUBLISHED.get(policy, policy)}{at}{window}"


@dataclass(frozen=True, slots=True)
class Trend:
    """`published` says what was found elsewhere, with the figures; `study` is where it is judged.

    `control` is the experiment in which what may explain a difference is taken away, and `without`
    says what that is. `same_as` is the trend whose measurement this one is, too: with a fixed
    number of operations in flight, latency is that number over IOPS. It is judged with it and not
    counted. `late`: it was written when labs of its experiment had run.
    """

    study: Experiment
    published: str
    claim: Claim
    control: Experiment | None = None
    without: str = ""
    same_as: str = ""
    late: bool = False

    @property
    def has_both(self) -> bool:
        """Whether its experiment runs its profiles with the allocations of the study's release."""
        policies = set(map(policy_of, self.claim.published))
        return self.claim.published != self.claim.settings and policies <= {*self.study.policies}


@dataclass(frozen=True, slots=True)
class Other:
    """What is found `under` other conditions, with another verdict. `apart`: whether the two
    changes differ beyond noise; None if there are more."""

    under: str
    found: Judgement
    apart: bool | None


@dataclass(frozen=True, slots=True)
class Found:
    """A trend with what was found: with today's allocations, with those of the study's release
    (None: they were not run), and where the latter or a control say something else."""

    trend: Trend
    today: Judgement
    then: Judgement | None
    others: tuple[Other, ...] = ()

    @property
    def today_only(self) -> bool:
        """It agrees, and does not with the study's own allocations."""
        then = self.then
        return (
            self.today.verdict == "agrees"
            and then is not None
            and then.verdict in COMPARED
            and then.verdict != "agrees"
        )


_UNKNOWN: Final = Judgement("not known", "Not enough labs are finished.")


def more(metric: FigureKind, greater: str, than: str) -> Claim:
    """The first setting has more of a figure than the second."""

    def judge(side: Side, names: tuple[str, ...]) -> Judgement:
        a, b = (side.samples(name, metric) for name in names)
        if not a or len(a) != len(b):
            return _UNKNOWN
        found = compared(side, metric, names)
        means = (f"{name} {with_unit(metric, sum(of) / len(of))}"
                 for name, of in zip(names, (a, b), strict=True))  # fmt: skip
        words = f"{', '.join(means)}: {percent(found.ratio)} ({interval(found)})."
        figures = tuple(_shown(side, name, metric) for name in names)
        cut = [name for name in names if side.outlasts_clients(name, metric)]
        if cut:
            words = f"{words} Clients ended before the work of {listed(cut)}."
            return Judgement("not known", words, figures=figures)
        verdict = _direction(found)
        if verdict == "no difference found":
            words = f"{words} {_power(found)}"
        return Judgement(verdict, words, found.chance, figures)

    return Claim((greater, than), judge)


def _shown(side: Side, name: str, metric: FigureKind) -> Figure:
    values = tuple(value * metric.scale for value in side.samples(name, metric))
    return Figure(f"{name} {metric.named}", values, side.grid(name, metric))


def _power(found: ChangeInterval) -> str:
    """The smallest change that as many labs find in about four of five tries, if it is the only one
    that is compared."""
    reach = t_quantile((1 + CONFIDENCE) / 2, found.degrees) + t_quantile(0.8, found.degrees)
    least = percent(math.expm1(reach * (found.error or 0.0)))
    return f"By itself, {least} or more would be found."


def _direction(found: ChangeInterval) -> Verdict:
    if not found.known:
        return "not known"
    if not found.beyond_noise:
        return "no difference found"
    return "agrees" if (found.ratio or 0) > 0 else "the other way round"


def equivalent(found: ChangeInterval, within: float) -> bool | None:
    """Whether new and old surely differ by less than a factor of 1 + `within`: two one-sided tests
    of 5 % each (TOST). None: not known."""
    if found.error is None or found.ratio is None:
        return None
    reach = t_quantile(CONFIDENCE, found.degrees) * found.error
    return abs(math.log(1 + found.ratio)) + reach <= math.log(1 + within)


def alike(metric: FigureKind, within: float, *settings: str) -> Claim:
    """All of these have as much of a figure, to a share of it: two one-sided tests of each pair
    (TOST). The pair that says the least is shown. All must be alike, so nothing is added for their
    number; that one of them differs may be chance as many times as there are pairs. That they are
    alike says something only if another policy of the same experiment is otherwise."""

    def judge(side: Side, names: tuple[str, ...]) -> Judgement:
        values = {name: side.samples(name, metric) for name in names}
        if len(set(map(len, values.values()))) != 1 or not all(values.values()):
            return _UNKNOWN
        pairs = list(combinations(names, 2))
        found = [_alike(compared(side, metric, pair), pair, within, len(pairs)) for pair in pairs]
        figures = tuple(_shown(side, name, metric) for name in names)
        worst = replace(min(found, key=_worst), figures=figures, null=f"within {within}")
        if worst.verdict == "agrees" and not _differs_with_another(side, metric, within, names):
            words = f"{worst.here} No other policy surely differs from them here."
            return Judgement("not put to the test", words, figures=figures)
        return worst

    return Claim(settings, judge)


def _differs_with_another(
    side: Side, metric: FigureKind, within: float, names: tuple[str, ...]
) -> bool:
    _, at, window = names[0].partition("@")
    others = {f"{other}{at}{window}" for other in side.settings} - {*names}
    pairs = [(name, other) for other in sorted(others) for name in names]
    found = [
        _alike(compared(side, metric, pair), pair, within, 1)
        for pair in pairs
        if len({len(side.samples(name, metric)) for name in pair}) == 1
    ]
    return any(it.verdict == "differs" for it in found)


def _worst(found: Judgement) -> tuple[int, float]:
    """Of several that differ the surest, else the least sure."""
    chance, rank = found.chance or 0.0, ("differs", "not known", "no difference found", "agrees")
    return rank.index(found.verdict), chance if found.verdict == "differs" else -chance


def _alike(found: ChangeInterval, names: tuple[str, ...], within: float, pairs: int) -> Judgement:
    words = f"{names[0]} against {names[1]}: {percent(found.ratio)} ({interval(found)})."
    if found.low is None or found.high is None:
        return Judgement("not known", words)
    low, high = 1 / (1 + within), 1 + within
    factor = 1 + (found.ratio or 0.0)
    beyond = found.chance_of_beyond(high if factor > 1 else low, sides=1) or 0.0
    if found.low > high - 1 or found.high < low - 1:
        return Judgement("differs", words, min(1.0, 2 * pairs * beyond))
    verdict: Verdict = "agrees" if equivalent(found, within) else "no difference found"
    return Judgement(verdict, words, beyond if low <= factor <= high else 1 - beyond)


def keeps(policy: str, share: float, *, breaks: bool = False) -> Claim:
    """A policy leaves clients this share of their throughput alone, or less than it. That says
    something only if with another policy of the same experiment it is otherwise."""

    def judge(side: Side, names: tuple[str, ...]) -> Judgement:
        (name,) = names
        iops, alone = side.samples(name, metrics.IOPS), side.alone(name)
        if not iops or len(iops) != len(alone):
            return _UNKNOWN
        found = paired(iops, alone)
        beside, before = sum(iops) / len(iops), sum(alone) / len(alone)
        words = (
            f"{name} {with_unit(metrics.IOPS, beside)} of {with_unit(metrics.IOPS, before)} alone:"
            f" {percent(found.ratio)} ({interval(found)})."
        )
        figures = (Figure(f"{name} IOPS", iops), Figure(f"{name} IOPS alone", alone))
        kept = outcome(found, share)
        if kept == "not put to the test":
            words = f"{words} Clients alone were slower: this is no baseline."
            return Judgement(kept, words, figures=figures)
        if kept == "not known":
            return Judgement(kept, words, figures=figures)
        chance, null = found.chance_of_beyond(share), str(share)
        if kept == "too close to call":
            return Judgement("no difference found", words, chance, figures, null)
        wanted = "broken" if breaks else "kept"
        if kept == wanted and not _is_otherwise_with_another(side, name, share, kept):
            words = f"{words} No policy surely {'kept' if breaks else 'broke'} it here."
            return Judgement("not put to the test", words, figures=figures)
        verdict: Verdict = "agrees" if kept == wanted else "differs"
        return Judgement(verdict, words, chance, figures, null)

    return Claim((policy,), judge)


def untested(why: str, *settings: str) -> Claim:
    """A trend that no figures can decide, and why."""
    return Claim(settings, lambda side, names: Judgement("not put to the test", why))


def _is_otherwise_with_another(side: Side, policy: str, share: float, kept: str) -> bool:
    own, at, window = policy.partition("@")
    others = [f"{other}{at}{window}" for other in side.settings if other != own]
    pairs = [(side.samples(other, metrics.IOPS), side.alone(other)) for other in others]
    return any(
        {kept, outcome(paired(iops, alone), share)} == {"kept", "broken"}
        for iops, alone in pairs
        if iops and len(iops) == len(alone)
    )


# In bytes: some repeats recover small objects, too, three for each large one, in the same time.
_RATE: Final = metrics.RECOVERY_BANDWIDTH
_TIME: Final = metrics.SCRUB_SECONDS
_SMALL: Final = (SMALL, "large objects: they are of 256 KiB, with as many bytes in all")
_HDD_WIDE: Final = (HDD_WIDE, "narrow throttles: they are the study's, of 40 MiB")
_APART: Final = (APART, "the shared budget: reads and writes of a device have one each")
_HALF: Final = "Boosted WPQ breaks half the baseline: 2,544 of 21,500 IOPS."
_A_CLIENTS: Final = "high_client_ops leaves clients more than boosted WPQ: 11,209 IOPS, 2,544."
_A_DEFAULT: Final = "WPQ leaves clients more by default than boosted: over 18,000 IOPS, 2,544."
_B_CLIENTS: Final = "high_client_ops leaves clients more than WPQ: 24 % lost, 27 %."
_WPQ: Final = ("wpq_default", "wpq_boosted")
_HCO, _BALANCED, _HRO = "high_client_ops", "balanced", "high_recovery_ops"
_TEN_HCO, _FIVE_HCO, _FIVE_WPQ = f"ten_scrubs/{_HCO}", f"scrub/{_HCO}", "scrub/wpq"
_NO_COST: Final = (
    "The mClock of this release does not obey osd_scrub_cost: both are the same policy."
)
_TWO_TIMES: Final = (
    "The study lays the time of the scrub beside a whole load: that is higher whatever is set."
)


def _during(policy: str) -> str:
    """Clients in the time of recovery: what follows it is not beside it."""
    return f"{policy}@recovery"


TRENDS: Final = (
    # A, NVMe
    Trend(RECOVERY, _HALF, keeps(_during("wpq_boosted"), 0.5, breaks=True), *_SMALL),
    *(
        Trend(
            RECOVERY,
            f"{profile} keeps its reservation, {share:.0%} of it: {iops:,} IOPS.".replace(
                "%", " %"
            ),
            keeps(_during(profile), share),
            *_SMALL,
        )
        for profile, iops, share in (
            (_HCO, 11209, 0.5),
            (_BALANCED, 11017, 0.4),
            (_HRO, 11153, 0.3),
        )
    ),
    Trend(RECOVERY, _A_CLIENTS, more(metrics.IOPS, _during(_HCO), _during("wpq_boosted")), *_SMALL),
    Trend(
        RECOVERY,
        "Mean latency is lower with high_client_ops than with boosted WPQ: 5.7 ms, 25 ms.",
        more(metrics.MEAN, _during("wpq_boosted"), _during(_HCO)),
        *_SMALL,
        same_as=_A_CLIENTS,
    ),
    Trend(RECOVERY, _A_DEFAULT, more(metrics.IOPS, *map(_during, _WPQ)), *_SMALL),
    Trend(
        RECOVERY,
        "Mean latency is lower with WPQ by default than boosted: 3.5 ms, 25 ms.",
        more(metrics.MEAN, *map(_during, reversed(_WPQ))),
        *_SMALL,
        same_as=_A_DEFAULT,
    ),
    Trend(
        RECOVERY,
        "WPQ by default leaves clients more than high_client_ops: over 18,000 IOPS, 11,209.",
        more(metrics.IOPS, _during("wpq_default"), _during(_HCO)),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "The profiles leave clients similar throughput (11,017 to 11,209 IOPS; here: within 5 %).",
        alike(metrics.IOPS, 0.05, *map(_during, (_HRO, _BALANCED, _HCO))),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "balanced recovers faster than high_client_ops: 120 objects/s, 80.",
        more(_RATE, _BALANCED, _HCO),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "high_recovery_ops recovers faster than balanced: 159 objects/s, 120.",
        more(_RATE, _HRO, _BALANCED),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "Boosted WPQ recovers faster than high_recovery_ops: 350 objects/s, 159.",
        more(_RATE, "wpq_boosted", _HRO),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "Boosted WPQ recovers faster than WPQ by default: 350 objects/s, 97.",
        more(_RATE, *reversed(_WPQ)),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "WPQ by default recovers faster than high_client_ops: 97 objects/s, 80.",
        more(_RATE, "wpq_default", _HCO),
        *_SMALL,
    ),
    Trend(
        RECOVERY,
        "balanced recovers faster than WPQ by default: 120 objects/s, 97.",
        more(_RATE, _BALANCED, "wpq_default"),
        *_SMALL,
    ),
    # A, HDD with WAL and DB on a fast device
    Trend(
        HDD,
        "HDD: boosted WPQ breaks half the baseline: 146 of 340 IOPS.",
        keeps(_during("wpq_boosted"), 0.5, breaks=True),
        *_HDD_WIDE,
    ),
    Trend(
        HDD,
        "HDD: high_client_ops keeps half of it: 271 IOPS.",
        keeps(_during(_HCO), 0.5),
    ),
    Trend(
        HDD,
        "HDD: WPQ by default leaves clients more than high_client_ops: 308 IOPS, 271.",
        more(metrics.IOPS, _during("wpq_default"), _during(_HCO)),
        *_HDD_WIDE,
    ),
    Trend(
        HDD,
        "HDD: high_client_ops leaves clients more than boosted WPQ: 271 IOPS, 146.",
        more(metrics.IOPS, _during(_HCO), _during("wpq_boosted")),
        *_HDD_WIDE,
    ),
    Trend(
        HDD,
        "HDD: high_client_ops leaves clients more than balanced: 271 IOPS, 248.",
        more(metrics.IOPS, _during(_HCO), _during(_BALANCED)),
    ),
    Trend(
        HDD,
        "HDD: balanced leaves clients more than high_recovery_ops: 248 IOPS, 240.",
        more(metrics.IOPS, _during(_BALANCED), _during(_HRO)),
    ),
    Trend(
        HDD,
        "HDD: balanced recovers faster than high_client_ops: 4 objects/s, 3.",
        more(_RATE, _BALANCED, _HCO),
    ),
    Trend(
        HDD,
        "HDD: high_recovery_ops recovers faster than balanced: 5 objects/s, 4.",
        more(_RATE, _HRO, _BALANCED),
    ),
    Trend(
        HDD,
        "HDD: WPQ by default recovers in about the time of high_recovery_ops: 647 s, 747 s (here:"
        " at a like rate, within 25 %).",
        alike(_RATE, 0.25, "wpq_default", _HRO),
        *_HDD_WIDE,
    ),
    *(
        Trend(
            HDD,
            f"HDD: WPQ by default recovers faster than {profile}: 23 MiB/s, {rate}.",
            more(_RATE, "wpq_default", profile),
            *_HDD_WIDE,
            late=True,
        )
        for profile, rate in ((_HCO, "11"), (_BALANCED, "16.5"))
    ),
    # B, scrub. With one budget of reads and writes any scrub costs clients throughput: whether a
    # scheduler lets it is seen where each has its own.
    *(
        Trend(
            APART,
            f"Clients lose throughput with {policy}: {lost} of 15,007 IOPS.",
            more(metrics.IOPS, f"{policy}@alone", policy),
        )
        for policy, lost in (("wpq", "27 %"), (_HCO, "24 %"))
    ),
    Trend(SCRUB, _B_CLIENTS, more(metrics.IOPS, _HCO, "wpq"), *_APART),
    Trend(
        SCRUB,
        "Mean latency is lower with high_client_ops than with WPQ: by about 3 %.",
        more(metrics.MEAN, "wpq", _HCO),
        *_APART,
        same_as=_B_CLIENTS,
    ),
    Trend(
        SCRUB,
        "While it scrubs, mean latency is lower with high_client_ops than with WPQ.",
        more(metrics.MEAN, "wpq@scrub", f"{_HCO}@scrub"),
        *_APART,
        late=True,
    ),
    Trend(
        SCRUB,
        "balanced leaves clients more than WPQ.",
        more(metrics.IOPS, _BALANCED, "wpq"),
        *_APART,
    ),
    Trend(
        SCRUB, "high_recovery_ops leaves clients more than WPQ.", more(metrics.IOPS, _HRO, "wpq")
    ),
    *(
        Trend(
            SCRUB,
            f"high_client_ops leaves clients slightly more than {profile}.",
            more(metrics.IOPS, _HCO, profile),
        )
        for profile in (_BALANCED, _HRO)
    ),
    Trend(
        SCRUB,
        "The scrub ends sooner with WPQ than with high_client_ops.",
        more(_TIME, _HCO, "wpq"),
        *_APART,
    ),
    *(
        Trend(
            SCRUB,
            f"The scrub ends sooner with WPQ than with {profile}: in the least time of all.",
            more(_TIME, profile, "wpq"),
        )
        for profile in (_BALANCED, _HRO)
    ),
    Trend(
        SCRUB,
        "The scrub ends sooner with high_client_ops than with balanced.",
        more(_TIME, _BALANCED, _HCO),
    ),
    Trend(
        SCRUB,
        "The scrub ends sooner with balanced than with high_recovery_ops, which takes longest.",
        more(_TIME, _HRO, _BALANCED),
    ),
    Trend(
        SCRUB,
        "The custom profile, with 90 % for best effort, ends the scrub sooner than WPQ.",
        more(_TIME, "wpq", "custom"),
    ),
    Trend(
        SCRUB,
        "The custom profile ends the scrub sooner than high_client_ops.",
        more(_TIME, _HCO, "custom"),
    ),
    # B, parameters of scrub
    Trend(
        TEN,
        "Ten scrubs at once end sooner than five: in half the time. Here: with high_client_ops.",
        more(_TIME, _FIVE_HCO, _TEN_HCO),
    ),
    Trend(
        TEN,
        "Ten scrubs with high_client_ops end sooner than five with WPQ: in 44 % less time.",
        more(_TIME, _FIVE_WPQ, _TEN_HCO),
        late=True,
    ),
    Trend(
        TEN,
        "Ten scrubs with high_client_ops leave clients 6 % less than five with WPQ.",
        more(metrics.IOPS, _FIVE_WPQ, _TEN_HCO),
    ),
    Trend(
        TEN,
        "While ten scrub, mean latency is 20 % higher than with WPQ: 7 ms, 5.8 ms.",
        untested(_TWO_TIMES, f"{_TEN_HCO}@scrub", _FIVE_WPQ),
    ),
    *(
        Trend(
            COST,
            f"With a requested priority of 120 WPQ ends the scrub sooner than {profile}.",
            more(_TIME, f"cost_50m/{profile}", "cost_50m/wpq"),
        )
        for profile in PROFILES
    ),
    Trend(
        COST,
        "With high_client_ops a scrub of cost 20 MiB ends sooner than one of 50 MiB.",
        untested(_NO_COST, f"cost_50m/{_HCO}", f"cost_20m/{_HCO}"),
    ),
    Trend(
        COST,
        "With cost 20 MiB a scrub takes about as long as with WPQ of priority 120.",
        untested(_NO_COST, f"cost_20m/{_HRO}", "cost_50m/wpq"),
    ),
    *(
        Trend(
            COST,
            f"{profile} with cost 20 MiB leaves clients more than WPQ with priority 120.",
            more(metrics.IOPS, f"cost_20m/{profile}", "cost_50m/wpq"),
        )
        for profile in PROFILES
    ),
    Trend(
        COST,
        "With cost 20 MiB, high_client_ops leaves clients more than high_recovery_ops.",
        more(metrics.IOPS, f"cost_20m/{_HCO}", f"cost_20m/{_HRO}"),
    ),
    # B, scrub and recovery
    Trend(
        BOTH,
        "Beside scrub and recovery the profiles leave clients alike (here: within 5 %).",
        alike(metrics.IOPS, 0.05, _HRO, _BALANCED, _HCO),
    ),
    *(
        Trend(
            BOTH,
            f"Beside a scrub {profile} recovers faster than WPQ.",
            more(_RATE, profile, "wpq"),
        )
        for profile in (_HCO, _BALANCED, _HRO)
    ),
)
COUNTED: Final = tuple(trend for trend in TRENDS if not trend.same_as)


def judged(sides: Sides) -> Iterator[Found]:
    """Every trend with what these runs say to it. Those of one experiment and one set of
    allocations are judged together."""
    today = _together({t.published: t.claim(sides.get(t.study.name)) for t in TRENDS})
    then = _together(
        {
            t.published: t.claim(sides.get(t.study.name), published=True)
            for t in TRENDS
            if t.has_both
        }
    )
    for trend in TRENDS:
        here, there = today[trend.published], then.get(trend.published)
        yield Found(trend, here, there, tuple(_others(trend, here, there, sides)))


def _together(found: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """The judgements; of those that decide and do not stand, that they may be chance."""
    stand = standing(found)
    decides = {trend.published: trend.same_as or trend.published for trend in TRENDS}
    return {
        text: replace(judgement, verdict="may be chance")
        if judgement.verdict in DECIDED and not stand[decides[text]]
        else judgement
        for text, judgement in found.items()
    }


def standing(found: Mapping[str, Judgement]) -> dict[str, bool]:
    """By trend, whether it stands among all counted trends of its experiment. Those that were not
    compared count too: so no verdict depends on what else is finished."""
    stand: dict[str, bool] = {}
    for experiment in EXPERIMENTS:
        family = {
            trend.published: 1.0 if (chance := found[trend.published].chance) is None else chance
            for trend in COUNTED
            if trend.study == experiment and trend.published in found
        }
        stand |= zip(family, holm(list(family.values())), strict=True)
    return stand


def _others(
    trend: Trend, here: Judgement, there: Judgement | None, sides: Sides
) -> Iterator[Other]:
    """Where the study's own allocations, or a control by itself, have another verdict, and it or
    the trend's own is decided."""
    found = []
    if there:
        found.append(("With the study's own allocations", there, True))
    if trend.control:
        control = trend.claim(sides.get(trend.control.name))
        found.append((f"Without {trend.without}", control, False))
    for under, other, same in found:
        # A share that all policies keep is no verdict, but its figures show what large objects do.
        shown = other.verdict in COMPARED or (
            other.verdict == "not put to the test" and other.figures
        )
        compared_both = here.verdict in COMPARED and shown
        decided = here.verdict in DECIDED or other.verdict in DECIDED
        if compared_both and decided and here.verdict != other.verdict:
            yield Other(under, other, ratios_differ(here.figures, other.figures, same=same))
