"""What a candidate would give, as far as arithmetic with what was recorded goes."""

from collections.abc import Mapping
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
    found: dict[str, float | None] = {}
    for cls in SCHEDULED:
        parts = [reservation(candidate, osd, cls) for osd in facts.osds]
        known = [it for it in parts if it is not None]
        found[cls] = sum(known) if len(known) == len(parts) else None
    return found


def _limits(candidate: Candidate, facts: Facts) -> Mapping[str, float | None]:
    found: dict[str, float | None] = {}
    for cls in SCHEDULED:
        shares = [candidate.shares_on(osd).get(cls) for osd in facts.osds]
        if None in shares:
            found[cls] = None
        elif all(share and share.limit for share in shares):
            parts = [
                share.limit * capacity
                for osd, share in zip(facts.osds, shares, strict=True)
                if share and (capacity := candidate.capacity_of(osd))
            ]
            found[cls] = sum(parts) if len(parts) == len(shares) else None
    return found


# -- violated --------------------------------------------------------------------------------------


def verdict(candidate: Candidate, osd: AdvisedOsd) -> Verdict:
    """Whether the OSD could give each class with demand its reservation, beside replica writes.

    What is now is as the judge found it. Another setting is violated where what the judge asks for
    is more than the OSD can do for certain. It is kept where all that classes may ask for is no
    more than the OSD was seen to do, and where the judge found nothing beside this sum.
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
