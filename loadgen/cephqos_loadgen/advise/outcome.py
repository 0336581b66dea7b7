"""What a candidate would give, as far as arithmetic with what was recorded goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from cephqos_base.judge import BOUNDS
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED
from cephqos_loadgen.advise.candidates import Candidate
from cephqos_loadgen.advise.facts import MCLOCK, AdvicePiece, AdvisedOsd, Facts

Verdict = Literal["kept", "violated", "unknown", "none"]
_ALL: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a candidate gives. `reserved` and `limits` are of all OSDs together, None if unknown."""

    candidate: Candidate
    reserved: Mapping[str, float | None]
    limits: Mapping[str, float | None]  # only of the classes that have one
    verdicts: Mapping[str, Verdict]  # by OSD
    backlog_seconds: float | None  # at least; None: not known

    @property
    def violated(self) -> int:
        return sum(it == "violated" for it in self.verdicts.values())

    @property
    def undecided(self) -> int:
        return sum(it == "unknown" for it in self.verdicts.values())


def outcome(candidate: Candidate, facts: Facts) -> Outcome:
    return Outcome(
        candidate=candidate,
        reserved={} if candidate.scheduler != MCLOCK else _reserved(candidate, facts),
        limits={} if candidate.scheduler != MCLOCK else _limits(candidate, facts),
        verdicts={osd.osd: verdict(candidate, osd) for osd in facts.osds},
        backlog_seconds=backlog_seconds(candidate, facts),
    )


def reservation(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    """In normalised operations per second; None if it is not known."""
    share, capacity = candidate.shares_on(osd).get(cls), candidate.capacity_of(osd)
    if share is None or share.reservation is None or capacity is None:
        return None
    return share.reservation * capacity


def _reserved(candidate: Candidate, facts: Facts) -> Mapping[str, float | None]:
    return {
        cls: _sum([reservation(candidate, osd, cls) for osd in facts.osds]) for cls in SCHEDULED
    }


def _limits(candidate: Candidate, facts: Facts) -> Mapping[str, float | None]:
    limits: dict[str, float | None] = {}
    for cls in SCHEDULED:
        shares = [candidate.shares_on(osd).get(cls) for osd in facts.osds]
        if None in shares or all(share and share.limit for share in shares):
            limits[cls] = _sum([_limit_of(candidate, osd, cls) for osd in facts.osds])
    return limits


def _limit_of(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    share, capacity = candidate.shares_on(osd).get(cls), candidate.capacity_of(osd)
    return share.limit * capacity if share and capacity else None


def _sum(parts: Sequence[float | None]) -> float | None:
    """None if any of them is not known."""
    known = [it for it in parts if it is not None]
    return sum(known) if len(known) == len(parts) else None


# -- violated --------------------------------------------------------------------------------------


def verdict(candidate: Candidate, osd: AdvisedOsd) -> Verdict:
    """Whether the OSD could give each class with demand its reservation, beside replica writes.

    What is now is as the judge found it. Another setting is violated where what the judge asks for
    is more than the OSD can do for certain. It is kept where all that classes may ask for is no
    more than the OSD was seen to do, for each and together, and where the judge found nothing
    beside this sum.
    """
    if candidate.scheduler != MCLOCK:
        return "none"
    verdicts = [_in_piece(candidate, osd, piece) for piece in osd.pieces]
    if "violated" in verdicts:
        return "violated"
    return "unknown" if "unknown" in verdicts or not verdicts else "kept"


def _in_piece(candidate: Candidate, osd: AdvisedOsd, piece: AdvicePiece) -> Verdict:
    least = needed(candidate, osd, piece, piece.demand, BOUNDS.reached)
    whole = needed(candidate, osd, piece)
    if whole is None or least is None:
        return "unknown"
    whole += piece.immediate * (_more_clients(candidate, osd, piece) - 1)
    if candidate.now:
        return "violated" if piece.violated else "kept"
    low, high = osd.can_do or (osd.most, None)
    if piece.violated:  # whatever the sum says: one shard, a class of great bursts, a slow moment
        return "violated" if high is not None and least > high else "unknown"
    seen = all(_was_given(candidate, osd, cls) for cls in piece.wanted)
    if not piece.wanted or (seen and whole <= low and not osd.not_all_counted):
        return "kept"
    return "violated" if high is not None and least > high else "unknown"


def _was_given(candidate: Candidate, osd: AdvisedOsd, cls: str) -> bool:
    """Whether the OSD was seen to give the class all that is reserved for it: what it did for
    another is of another kind."""
    most = max(it.attained.get(cls, 0.0) for it in osd.pieces)
    return (reservation(candidate, osd, cls) or 0.0) <= most


def _more_clients(candidate: Candidate, osd: AdvisedOsd, piece: AdvicePiece) -> float:
    """By which factor clients, and with them replica writes, may grow until they have all that is
    reserved for them."""
    attained, ops = piece.attained.get(CLIENT, 0.0), reservation(candidate, osd, CLIENT)
    return max(1.0, ops / attained) if CLIENT in piece.wanted and ops and attained else 1.0


def needed(
    candidate: Candidate,
    osd: AdvisedOsd,
    piece: AdvicePiece,
    wanted: frozenset[str] | None = None,
    part: float = _ALL,
) -> float | None:
    """What an OSD has to do to keep this part of its reservations; None if they are not known.

    A class with demand takes all that is reserved for it. Another takes no more than it did.
    """
    sum_, wanted = piece.immediate, piece.wanted if wanted is None else wanted
    for cls in SCHEDULED:
        attained, wants = piece.attained.get(cls, 0.0), cls in wanted
        if not attained and not wants:
            continue
        ops = reservation(candidate, osd, cls)
        if ops is None:
            return None
        sum_ += part * ops if wants else min(ops, attained)
    return sum_


# -- the backlog -----------------------------------------------------------------------------------


def backlog_seconds(candidate: Candidate, facts: Facts) -> float | None:
    """The least time that the backlog of recovery takes while clients go on as they did, and each
    OSD has the part of recovery's work that it had."""
    backlog = facts.backlog
    if not backlog.copies:
        return None
    ops, whole = backlog.copies * backlog.ops_per_copy, sum(backlog.work.values())
    rates = {osd.osd: most_for(candidate, osd, backlog.cls) for osd in facts.osds}
    known = {osd: rate for osd, rate in rates.items() if rate}
    if whole and backlog.cls == RECOVERY:
        parts = {osd: ops * work / whole for osd, work in backlog.work.items()}
        return max((parts.get(osd, 0.0) / rate for osd, rate in known.items()), default=None)
    return ops / sum(known.values()) if len(known) == len(rates) else None


def most_for(candidate: Candidate, osd: AdvisedOsd, cls: str | None) -> float | None:
    """The most that a class can get on an OSD: its limit, or what is left beside clients; of a
    class that is not known all that the OSD can do.

    A class below its reservation is not held back by its limit. Where the reservations are more
    than the OSD can do, they divide it.
    """
    if cls is None:
        return osd.can_do and osd.can_do[1]
    bounds = [it for it in (_limit(candidate, osd, cls), _left(candidate, osd, cls)) if it]
    return min(bounds) if bounds else None


def _limit(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    share, capacity = candidate.shares_on(osd).get(cls), candidate.capacity_of(osd)
    if share is None or not share.limit or capacity is None or share.reservation is None:
        return None
    return max(share.limit, share.reservation) * capacity


def _left(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    if osd.can_do is None or not osd.pieces:
        return None
    can_do = osd.can_do[1]
    own, client = (reservation(candidate, osd, name) for name in (cls, CLIENT))
    if own is None or client is None:
        return can_do
    kept = fmean(
        client if CLIENT in it.demand else min(client, it.attained.get(CLIENT, 0.0))
        for it in osd.pieces
    )
    return max(can_do - kept, can_do * own / (own + client) if own else 0.0)
