"""What advice is made from: what each OSD's classes were given and got, and what it did.

`cephqos_insight/advise/from_prometheus.py` fills `Facts` from a Prometheus, and
`cephqos_loadgen/report/figures/advice_facts.py` from an archive. `checked` chooses the cluster.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from cephqos_base.errors import CephqosError
from cephqos_base.profiles import Share, release_that_gives
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED, QosSeries, RecoverySeries, ScrubSeries
from cephqos_base.time_left import TimeLeft

# What is read from an archive, besides what the judge needs.
FAMILIES: Final = frozenset(
    {
        QosSeries.DELIVERED_IS_LOWER_BOUND,
        QosSeries.LIMIT_RATIO,
        QosSeries.RESERVATION_RATIO,
        RecoverySeries.CLUSTER_ETA_SECONDS,
        RecoverySeries.POOL_DEGRADED_OBJECTS,
        RecoverySeries.POOL_MISPLACED_OBJECTS,
        RecoverySeries.POOL_OBJECTS,
        ScrubSeries.POOL_BACKLOG_ETA_SECONDS,
    }
)
MCLOCK: Final = "mclock_scheduler"
WPQ: Final = "wpq"
LEAST_PIECES: Final = 3  # one or two pieces of the time may be an exception
_BEST_SHARE: Final = 0.25
# Recovery's counted operations explain the recovered copies if there are half as many or more.
_MOSTLY: Final = 0.5
# Shares as a Prometheus has them are not exact.
_DIGITS: Final = 6


class NoAdvice(CephqosError):
    """The records are too few, or too different among OSDs, for any advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePiece:
    """An OSD in a piece of the time (a minute or so). Work is in normalised operations/s."""

    attained: Mapping[str, float]  # by class
    demand: frozenset[str]  # classes that had demand on this OSD for most of the piece
    delivered: float  # by all classes and replica writes
    demand_elsewhere: frozenset[str] = frozenset()  # classes that had demand on another OSD
    violated_seconds: float = 0.0  # summed over the classes

    @property
    def demand_anywhere(self) -> frozenset[str]:
        """Clients that wait for another OSD may ask more of this one, once that OSD does more."""
        return self.demand | self.demand_elsewhere

    @property
    def replica_writes(self) -> float:
        """What the OSD did besides the classes."""
        return max(0.0, self.delivered - sum(self.attained.values()))


class SaturatedOps(NamedTuple):
    """What an OSD does for certain when it is saturated, and the most that it can do for certain,
    in normalised operations/s."""

    least: float
    most: float


def saturated_range(rates: Sequence[float], most: float) -> SaturatedOps | None:
    """From what an OSD delivered in the pieces in which it was saturated, and the most that it
    delivered at any time; None if it was not saturated often enough.

    It always did the least of them, and it can do what it once did.
    """
    if len(rates) < LEAST_PIECES:
        return None
    return SaturatedOps(min(rates), max(*rates, most))


def best_rates(rates: Sequence[float]) -> list[float]:
    """The highest first. The best quarter speaks for an OSD's capacity: in the other pieces it also
    scrubbed, trimmed or compacted, which is in no counter."""
    ranked = sorted(rates, reverse=True)
    return ranked[: max(LEAST_PIECES, math.ceil(_BEST_SHARE * len(ranked)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedOsd:
    """An OSD: how it is set up, and what it did."""

    osd: str  # "osd.3"
    in_force: str  # the scheduler: MCLOCK, WPQ, or "" while it is not known
    profile: str = ""
    model: str = "bandwidth"  # how mClock costs an operation; "": not known, as on 16.2
    media: str = ""  # "ssd" or "hdd"
    capacity_origin: str = ""  # "default", "mon" or "local"
    capacity: float | None = None
    shares: Mapping[str, Share] = field(default_factory=dict)  # by class, as they are set now
    most_delivered: float = 0.0  # in any piece
    saturated_ops: SaturatedOps | None = None  # None: not seen saturated often enough
    suggested_capacity: float | None = None  # what `cephqos capacity` would set
    delivered_is_lower_bound: bool = False  # some work is in no counter
    pieces: Sequence[AdvicePiece] = ()

    @property
    def proven_ops(self) -> float:
        """The OSD can do this much for certain."""
        return self.saturated_ops.least if self.saturated_ops else self.most_delivered

    @property
    def ceiling_ops(self) -> float | None:
        """The OSD cannot do more than this for certain; None if that is not known."""
        return self.saturated_ops.most if self.saturated_ops else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryBacklog:
    """Copies of objects to recover, and what recovery did in the time."""

    degraded: float | None = None
    misplaced: float | None = None
    recovered: float = 0.0  # copies
    # Normalised operations of the class background_recovery, by OSD.
    work: Mapping[str, float] = field(default_factory=dict)

    @property
    def copies(self) -> float | None:
        known = [copies for copies in (self.degraded, self.misplaced) if copies is not None]
        return sum(known) if known else None

    @property
    def work_class(self) -> str | None:
        """The class that does the work; None if it is not known.

        Degraded data is recovered as background_recovery. Misplaced data is too, if the log of its
        placement group reaches back far enough; otherwise it is backfilled as best effort. Which of
        the two happened shows in the recorded work.
        """
        if self.recovered and sum(self.work.values()) >= _MOSTLY * self.recovered:
            return RECOVERY
        return None if self.misplaced else RECOVERY

    @property
    def ops_per_copy(self) -> float:
        """As measured; a copy costs one operation at least."""
        if not self.recovered or self.work_class != RECOVERY:
            return 1.0
        return max(1.0, sum(self.work.values()) / self.recovered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A cluster in a stretch of time. After `checked`, all OSDs have one scheduler and profile."""

    cluster: str
    seconds: float
    osds: Sequence[AdvisedOsd]
    backlog: RecoveryBacklog = RecoveryBacklog()
    recovery_end: TimeLeft | None = None  # not known
    scrub_end: TimeLeft | None = None  # of all that are due
    left_out: int = 0  # OSDs whose scheduler is not known at present

    @property
    def in_force(self) -> str:
        return self.osds[0].in_force

    @property
    def profile(self) -> str:
        return self.osds[0].profile

    @property
    def release(self) -> int | None:
        """The Ceph release whose profiles are in force; None if it is not known or they differ."""
        releases = {release_of(osd) for osd in self.osds}
        return releases.pop() if len(releases) == 1 else None


def release_of(osd: AdvisedOsd) -> int | None:
    """The release whose profile gives the shares of this OSD: 18, 20 or 21."""
    if not osd.shares:
        return None
    bounds = {
        cls: (
            None if share.reservation is None else round(share.reservation, _DIGITS),
            round(share.limit, _DIGITS),
        )
        for cls, share in osd.shares.items()
    }
    return release_that_gives(osd.profile, bounds)


def checked(facts: Iterable[Facts], cluster: str = "") -> Facts:
    """The cluster to advise; NoAdvice if it is not clear which, or too little is known of it."""
    chosen = _only_cluster(facts, cluster)
    known = [osd for osd in chosen.osds if osd.in_force]
    if known:
        chosen = replace(chosen, osds=known, left_out=len(chosen.osds) - len(known))
    osds = chosen.osds
    _refuse_several("schedulers", [osd.in_force for osd in osds])
    _refuse_several("profiles", [osd.profile for osd in osds if osd.in_force == MCLOCK])
    if without := sum(not osd.model for osd in osds if osd.in_force == MCLOCK):
        raise NoAdvice(
            f"found no cost model of {without} OSDs, as under the mClock of 16.2 and early 17.2,"
            " which is not supported; expected 18.2 or later"
        )
    if chosen.in_force not in (MCLOCK, WPQ):
        raise NoAdvice(
            f"found scheduler {chosen.in_force or 'unknown'!r}; expected {MCLOCK} or {WPQ}"
        )
    longest = max(len(osd.pieces) for osd in osds)
    if longest < LEAST_PIECES:
        raise NoAdvice(
            f"found figures of {longest} pieces of the time; expected {LEAST_PIECES} or more. Use a"
            " longer --since, or wait"
        )
    return chosen


def _only_cluster(facts: Iterable[Facts], wanted: str) -> Facts:
    """The cluster of that fsid, or the only one if none is wanted."""
    clusters = {it.cluster: it for it in facts if it.osds and wanted in ("", it.cluster)}
    if not clusters:
        raise NoAdvice(
            f"found no OSD of {wanted or 'any cluster'}; expected the series of exporters and of"
            " the recording rules. See cephqos doctor prometheus"
        )
    if len(clusters) > 1:
        names = ", ".join(sorted(clusters))
        raise NoAdvice(f"found {len(clusters)} clusters: {names}; use --cluster")
    return next(iter(clusters.values()))


def _refuse_several(what: str, of_osds: Sequence[str]) -> None:
    """`of_osds`: a value for each OSD, which must be the same for all."""
    if len(set(of_osds)) > 1:
        counts = ", ".join(f"{value} {osds}" for value, osds in sorted(Counter(of_osds).items()))
        raise NoAdvice(f"found several {what}: {counts} OSDs; expected one in the cluster")


def mean_client_ops(osd: AdvisedOsd) -> float:
    """What clients attained on average."""
    if not osd.pieces:
        return 0.0
    return sum(piece.attained.get(CLIENT, 0.0) for piece in osd.pieces) / len(osd.pieces)


def shares_from(
    reservations: Mapping[str, float], limits: Mapping[str, float]
) -> Mapping[str, Share]:
    """From the ratios that exporters show. No ratio: no limit, or an unknown reservation."""
    if not reservations:
        return {}
    return {cls: Share(reservations.get(cls), None, limits.get(cls, 0.0)) for cls in SCHEDULED}
