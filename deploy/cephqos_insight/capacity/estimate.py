"""What an OSD can do, from what it did. Pure: records of OSDs in, judged capacities out.

A rate is a capacity only while the OSD could not give more: its clients wait, for no limit and for
no other OSD, and its device or its CPU is seen to be the bound. Such an OSD is called saturated.
All else is work that it did, and so the least that it can do.

`series` reads the records from a Prometheus, `judge` is called by `cli`, and `text` prints. For
example: eight hours saturated at 1,000 to 1,070 ops/s by the device give the estimate `measured`,
1,060 ops/s. If 2,000 are configured, the verdict is `too_high`, and 1,060 are suggested.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cephqos_base.thresholds import THRESHOLDS
from cephqos_base.units import osd_order
from cephqos_loadgen.advise.facts import LEAST_PIECES, best_rates

Kind = Literal["measured", "at_least", "unknown"]
Sure = Literal["high", "medium", "none"]
Verdict = Literal["too_high", "too_low", "fits", "unknown", "unused"]

# A capacity this many times above or below the estimate is wrong; so is one far from its equals.
TOO_HIGH: Final = THRESHOLDS.more
TOO_LOW: Final = THRESHOLDS.more
# A piece counts only with this many samples of the rules.
_LEAST_SAMPLES: Final = 2
# The range of the best pieces is the error. If it is up to _NARROW of their median, in many pieces,
# the estimate is sure. Above _WIDE the pieces differ too much for an estimate.
_NARROW: Final = 0.25
_WIDE: Final = 0.6
MANY_PIECES: Final = 6
# If the OSD did more than this multiple of what it did when saturated, that was other work.
_OTHER_WORK: Final = TOO_HIGH
# The CPU is the bound if the threads had no CPU left in half of the saturated samples.
_CPU_SHARE: Final = 0.5
# OSDs like it that are needed to call one of them unusual.
LEAST_EQUALS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What an OSD did in a piece of the time. Rates are in normalised operations per second."""

    end: float  # Unix seconds
    delivered: float  # the highest rate
    requests: float | None = None  # of the device, per second, the highest; None: not shown
    saturated_ops: float | None = None  # the mean rate while saturated; None: it never was
    saturated_samples: float = 0
    cpu_samples: float = 0  # samples in which the threads had no CPU left
    depth: float | None = None  # of the device's queue, the highest
    piling_up: bool = False  # work piled up in BlueStore
    large: bool = False  # operations so large that bytes are the bound
    failing: bool = False  # the device had failed
    capacity: float | None = None  # as configured then

    @property
    def proven_ops(self) -> float:
        """The rate that the device carried: reads from a cache prove nothing."""
        return self.delivered if self.requests is None else min(self.delivered, self.requests)

    @property
    def bound(self) -> str:
        """What kept a saturated OSD from doing more: cpu, device, or empty: not seen."""
        if self.cpu_samples >= _CPU_SHARE * self.saturated_samples:
            return "cpu"
        return "device" if self.piling_up or (self.depth or 0) >= 1 else ""

    @property
    def is_proof(self) -> bool:
        """Whether its saturated rate is what the OSD can do."""
        enough = self.saturated_ops is not None and self.saturated_samples >= _LEAST_SAMPLES
        return enough and not self.large and not self.failing and bool(self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdRecord:
    """An OSD: how it is set up, and what it did. Empty texts: not known."""

    cluster: str
    osd: str
    host: str = ""
    media: str = ""
    model: str = ""  # of its device
    cpu: str = ""  # the model of its host's CPU
    origin: str = ""  # where the capacity was set: default, mon, boot benchmark ...
    in_force: str = ""  # the scheduler that runs
    capacity: float | None = None  # as configured
    lower_bound: bool = False  # part of its work is not counted
    reservations: Mapping[str, float] = field(default_factory=dict)  # shares, by class
    limits: Mapping[str, float] = field(default_factory=dict)
    pieces: Sequence[Piece] = ()

    @property
    def likeness(self) -> tuple[str, str, str, str]:
        """OSDs that are alike in this are equals: they should do the same."""
        return (self.cluster, self.media, self.model, self.cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an OSD can do, in normalised operations per second. `--json` writes these fields."""

    kind: Kind
    ops: float | None = None  # None: nothing is known
    low: float | None = None  # the range of the best pieces; only if measured
    high: float | None = None
    bound: str = "never saturated"  # or cpu, device
    sure: Sure = "none"
    why: str = ""  # why it is not measured
    most: float | None = None  # the highest rate at any time, and when
    most_at: float | None = None
    saturated_pieces: int = 0  # those that prove what it can do
    saturated: float | None = None  # the median rate while saturated, also on a failing device

    @property
    def error(self) -> float | None:
        """Half of the range, as a share of the estimate: 0.1 is ±10 %."""
        if not self.ops or self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.ops


def estimate(record: OsdRecord) -> Estimate:
    """What the OSD can do, or the least that it can do and why no more is known."""
    if not record.pieces:
        return Estimate(kind="unknown", why="no work was recorded")
    best = max(record.pieces, key=lambda piece: piece.proven_ops)
    known: dict[str, Any] = {"most": best.proven_ops, "most_at": best.end}
    if best.proven_ops <= 0:
        return Estimate(kind="unknown", why="it did nothing", **known)
    saturated = [piece for piece in record.pieces if piece.saturated_ops is not None]
    proofs = [piece for piece in saturated if piece.is_proof]
    known |= {"saturated_pieces": len(proofs), "bound": _bound(proofs)}
    small = [piece.saturated_ops or 0.0 for piece in saturated if not piece.large]
    if len(small) >= LEAST_PIECES:
        known["saturated"] = statistics.median(small)
    rates = best_rates([piece.saturated_ops or 0.0 for piece in proofs])
    why = _no_proof(record, saturated, proofs) or _contradiction(rates, best.proven_ops)
    if not why:
        narrow = _spread(rates) <= _NARROW and len(proofs) >= MANY_PIECES
        known |= {"low": rates[-1], "high": rates[0], "sure": "high" if narrow else "medium"}
        return Estimate(kind="measured", ops=statistics.median(rates), **known)
    if best.requests is None:
        why += "; its device's requests are not shown, so reads from a cache may be in it"
    least = max((piece.proven_ops for piece in record.pieces if not piece.large), default=0.0)
    kind: Kind = "at_least" if least else "unknown"
    return Estimate(kind=kind, ops=least or None, why=why, **known)


def _bound(proofs: Sequence[Piece]) -> str:
    if not proofs:
        return "never saturated"
    return statistics.mode(piece.bound for piece in proofs)


def _spread(rates: Sequence[float]) -> float:
    """The range of the rates, as a share of their median."""
    middle = statistics.median(rates)
    return (rates[0] - rates[-1]) / middle if middle else math.inf


def _no_proof(record: OsdRecord, saturated: Sequence[Piece], proofs: Sequence[Piece]) -> str:
    """Why too few pieces prove what the OSD can do; empty if there are enough."""
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


def _contradiction(rates: Sequence[float], most: float) -> str:
    """Why the pieces do not agree on one capacity; empty if they do."""
    if _spread(rates) > _WIDE:
        return f"what it delivered when saturated differs by {_spread(rates):.0%}"
    if most > _OTHER_WORK * rates[0]:
        return "it did far more at another time: other work"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCapacity:
    """An OSD, its estimate, and what that means for its configured capacity."""

    record: OsdRecord
    estimate: Estimate
    verdict: Verdict
    equals_ops: float | None = None  # the median of its measured equals
    measured_equals: int = 0  # how many of its equals were measured, without itself
    outlier: bool = False  # it delivers far more or less than its equals
    unusual_setting: bool = False  # its capacity is set far from those of its equals
    suggested: float | None = None  # a better capacity; None: none is known, or none is needed

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
        groups.setdefault(record.likeness, []).append((record, its))
    judged = [_judge(record, its, groups[record.likeness]) for record, its in estimates]

    def order(osd: JudgedCapacity) -> tuple[object, ...]:
        unusual = osd.outlier or osd.unusual_setting
        return -osd.wrong_by, not unusual, osd.record.cluster, osd_order(osd.record.osd)

    return sorted(judged, key=order)


def _judge(
    record: OsdRecord, estimated: Estimate, group: Sequence[tuple[OsdRecord, Estimate]]
) -> JudgedCapacity:
    """Judge an OSD by its estimate, and beside its equals: `group`, which holds itself too."""
    equals = [(other, its) for other, its in group if other is not record]
    measured = [its.ops for _, its in equals if its.kind == "measured" and its.ops]
    settings = [other.capacity for other, _ in equals if other.capacity]
    usual_ops = statistics.median(measured) if len(measured) >= LEAST_EQUALS else None
    usual_setting = statistics.median(settings) if len(settings) >= LEAST_EQUALS else None
    verdict = _verdict(record, estimated)
    wrong = verdict in ("too_high", "too_low")
    return JudgedCapacity(
        record=record,
        estimate=estimated,
        verdict=verdict,
        equals_ops=usual_ops,
        measured_equals=len(measured),
        outlier=_is_outlier(estimated, usual_ops),
        unusual_setting=_is_far(record.capacity, usual_setting),
        suggested=_rounded(estimated.ops) if wrong and estimated.ops else None,
    )


def _verdict(record: OsdRecord, estimated: Estimate) -> Verdict:
    if record.in_force not in ("", "mclock_scheduler") or not record.capacity:
        return "unused"
    if not estimated.ops:
        return "unknown"
    # What an OSD did at least is enough to call a capacity too low, but not to call it right.
    if estimated.ops > TOO_LOW * record.capacity:
        return "too_low"
    if estimated.kind != "measured":
        return "unknown"
    return "too_high" if record.capacity > TOO_HIGH * estimated.ops else "fits"


def _is_outlier(estimated: Estimate, usual: float | None) -> bool:
    """Measured far from its equals; or saturated far below them, whatever the reason."""
    if estimated.kind == "measured":
        return _is_far(estimated.ops, usual)
    return (estimated.saturated or 0) < (usual or 0) and _is_far(estimated.saturated, usual)


def _is_far(ops: float | None, usual: float | None) -> bool:
    if not ops or not usual:
        return False
    return ops > TOO_HIGH * usual or usual > TOO_HIGH * ops


def _rounded(ops: float) -> float:
    """To three figures, as no more are known. Down, as `ops` may be the least that it can do."""
    step = 10.0 ** (math.floor(math.log10(ops)) - 2)
    return round(math.floor(ops / step) * step, 6)
