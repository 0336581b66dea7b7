"""What a candidate would give, as far as arithmetic with what was recorded goes.

Three answers for each candidate: what it reserves and limits, whether each OSD could keep the
reservations, and the least time in which the backlog of recovery is done. Work is in normalised
operations per second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from cephqos_base.judge import BOUNDS
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED
from cephqos_loadgen.advise.candidates import Candidate
from cephqos_loadgen.advise.facts import MCLOCK, AdvicePiece, AdvisedOsd, Facts

# "none": the candidate reserves nothing.
Verdict = Literal["kept", "violated", "unknown", "none"]
_WHOLE: Final = 1.0


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
        return sum(verdict == "violated" for verdict in self.verdicts.values())

    @property
    def undecided(self) -> int:
        return sum(verdict == "unknown" for verdict in self.verdicts.values())


def outcome(candidate: Candidate, facts: Facts) -> Outcome:
    reserves = candidate.scheduler == MCLOCK
    return Outcome(
        candidate=candidate,
        reserved={
            cls: _sum([reservation(candidate, osd, cls) for osd in facts.osds])
            for cls in (SCHEDULED if reserves else ())
        },
        limits=_limits(candidate, facts) if reserves else {},
        verdicts={osd.osd: verdict(candidate, osd) for osd in facts.osds},
        backlog_seconds=backlog_seconds(candidate, facts),
    )


def reservation(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    """In normalised operations per second; None if it is not known."""
    share, capacity = candidate.shares_on(osd).get(cls), candidate.capacity_of(osd)
    if share is None or share.reservation is None or capacity is None:
        return None
    return share.reservation * capacity


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
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


# -- violated --------------------------------------------------------------------------------------


def verdict(candidate: Candidate, osd: AdvisedOsd) -> Verdict:
    """Whether the OSD could give each class with demand its reservation, beside replica writes.

    For what is set now, the judge's verdict counts. For another setting:
    - violated, if even what the judge asks for (0.9 of each reservation) is more than the OSD can
      do for certain;
    - kept, if all that classes may ask for is no more than the OSD was seen to do, for each class
      and together, and if the judge found no violation, which this sum could not explain;
    - unknown otherwise.
    """
    if candidate.scheduler != MCLOCK:
        return "none"
    verdicts = [_verdict_in_piece(candidate, osd, piece) for piece in osd.pieces]
    if "violated" in verdicts:
        return "violated"
    return "unknown" if "unknown" in verdicts or not verdicts else "kept"


def _verdict_in_piece(candidate: Candidate, osd: AdvisedOsd, piece: AdvicePiece) -> Verdict:
    least = needed_ops(candidate, osd, piece, wanting=piece.demand, part=BOUNDS.reached)
    most = needed_ops(candidate, osd, piece)
    if most is None or least is None:
        return "unknown"
    if candidate.now:
        return "violated" if piece.violated_seconds else "kept"
    if osd.ceiling_ops is not None and least > osd.ceiling_ops:
        impossible: Verdict = "violated"
    else:
        impossible = "unknown"
    if piece.violated_seconds:
        # It may have been violated for a reason that is in no sum: one shard, a burst, a slow
        # moment. So it is no proof that this candidate is kept.
        return impossible
    if not piece.demand_anywhere:
        return "kept"
    most += piece.replica_writes * (_growth_of_clients(candidate, osd, piece) - 1)
    each_was_given = all(_was_given(candidate, osd, cls) for cls in piece.demand_anywhere)
    if each_was_given and most <= osd.proven_ops and not osd.delivered_is_lower_bound:
        return "kept"
    return impossible


def _was_given(candidate: Candidate, osd: AdvisedOsd, cls: str) -> bool:
    """Whether the OSD was seen to give the class all that is reserved for it. Work of another class
    is no proof: recovery may read from a cache what clients write to the device."""
    most = max(piece.attained.get(cls, 0.0) for piece in osd.pieces)
    return (reservation(candidate, osd, cls) or 0.0) <= most


def _growth_of_clients(candidate: Candidate, osd: AdvisedOsd, piece: AdvicePiece) -> float:
    """By which factor clients, and with them replica writes, may grow until they have all that is
    reserved for them."""
    attained = piece.attained.get(CLIENT, 0.0)
    reserved = reservation(candidate, osd, CLIENT)
    if CLIENT not in piece.demand_anywhere or not reserved or not attained:
        return 1.0
    return max(1.0, reserved / attained)


def needed_ops(
    candidate: Candidate,
    osd: AdvisedOsd,
    piece: AdvicePiece,
    *,
    wanting: frozenset[str] | None = None,
    part: float = _WHOLE,
) -> float | None:
    """What an OSD has to do to keep this part of its reservations; None if they are not known.

    The classes of `wanting` (by default, those with demand on any OSD) take all that is reserved
    for them. Others take no more than they did.
    """
    if wanting is None:
        wanting = piece.demand_anywhere
    ops = piece.replica_writes
    for cls in SCHEDULED:
        attained = piece.attained.get(cls, 0.0)
        if not attained and cls not in wanting:
            continue
        reserved = reservation(candidate, osd, cls)
        if reserved is None:
            return None
        ops += part * reserved if cls in wanting else min(reserved, attained)
    return ops


# -- the backlog -----------------------------------------------------------------------------------


def backlog_seconds(candidate: Candidate, facts: Facts) -> float | None:
    """The least time that the backlog of recovery takes. Clients go on as they did, and each OSD
    has the same part of recovery's work as in the time that was recorded."""
    backlog = facts.backlog
    if not backlog.copies:
        return None
    ops, recorded = backlog.copies * backlog.ops_per_copy, sum(backlog.work.values())
    rates = {osd.osd: most_for(candidate, osd, backlog.work_class) for osd in facts.osds}
    known = {osd: rate for osd, rate in rates.items() if rate}
    if recorded and backlog.work_class == RECOVERY:
        parts = {osd: ops * work / recorded for osd, work in backlog.work.items()}
        return max((parts.get(osd, 0.0) / rate for osd, rate in known.items()), default=None)
    return ops / sum(known.values()) if len(known) == len(rates) else None


def most_for(candidate: Candidate, osd: AdvisedOsd, cls: str | None) -> float | None:
    """The most that a class can get on an OSD: its limit, or what is left beside clients.

    If the class is not known (None), it is all that the OSD can do.
    """
    if cls is None:
        return osd.ceiling_ops
    bounds = (_limit_above_reservation(candidate, osd, cls), _beside_clients(candidate, osd, cls))
    return min((bound for bound in bounds if bound), default=None)


def _limit_above_reservation(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    """None if there is no limit. A class below its reservation is not held back by its limit."""
    share, capacity = candidate.shares_on(osd).get(cls), candidate.capacity_of(osd)
    if share is None or not share.limit or capacity is None or share.reservation is None:
        return None
    return max(share.limit, share.reservation) * capacity


def _beside_clients(candidate: Candidate, osd: AdvisedOsd, cls: str) -> float | None:
    """What an OSD at its ceiling has left for the class. If the reservations are more than the OSD
    can do, clients and the class divide it in proportion to them."""
    ceiling = osd.ceiling_ops
    if ceiling is None or not osd.pieces:
        return None
    reserved = reservation(candidate, osd, cls)
    of_clients = reservation(candidate, osd, CLIENT)
    if reserved is None or of_clients is None:
        return ceiling
    clients_take = fmean(
        of_clients if CLIENT in piece.demand else min(of_clients, piece.attained.get(CLIENT, 0.0))
        for piece in osd.pieces
    )
    in_proportion = ceiling * reserved / (reserved + of_clients) if reserved else 0.0
    return max(ceiling - clients_take, in_proportion)
