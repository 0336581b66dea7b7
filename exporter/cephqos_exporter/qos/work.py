"""How much work an OSD has done for each class, in normalised ops.

No counter of an OSD says so. What there is: counts and byte sums since the daemon started, and
histograms that split client ops by powers of two of their size. A meter turns what was added since
the last look into cost, at the cost in force then: when an OSD's capacity changes, work done
earlier keeps the value that it had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLASSES, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos.cost_models import BandwidthModel, QosState
from cephqos_exporter.qos.sizes import Counted, SizeAxis, SizedOps, SizeMix

# osd_push_per_object_cost and osd_recovery_max_chunk.
_PUSH_OVERHEAD_BYTES: Final = 1000
_PULL_BYTES: Final = 8 * 1024 * 1024

# A primary queues some small events for each chunk that it scrubs: 6.3 in shallow, 7.3 in deep
# scrubs of 20.2.4, counted in its log.
_EVENTS_PER_CHUNK: Final = 6


@dataclass(frozen=True, slots=True)
class RecoveryItems:
    """What an OSD took from its queue for recovery (18.2 and later), as it counts it.

    `nested`: what counts one kind of message counts those before it too, in this order: pushes,
    replies, pulls, messages.
    """

    starts: float  # looks for objects to recover, as primary
    continuations: float
    pushes: float  # received: objects, some to a message
    replies: float
    pulls: float  # received: requests for objects
    messages: float  # scans; nested: of all kinds
    nested: bool = False

    def others(self) -> float:
        """Messages that carry no objects: replies, scans, backfill progress, removals."""
        if not self.nested:
            return self.replies + self.messages
        return max(self.replies - self.pushes, 0.0) + max(self.messages - self.pulls, 0.0)

    def requests(self) -> float:
        """Requests for objects, without what is nested in their count."""
        return max(self.pulls - self.replies, 0.0) if self.nested else self.pulls


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What an OSD scrubbed since it started (20.x): as primary and as replica."""

    objects: float
    bytes: float
    chunks: float  # as primary


@dataclass(frozen=True, slots=True)
class Totals:
    """What an OSD has counted since it started; None where its release does not count it."""

    reads: float
    writes: Counted
    read_writes: Counted
    subops: float
    subop_bytes: float
    recovery_ops: float
    recovery_bytes: float
    pushes_sent: float
    push_bytes: float
    recovery: RecoveryItems | None
    scrub: Scrubbed | None


_SCALARS: Final = (
    "reads",
    "subops",
    "subop_bytes",
    "recovery_ops",
    "recovery_bytes",
    "pushes_sent",
    "push_bytes",
)


def _added(now: Totals, before: Totals) -> dict[str, float]:
    """What the plain counters gained."""
    return {name: _gain(getattr(now, name), getattr(before, name)) for name in _SCALARS}


def _gain(new: float, old: float) -> float:
    """A counter that went back was reset: what it holds is its gain."""
    return new - old if new >= old else new


def _recovery_gain(now: RecoveryItems | None, before: RecoveryItems | None) -> RecoveryItems:
    """Counter by counter. Their differences may fall without a reset.

    Some of them are read before an item is counted and the others after it.
    """
    if now is None or before is None:
        return RecoveryItems(0, 0, 0, 0, 0, 0)
    return RecoveryItems(
        starts=_gain(now.starts, before.starts),
        continuations=_gain(now.continuations, before.continuations),
        pushes=_gain(now.pushes, before.pushes),
        replies=_gain(now.replies, before.replies),
        pulls=_gain(now.pulls, before.pulls),
        messages=_gain(now.messages, before.messages),
        nested=now.nested,
    )


@dataclass(slots=True)
class WorkMeter:
    """Adds up the normalised work of one OSD by class, from 0 at the first look.

    From 0 and not from the OSD's totals: those would be valued at today's cost, and an exporter
    that restarts after a change of capacity would show a jump.
    """

    done: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0.0))
    _before: Totals | None = None
    _writes: SizedOps = field(default_factory=SizedOps)
    _read_writes: SizedOps = field(default_factory=SizedOps)
    _write_mix: SizeMix = ()
    _mean_push: float = 0.0
    _degraded: float = 1.0

    def advance(self, now: Totals, axis: SizeAxis, qos: QosState, degraded: float | None) -> None:
        """Take in what the OSD did since the last call, at the cost now in force."""
        writes = self._writes.advance(now.writes, axis)
        read_writes = self._read_writes.advance(now.read_writes, axis)
        before, self._before = self._before, now
        if degraded is not None:
            self._degraded = degraded
        if before is None:
            return
        if writes:
            self._write_mix = writes
        gained = _added(now, before)
        charge = qos.cost.normalised
        # A read is charged as a request without data, whatever it brings back.
        self.done[CLIENT] += gained["reads"] * charge(0)
        self.done[CLIENT] += sum(n * charge(size) for n, size in (*writes, *read_writes))
        self.done[IMMEDIATE] += self._subop_work(gained, qos)
        self._add_recovery(gained, _recovery_gain(now.recovery, before.recovery), qos)
        self.done[BEST_EFFORT] += _scrub_work(now.scrub, before.scrub, qos)

    def _subop_work(self, gained: Mapping[str, float], qos: QosState) -> float:
        """Replica writes: counts and bytes are known, sizes are not.

        They are other OSDs' client writes, spread like this one's own by placement: so they get
        this OSD's mix of write sizes, scaled to their own mean.
        """
        count = gained["subops"]
        if not count:
            return 0.0
        mean = gained["subop_bytes"] / count
        ops = sum(n for n, _ in self._write_mix)
        own = sum(n * size for n, size in self._write_mix)
        if not own:
            return count * qos.cost.normalised(mean)
        scale = mean * ops / own
        return count / ops * sum(n * qos.cost.normalised(s * scale) for n, s in self._write_mix)

    def _add_recovery(
        self, gained: Mapping[str, float], items: RecoveryItems, qos: QosState
    ) -> None:
        if gained["pushes_sent"]:
            self._mean_push = gained["push_bytes"] / gained["pushes_sent"]
        elif gained["recovery_ops"] and gained["recovery_bytes"]:
            self._mean_push = gained["recovery_bytes"] / gained["recovery_ops"]
        charge = qos.cost.normalised
        pushes = items.pushes * charge(self._mean_push + _PUSH_OVERHEAD_BYTES)
        if qos.recovery_item_bytes is not None:
            # The early model: a fixed cost per recovery item, one class, messages outside it.
            self.done[RECOVERY] += gained["recovery_ops"] * charge(qos.recovery_item_bytes)
            self.done[IMMEDIATE] += pushes
            return
        work = pushes + items.others() * charge(0)
        work += (items.starts + items.continuations) * charge(self._mean_push)
        # An OSD that asks for an object does not know its size and asks for a chunk.
        work += items.requests() * charge(_PULL_BYTES)
        self.done[RECOVERY] += work * self._degraded
        self.done[BEST_EFFORT] += work * (1.0 - self._degraded)


def _scrub_work(now: Scrubbed | None, before: Scrubbed | None, qos: QosState) -> float:
    """A scrubbed object is charged one op, and a deep scrubbed one its bytes on top.

    The scheduler charges a chunk for as many objects as it may have, so that small PGs are charged
    for more than they hold; this counts what was there.
    """
    if now is None or before is None or not isinstance(qos.cost, BandwidthModel):
        return 0.0
    events = _gain(now.chunks, before.chunks) * _EVENTS_PER_CHUNK
    in_bytes = _gain(now.bytes, before.bytes) / qos.cost.cost_per_io
    return _gain(now.objects, before.objects) + in_bytes + events
