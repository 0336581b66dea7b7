"""What advice is made from: what each OSD's classes were given and got, and what it did."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cephqos_base.errors import CephqosError
from cephqos_base.profiles import Share, release_that_gives
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED, QosSeries, RecoverySeries

# What an archive is read for, beside what the judge needs.
FAMILIES: Final = frozenset(
    {
        QosSeries.DELIVERED_IS_LOWER_BOUND,
        QosSeries.LIMIT_RATIO,
        QosSeries.RESERVATION_RATIO,
        RecoverySeries.POOL_DEGRADED_OBJECTS,
        RecoverySeries.POOL_MISPLACED_OBJECTS,
        RecoverySeries.POOL_OBJECTS,
    }
)
MCLOCK: Final = "mclock_scheduler"
WPQ: Final = "wpq"
LEAST_PIECES: Final = 3  # fewer may be one odd moment
_MOSTLY: Final = 0.5
# Shares as a Prometheus has them are not exact.
_DIGITS: Final = 6


class NoAdvice(CephqosError):
    """What is recorded does not allow any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePiece:
    """An OSD in a piece of the time, in normalised operations per second."""

    attained: Mapping[str, float]  # by class
    demand: frozenset[str]  # the classes that had demand for most of it
    delivered: float
    elsewhere: frozenset[str] = frozenset()  # and those that had it then on another OSD
    violated: float = 0.0  # seconds of any class

    @property
    def wanted(self) -> frozenset[str]:
        """What waits for one OSD may ask more of each once that one does more."""
        return self.demand | self.elsewhere

    @property
    def immediate(self) -> float:
        """What it did besides the classes: replica writes."""
        return max(0.0, self.delivered - sum(self.attained.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedOsd:
    """An OSD: how it is set up, and what it did."""

    osd: str
    in_force: str
    profile: str = ""
    model: str = "bandwidth"
    media: str = ""
    origin: str = ""  # of the capacity
    capacity: float | None = None
    present: Mapping[str, Share] = field(default_factory=dict)
    most: float = 0.0  # delivered in any piece
    can_do: tuple[float, float] | None = None  # between these; None: not known
    suggested: float | None = None  # the capacity that `cephqos capacity` would set
    not_all_counted: bool = False  # what is delivered is a lower bound
    pieces: Sequence[AdvicePiece] = ()


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
        known = [it for it in (self.degraded, self.misplaced) if it is not None]
        return sum(known) if known else None

    @property
    def cls(self) -> str | None:
        """The class of its work; None if that is not known. Data that is misplaced is backfilled as
        best effort, or, if its placement group's log reaches back far enough, recovered as degraded
        data is: the recorded work tells.
        """
        if self.recovered and sum(self.work.values()) >= _MOSTLY * self.recovered:
            return RECOVERY
        return None if self.misplaced else RECOVERY

    @property
    def ops_per_copy(self) -> float:
        """As measured; each costs one at least."""
        if not self.recovered or self.cls != RECOVERY:
            return 1.0
        return max(1.0, sum(self.work.values()) / self.recovered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A cluster in a stretch of time."""

    cluster: str
    seconds: float
    osds: Sequence[AdvisedOsd]
    backlog: RecoveryBacklog = RecoveryBacklog()
    left_out: int = 0  # OSDs whose scheduler is not known at present

    @property
    def in_force(self) -> str:
        return self.osds[0].in_force

    @property
    def profile(self) -> str:
        return self.osds[0].profile

    @property
    def release(self) -> int | None:
        """The one whose rules are in force, known by what the profile gives."""
        releases = {release_of(osd) for osd in self.osds}
        return releases.pop() if len(releases) == 1 else None


def release_of(osd: AdvisedOsd) -> int | None:
    if osd.model != "bandwidth" or not osd.present:
        return None
    bounds = {
        cls: (
            None if share.reservation is None else round(share.reservation, _DIGITS),
            round(share.limit, _DIGITS),
        )
        for cls, share in osd.present.items()
    }
    return release_that_gives(osd.profile, bounds)


def checked(facts: Iterable[Facts], cluster: str = "") -> Facts:
    """The cluster to advise; NoAdvice if it is not clear which, or too little is known of it."""
    clusters = {it.cluster: it for it in facts if it.osds and cluster in ("", it.cluster)}
    if not clusters:
        raise NoAdvice(
            f"found no OSD of {cluster or 'any cluster'}; expected the series of exporters and of"
            " the recording rules. See cephqos doctor prometheus"
        )
    if len(clusters) > 1:
        names = ", ".join(sorted(clusters))
        raise NoAdvice(f"found {len(clusters)} clusters: {names}; use --cluster")
    (one,) = clusters.values()
    known = [it for it in one.osds if it.in_force]
    if known:
        one = replace(one, osds=known, left_out=len(one.osds) - len(known))
    for what, values in (
        ("schedulers", [it.in_force for it in one.osds]),
        ("profiles", [it.profile for it in one.osds if it.in_force == MCLOCK]),
        ("cost models", [it.model or "unknown" for it in one.osds]),
    ):
        if len(set(values)) > 1:
            counts = ", ".join(f"{name} {n}" for name, n in sorted(Counter(values).items()))
            raise NoAdvice(f"found several {what}: {counts} OSDs; expected one in the cluster")
    if one.in_force not in (MCLOCK, WPQ):
        raise NoAdvice(f"found scheduler {one.in_force or 'unknown'!r}; expected {MCLOCK} or {WPQ}")
    longest = max(len(it.pieces) for it in one.osds)
    if longest < LEAST_PIECES:
        raise NoAdvice(
            f"found figures of {longest} pieces of the time; expected {LEAST_PIECES} or more. Use a"
            " longer --since, or wait"
        )
    return one


def clients_of(osd: AdvisedOsd) -> float:
    """What clients attained on average."""
    pieces = osd.pieces
    return sum(it.attained.get(CLIENT, 0.0) for it in pieces) / len(pieces) if pieces else 0.0


def bounds_of(
    reservations: Mapping[str, float], limits: Mapping[str, float]
) -> Mapping[str, Share]:
    """From shares as exporters show them. Absent: no limit, or an unknown reservation."""
    if not reservations:
        return {}
    return {cls: Share(reservations.get(cls), None, limits.get(cls, 0.0)) for cls in SCHEDULED}
