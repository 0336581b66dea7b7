"""Fit the model to recorded runs, predict others, and say how far off it is.

A figure that the model does not predict better than two simple predictors, by the margin here, is
unknown: nothing may be advised from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from statistics import fmean, median
from typing import Final, Literal

from scipy import stats
from tests.model.scheduler.parts import (
    CLIENT_PRIORITY,
    RECOVERY_PRIORITY,
    Clients,
    Place,
    RecoveryWork,
    Store,
)
from tests.model.scheduler.simulate import Outcome, Trial, simulate

from cephqos_base.profiles import shares_of
from cephqos_base.series import CLIENT
from cephqos_exporter.qos.cost_models import BandwidthModel, QosState, settings_of

Figure = Literal["iops", "p50", "p95", "p99", "recovery_seconds"]
FIGURES: Final[tuple[Figure, ...]] = ("iops", "p50", "p95", "p99", "recovery_seconds")
# The median error must be below this share of that of each simple predictor, and so many of the
# intervals must hold what was measured. Both are choices: a quarter better is worth a simulation,
# and an interval that is to hold nine in ten may miss one more in a small set.
MARGIN: Final = 0.75
COVERAGE: Final = 0.8
INTERVAL: Final = 0.9
_LONGEST: Final = 240.0  # simulated seconds
_PARAMETERS: Final = 2  # that are fitted: seconds of a commit, and the spread of all seconds
_SPREADS: Final = (0.7, 1.2, 1.7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A recorded run: what was asked, and what came of it with and without recovery beside."""

    policy: str  # wpq, or a profile of mClock
    release: int
    capacity: float
    bandwidth: float
    osds: int
    copies: int
    shards: int
    threads: int
    throttle_bytes: float
    device_iops: int
    depth: int
    objects: int
    object_size: int
    groups: int  # placement groups that lacked objects
    work: str  # the class of the recovery
    # Placement groups are uneven. By OSD: shares of the client writes as the primary, of replica
    # writes, and of the pushes. The one that pushes nothing is recovered to.
    primaries: Sequence[float]
    replicas: Sequence[float]
    sources: Sequence[float]
    alone: Mapping[str, float]  # figures of clients with nothing beside them
    during: Mapping[str, float]

    @property
    def qos(self) -> QosState | None:
        shares = shares_of(self.release, self.policy)
        if shares is None:
            return None
        return QosState(
            cost=BandwidthModel(bandwidth=self.bandwidth, iops=self.capacity),
            media="ssd",
            shards=self.shards,
            capacity_origin="mon",
            classes={name: settings_of(share, self.capacity) for name, share in shares.items()},
            recovery_item_bytes=None,
        )

    def trial(self, store: Store, *, recovering: bool) -> Trial:
        backlog = RecoveryWork(
            objects=self.objects,
            size=self.object_size,
            groups=self.groups,
            work=self.work,
            target=min(range(self.osds), key=lambda osd: self.sources[osd]),
            sources=self.sources,
        )
        return Trial(
            place=Place(
                osds=self.osds,
                copies=self.copies,
                store=replace(store, throttle_bytes=self.throttle_bytes),
                qos=self.qos,
                shards=self.shards,
                threads=self.threads,
                placements=pairs_of(self.primaries, self.replicas),
            ),
            clients=Clients(depth=self.depth),
            backlog=backlog if recovering else None,
            seconds=_LONGEST if recovering else 25.0,
            warm_up=0.0 if recovering else 5.0,
            until_done=recovering,
        )


def pairs_of(
    primaries: Sequence[float], replicas: Sequence[float]
) -> Mapping[Sequence[int], float]:
    """How often two OSDs hold a placement group, from how often each is the one and the other."""
    osds = range(len(primaries))
    pairs = {(a, b): primaries[a] * replicas[b] for a in osds for b in osds if a != b}
    for _ in range(50):  # in turn until both fit: an OSD is not its own replica
        for side, shares in enumerate((primaries, replicas)):
            sums = [sum(v for pair, v in pairs.items() if pair[side] == osd) for osd in osds]
            pairs = {p: v * shares[p[side]] / (sums[p[side]] or 1.0) for p, v in pairs.items()}
    return {pair: share for pair, share in pairs.items() if share > 0}


def figures_of(outcome: Outcome) -> dict[Figure, float]:
    found = {
        "iops": outcome.iops,
        "p50": outcome.latency(0.5),
        "p95": outcome.latency(0.95),
        "p99": outcome.latency(0.99),
        "recovery_seconds": outcome.recovery_seconds,
    }
    return {name: found[name] for name in FIGURES if found[name]}  # type: ignore[misc]


def predict(run: Recorded, store: Store) -> dict[Figure, float]:
    """The figures of the run with recovery; without that of a recovery that does not end."""
    return figures_of(simulate(run.trial(store, recovering=True)))


def fit(runs: Sequence[Recorded]) -> Store:
    """The service curve with which clients alone come nearest to what they got in the runs.

    The lab holds the reads and the writes of a device to so many per second each. A write is one,
    and a commit takes as long as makes clients alone get what they got: about two.
    """
    request = 1 / runs[0].device_iops
    tried = [
        _with_rate(
            runs,
            Store(
                read_seconds=request,
                write_seconds=request,
                commit_seconds=2 * request,
                spread=spread,
                apart=True,
            ),
        )
        for spread in _SPREADS
    ]
    return min(
        tried,
        key=lambda store: _error(
            (figures_of(simulate(run.trial(store, recovering=False))), run.alone) for run in runs
        ),
    )


def _with_rate(runs: Sequence[Recorded], store: Store) -> Store:
    ratio = median(
        simulate(run.trial(store, recovering=False)).iops / run.alone["iops"] for run in runs
    )
    both = (store.write_seconds + store.commit_seconds) * ratio
    return replace(store, commit_seconds=max(both - store.write_seconds, 0.0001))


def _error(pairs: Iterable[tuple[Mapping[Figure, float], Mapping[str, float]]]) -> float:
    """Mean distance of predicted from measured, in powers of e; what did not end counts as 2."""
    return fmean(
        abs(log(predicted[name] / measured[name])) if name in predicted else 2.0
        for predicted, measured in pairs
        for name in FIGURES
        if measured.get(name)
    )


# -- simple predictors -----------------------------------------------------------------------------


def nothing_changes(run: Recorded, known: Sequence[Recorded]) -> dict[Figure, float]:
    """What was measured under the other policies at the same depth."""
    alike = [each for each in known if each.depth == run.depth] or list(known)
    return {
        name: median(values)
        for name in FIGURES
        if (values := [each.during[name] for each in alike if each.during.get(name)])
    }


def by_reservation(run: Recorded, known: Sequence[Recorded]) -> dict[Figure, float]:
    """Each class gets of what clients have alone what is reserved for it, or its weight."""
    alike = [each for each in known if each.depth == run.depth] or list(known)
    alone = {name: median(each.alone[name] for each in alike) for name in ("iops", "p50", "p99")}
    alone["p95"] = median(each.alone["p95"] for each in alike)
    share = _client_share(run)
    rate = alone["iops"] * run.copies / run.osds * (1 - share)
    return {
        "iops": alone["iops"] * share,
        "p50": alone["p50"] / share,
        "p95": alone["p95"] / share,
        "p99": alone["p99"] / share,
        "recovery_seconds": run.objects / rate,
    }


def _client_share(run: Recorded) -> float:
    qos = run.qos
    if qos is None:
        return CLIENT_PRIORITY / (CLIENT_PRIORITY + RECOVERY_PRIORITY)
    client, other = qos.classes[CLIENT], qos.classes[run.work]
    if client.reservation and other.reservation:
        return client.reservation / (client.reservation + other.reservation)
    return client.weight / (client.weight + other.weight)


# -- judgement -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureError:
    """How far off the predictions of a figure are, as shares; `known` is the verdict."""

    figure: Figure
    runs: int
    model: float
    nothing_changes: float
    by_reservation: float
    coverage: float

    @property
    def known(self) -> bool:
        simple = min(self.nothing_changes, self.by_reservation)
        return self.model <= MARGIN * simple and self.coverage >= COVERAGE


@dataclass(frozen=True, kw_only=True, slots=True)
class Predicted:
    """A figure of a run that the fit has not seen."""

    run: Recorded
    figure: Figure
    measured: float
    model: float | None
    nothing_changes: float | None
    by_reservation: float | None
    factor: float  # the interval reaches from model / factor to model x factor

    @property
    def covered(self) -> bool:
        """An interval without end holds nothing."""
        return self.factor < inf and _off(self.model, self.measured) <= self.factor


def cross_predict(runs: Sequence[Recorded]) -> list[Predicted]:
    """Fit to one half and predict the other, both ways round.

    A policy is in one half with each second depth, and in the other with the rest.
    """
    policies = sorted({run.policy for run in runs})
    depths = sorted({run.depth for run in runs})
    halves = [
        [r for r in runs if (policies.index(r.policy) + depths.index(r.depth)) % 2 == half]
        for half in (0, 1)
    ]
    return [each for known, asked in (halves, halves[::-1]) for each in _predict_half(known, asked)]


def _predict_half(known: Sequence[Recorded], asked: Sequence[Recorded]) -> Iterable[Predicted]:
    store = fit(known)
    seen = [(predict(run, store), run.during) for run in known]
    for run in asked:
        model = predict(run, store)
        simple = nothing_changes(run, known), by_reservation(run, known)
        for name in FIGURES:
            if not run.during.get(name):
                continue
            offs = [_off(p.get(name), m[name]) for p, m in seen if m.get(name)]
            yield Predicted(
                run=run,
                figure=name,
                measured=run.during[name],
                model=model.get(name),
                nothing_changes=simple[0].get(name),
                by_reservation=simple[1].get(name),
                factor=_wide(offs),
            )


def _off(predicted: float | None, measured: float) -> float:
    """By which factor the two differ: 1 is exact."""
    return exp(abs(log(predicted / measured))) if predicted else inf


def _wide(offs: Sequence[float]) -> float:
    """The factor that holds INTERVAL of new runs, if errors are normal in logarithms. The fit has
    come as near to its own runs as its parameters allow, so these do not count as evidence."""
    free = len(offs) - _PARAMETERS
    if free < 1 or inf in offs:
        return inf
    spread = sqrt(sum(log(off) ** 2 for off in offs) / free)
    return exp(float(stats.t.ppf((1 + INTERVAL) / 2, free)) * spread * sqrt(1 + 1 / len(offs)))


def errors(predicted: Sequence[Predicted]) -> list[FigureError]:
    """The median error of each figure, and how many intervals held what was measured."""
    return [
        FigureError(
            figure=name,
            runs=len(mine),
            model=_median_error((p.model, p.measured) for p in mine),
            nothing_changes=_median_error((p.nothing_changes, p.measured) for p in mine),
            by_reservation=_median_error((p.by_reservation, p.measured) for p in mine),
            coverage=fmean(p.covered for p in mine),
        )
        for name in FIGURES
        if (mine := [p for p in predicted if p.figure == name])
    ]


def _median_error(pairs: Iterable[tuple[float | None, float]]) -> float:
    """As a share of what was measured; what was not predicted is off by everything."""
    return median(abs(p - m) / m if p else 1.0 for p, m in pairs)
