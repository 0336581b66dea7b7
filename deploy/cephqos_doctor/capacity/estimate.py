"""What an OSD can do, from what it did. Pure: series in, an estimate or a refusal out.

A rate is a capacity only while the OSD could not give more: its clients wait, for no limit and for
no other OSD, and its device or its CPU is seen to be the bound. All else is work that it did, and
so the least that it can do.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cephqos_base.thresholds import THRESHOLDS
from cephqos_base.units import osd_order

Kind = Literal["measured", "at_least", "unknown"]
Sure = Literal["high", "medium", "none"]
Verdict = Literal["too_high", "too_low", "fits", "unknown", "unused"]

TOO_HIGH: Final = THRESHOLDS.more
TOO_LOW: Final = THRESHOLDS.more
# Pieces of the time in which the OSD was saturated: fewer may be one odd moment, and a piece counts
# only with this many samples of the rules.
LEAST_PIECES: Final = 3
MANY_PIECES: Final = 6
_LEAST_SAMPLES: Final = 2
# The best pieces speak for the OSD: in the others it also scrubbed, trimmed or compacted, which is
# in no counter. Their range is the error.
_BEST: Final = 0.25
# Of the range of the best pieces, as a share of their median.
_NARROW: Final = 0.25
_WIDE: Final = 0.6
# If the OSD did more than this multiple of what it did when saturated, that was other work.
_OTHER_WORK: Final = TOO_HIGH
_HALF: Final = 0.5
LEAST_EQUALS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of the time. Rates are in normalised operations per second."""

    end: float
    delivered: float  # at most
    requests: float | None = None  # of the device, per second, at most; None: not shown
    saturated: float | None = None  # on average, while it was
    saturated_samples: float = 0
    cpu_samples: float = 0  # samples in which the threads had no CPU left
    depth: float | None = None  # of the device's queue
    piling_up: bool = False  # work piled up in BlueStore
    large: bool = False  # operations so large that bytes are the bound
    failing: bool = False  # the device had failed
    capacity: float | None = None  # that was configured then

    @property
    def done(self) -> float:
        """What asked something of the device: reads from a cache prove nothing."""
        return self.delivered if self.requests is None else min(self.delivered, self.requests)

    @property
    def bound(self) -> str:
        """What kept a saturated OSD from doing more."""
        if self.cpu_samples >= _HALF * self.saturated_samples:
            return "cpu"
        return "device" if self.piling_up or (self.depth or 0) >= 1 else ""

    @property
    def proves(self) -> bool:
        enough = self.saturated is not None and self.saturated_samples >= _LEAST_SAMPLES
        return enough and not self.large and not self.failing


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdRecord:
    """An OSD: how it is set up, and what it did."""

    cluster: str
    osd: str
    host: str = ""
    media: str = ""
    model: str = ""  # of its device; empty: not known
    kind: str = ""  # of its host
    origin: str = ""
    in_force: str = ""
    capacity: float | None = None
    lower_bound: bool = False  # part of its work is not counted
    reservations: Mapping[str, float] = field(default_factory=dict)  # shares, by class
    limits: Mapping[str, float] = field(default_factory=dict)
    pieces: Sequence[Piece] = ()

    @property
    def equals(self) -> tuple[str, str, str, str]:
        """OSDs with the same are compared."""
        return (self.cluster, self.media, self.model, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an OSD can do. `ops` is None if nothing is known."""

    kind: Kind
    ops: float | None = None
    low: float | None = None
    high: float | None = None
    bound: str = "never saturated"
    sure: Sure = "none"
    why: str = ""  # it is not more than it is
    most: float | None = None
    most_at: float | None = None
    saturated_pieces: int = 0
    saturated: float | None = None  # the median of what it did then, also on a failing device

    @property
    def error(self) -> float | None:
        """Half of the range, as a share."""
        if not self.ops or self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.ops


def estimate(record: OsdRecord) -> Estimate:
    """What the OSD can do, or the least that it can do and why no more is known."""
    if not record.pieces:
        return Estimate(kind="unknown", why="no work was recorded")
    best = max(record.pieces, key=lambda piece: piece.done)
    known: dict[str, Any] = {"most": best.done, "most_at": best.end}
    if best.done <= 0:
        return Estimate(kind="unknown", why="it did nothing", **known)
    saturated = [piece for piece in record.pieces if piece.saturated is not None]
    proofs = [piece for piece in saturated if piece.proves and piece.bound]
    known["saturated_pieces"] = len(proofs)
    small = [piece.saturated or 0.0 for piece in saturated if not piece.large]
    if len(small) >= LEAST_PIECES:
        known["saturated"] = statistics.median(small)
    bound = _bound(proofs)
    rates = _best_rates(proofs)
    why = _refusal(record, saturated, proofs) or _doubt(rates, best.done)
    if not why:
        narrow = _spread(rates) <= _NARROW and len(proofs) >= MANY_PIECES
        known |= {"low": rates[-1], "high": rates[0], "sure": "high" if narrow else "medium"}
        return Estimate(kind="measured", ops=statistics.median(rates), bound=bound, **known)
    if best.requests is None:
        why += "; its device's requests are not shown, so reads from a cache may be in it"
    least = max((piece.done for piece in record.pieces if not piece.large), default=0.0)
    kind: Kind = "at_least" if least else "unknown"
    return Estimate(kind=kind, ops=least or None, bound=bound, why=why, **known)


def _bound(proofs: Sequence[Piece]) -> str:
    if not proofs:
        return "never saturated"
    return statistics.mode(piece.bound for piece in proofs)


def _best_rates(proofs: Sequence[Piece]) -> list[float]:
    """What it delivered in the best of these pieces, the most first."""
    rates = sorted((piece.saturated or 0.0 for piece in proofs), reverse=True)
    return rates[: max(LEAST_PIECES, math.ceil(_BEST * len(rates)))]


def _spread(rates: Sequence[float]) -> float:
    """Their range, as a share of their median."""
    middle = statistics.median(rates)
    return (rates[0] - rates[-1]) / middle if middle else math.inf


def _doubt(rates: Sequence[float], most: float) -> str:
    """Why these rates are not what the OSD can do; empty if they are."""
    if _spread(rates) > _WIDE:
        return f"what it delivered when saturated differs by {_spread(rates):.0%}"
    if most > _OTHER_WORK * rates[0]:
        return "it did far more at another time: other work"
    return ""


def _refusal(record: OsdRecord, saturated: Sequence[Piece], proofs: Sequence[Piece]) -> str:
    if record.lower_bound:
        return "it has erasure-coded pools, whose work is not all counted"
    if not saturated:
        return "never saturated"
    if all(piece.large for piece in saturated):
        return "operations were large: bytes were the bound, not operations"
    if all(piece.large or piece.failing for piece in saturated):
        return "its device had failed or was far slower than at its best"
    if not proofs:
        return "saturated, but neither its device nor its CPU is seen to be the bound"
    if len(proofs) < LEAST_PIECES:
        return f"saturated in {len(proofs)} pieces of the time only; {LEAST_PIECES} are needed"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCapacity:
    """An OSD, its estimate, and what it means for its capacity."""

    record: OsdRecord
    estimate: Estimate
    verdict: Verdict
    equals_ops: float | None = None  # the median of the other OSDs like it that were measured
    equals: int = 0
    outlier: bool = False  # it delivers far more or less than they do
    odd_setting: bool = False  # it is configured far from what they are
    suggested: float | None = None

    @property
    def wrong_by(self) -> float:
        """How far the capacity is off, in either direction; 1 where that is not known."""
        ops, capacity = self.estimate.ops, self.record.capacity
        if not ops or not capacity or self.verdict not in ("too_high", "too_low"):
            return 1.0
        return max(capacity / ops, ops / capacity)


def judge(records: Iterable[OsdRecord]) -> list[JudgedCapacity]:
    """All OSDs, those with the capacity that is furthest off first."""
    estimates = [(record, estimate(record)) for record in records]
    groups: dict[tuple[str, ...], list[tuple[OsdRecord, Estimate]]] = {}
    for record, its in estimates:
        groups.setdefault(record.equals, []).append((record, its))
    judged = [_judge(record, its, groups[record.equals]) for record, its in estimates]

    def order(it: JudgedCapacity) -> tuple[object, ...]:
        record = it.record
        strange = it.outlier or it.odd_setting
        return -it.wrong_by, not strange, record.cluster, osd_order(record.osd)

    return sorted(judged, key=order)


def _judge(
    record: OsdRecord, its: Estimate, group: Sequence[tuple[OsdRecord, Estimate]]
) -> JudgedCapacity:
    others = [(r, e) for r, e in group if r is not record]
    measured = [e.ops for _, e in others if e.kind == "measured" and e.ops]
    settings = [r.capacity for r, _ in others if r.capacity]
    usual = statistics.median(measured) if len(measured) >= LEAST_EQUALS else None
    verdict = _verdict(record, its)
    wrong = verdict in ("too_high", "too_low")
    return JudgedCapacity(
        record=record,
        estimate=its,
        verdict=verdict,
        equals_ops=usual,
        equals=len(measured),
        outlier=_is_outlier(its, usual),
        odd_setting=len(settings) >= LEAST_EQUALS
        and _far(record.capacity, statistics.median(settings)),
        suggested=_rounded(its.ops) if wrong and its.ops else None,
    )


def _verdict(record: OsdRecord, its: Estimate) -> Verdict:
    if record.in_force not in ("", "mclock_scheduler") or not record.capacity:
        return "unused"
    if not its.ops:
        return "unknown"
    if its.ops > TOO_LOW * record.capacity:
        return "too_low"
    if its.kind != "measured":
        return "unknown"
    return "too_high" if record.capacity > TOO_HIGH * its.ops else "fits"


def _is_outlier(its: Estimate, usual: float | None) -> bool:
    """Measured far from its equals; or saturated far below them, whatever the reason."""
    if its.kind == "measured":
        return _far(its.ops, usual)
    return (its.saturated or 0) < (usual or 0) and _far(its.saturated, usual)


def _far(ops: float | None, usual: float | None) -> bool:
    if not ops or not usual:
        return False
    return ops > TOO_HIGH * usual or usual > TOO_HIGH * ops


def _rounded(ops: float) -> float:
    """Three figures: nothing is known better than that. Down, as it may be a least."""
    step = 10.0 ** (math.floor(math.log10(ops)) - 2)
    return round(math.floor(ops / step) * step, 6)
