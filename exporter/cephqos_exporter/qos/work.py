"""How much work an OSD has done for each class, in normalised ops.

No counter of an OSD has this. There are counts and byte sums since the daemon started, and
histograms of client ops by powers of two of their size. At each scrape a WorkMeter turns what was
added into cost, by the cost model in force then. So when an OSD's capacity changes, work done
earlier keeps its value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLASSES, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos.cost_models import QosState
from cephqos_exporter.qos.sizes import Counted, SizeAxis, SizedOps, SizeMix

# The defaults of osd_push_per_object_cost and osd_recovery_max_chunk.
_PUSH_OVERHEAD_BYTES: Final = 1000
_PULL_BYTES: Final = 8 * 1024 * 1024

# A primary queues some small events for each chunk that it scrubs: 6.3 in shallow, 7.3 in deep
# scrubs of 20.2.4, counted in its log.
_EVENTS_PER_CHUNK: Final = 6


@dataclass(frozen=True, slots=True)
class RecoveryItems:
    """How many items of recovery an OSD took from its queue (18.2 and later), by kind.

    If `nested`, each count of messages also contains the one before it: pushes, replies, pulls,
    messages. Example: 5 pushes, 2 replies, 1 pull and 3 other messages are counted as pushes=5,
    replies=7, pulls=8, messages=11. `others()` is then 2 + 3 and `requests()` is 1.
    """

    starts: float  # searches for objects to recover, as primary
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
    store_bytes: float | None  # that the store was given to write
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


def _gain(new: float, old: float) -> float:
    """A counter that is lower than before was reset to 0: then its value is the gain."""
    return new - old if new >= old else new


def _recovery_gain(now: RecoveryItems | None, before: RecoveryItems | None) -> RecoveryItems:
    """What each counter gained, before others() and requests() take differences.

    Such a difference of two totals may fall without a reset: the OSD counts an item in one counter
    after the other, and may be read in between.
    """
    if now is None or before is None:
        return RecoveryItems(starts=0, continuations=0, pushes=0, replies=0, pulls=0, messages=0)
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
    """Adds up the normalised work of one OSD by class, from 0 at the first scrape.

    Not from the OSD's totals: they would be valued at today's cost, so an exporter that restarts
    after a change of capacity would show a jump.
    """

    done: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0.0))
    _before: Totals | None = None
    _writes: SizedOps = field(default_factory=SizedOps)
    _read_writes: SizedOps = field(default_factory=SizedOps)
    _write_mix: SizeMix = ()  # of the last scrape with client writes
    _mean_push: float = 0.0  # bytes
    _received_only: bool = True  # it was never seen to send pushes, whose bytes it counts
    _degraded_share: float = 1.0  # of recovery work

    def advance(
        self, now: Totals, axis: SizeAxis, qos: QosState, degraded_share: float | None
    ) -> None:
        """Take in what the OSD did since the last call, at the cost now in force.

        `degraded_share`: of the placement groups that recover, those that lack copies. This share
        of the work belongs to background_recovery, the rest to best effort. None: as before.
        """
        writes = self._writes.advance(now.writes, axis)
        read_writes = self._read_writes.advance(now.read_writes, axis)
        before, self._before = self._before, now
        if degraded_share is not None:
            self._degraded_share = degraded_share
        if before is None:
            return
        if writes:
            self._write_mix = writes
        gained = {name: _gain(getattr(now, name), getattr(before, name)) for name in _SCALARS}
        charge = qos.cost.normalised
        # A read is charged as a request without data, whatever it brings back.
        self.done[CLIENT] += gained["reads"] * charge(0)
        self.done[CLIENT] += sum(ops * charge(size) for ops, size in (*writes, *read_writes))
        self.done[IMMEDIATE] += self._subop_work(gained, qos)
        items = _recovery_gain(now.recovery, before.recovery)
        self._update_mean_push(gained, items.pushes, now, before)
        self._add_recovery(items, qos)
        self.done[BEST_EFFORT] += _scrub_work(now.scrub, before.scrub, qos)

    def _subop_work(self, gained: Mapping[str, float], qos: QosState) -> float:
        """The cost of replica writes, whose count and bytes are known, but not their sizes.

        They are client writes of other OSDs. So they are assumed to have the same mix of sizes as
        this OSD's client writes, scaled to their own mean.
        """
        count = gained["subops"]
        if not count:
            return 0.0
        mean = gained["subop_bytes"] / count
        mix_ops = sum(ops for ops, _ in self._write_mix)
        mix_bytes = sum(ops * size for ops, size in self._write_mix)
        if not mix_bytes:
            return count * qos.cost.normalised(mean)
        scale = mean * mix_ops / mix_bytes
        mix_cost = sum(ops * qos.cost.normalised(size * scale) for ops, size in self._write_mix)
        return count / mix_ops * mix_cost

    def _add_recovery(self, items: RecoveryItems, qos: QosState) -> None:
        charge = qos.cost.normalised
        pushes = items.pushes * charge(self._mean_push + _PUSH_OVERHEAD_BYTES)
        work = pushes + items.others() * charge(0)
        work += (items.starts + items.continuations) * charge(self._mean_push)
        # An OSD that asks for an object does not know its size, and is charged for a whole chunk.
        work += items.requests() * charge(_PULL_BYTES)
        self.done[RECOVERY] += work * self._degraded_share
        self.done[BEST_EFFORT] += work * (1.0 - self._degraded_share)

    def _update_mean_push(
        self, gained: Mapping[str, float], received: float, now: Totals, before: Totals
    ) -> None:
        """Take the mean size of pushes, else of recovered bytes; keep it while there are none.

        An OSD that only receives, as one that came back, counts no bytes of pushes. What its store
        was given to write beside all writes of clients are these.
        """
        if gained["pushes_sent"]:
            self._mean_push = gained["push_bytes"] / gained["pushes_sent"]
            self._received_only = False
        elif gained["recovery_ops"] and gained["recovery_bytes"]:
            self._mean_push = gained["recovery_bytes"] / gained["recovery_ops"]
            self._received_only = False
        elif received and self._received_only and (others := _other_bytes(now, before, gained)):
            self._mean_push = others / received


def _other_bytes(now: Totals, before: Totals, gained: Mapping[str, float]) -> float:
    """What the store was given to write beside writes of clients, its own and other OSDs'."""
    if now.store_bytes is None or before.store_bytes is None:
        return 0.0
    own = sum(
        _gain(getattr(now, kind).bytes, getattr(before, kind).bytes)
        for kind in ("writes", "read_writes")
    )
    return max(_gain(now.store_bytes, before.store_bytes) - own - gained["subop_bytes"], 0.0)


def _scrub_work(now: Scrubbed | None, before: Scrubbed | None, qos: QosState) -> float:
    """An op for each scrubbed object, the bytes that deep scrubs read, and the events of chunks.

    The scheduler charges each chunk for as many objects as a chunk may have. Chunks of small
    placement groups have fewer: this counts the objects that were there.
    """
    if now is None or before is None:
        return 0.0
    events = _gain(now.chunks, before.chunks) * _EVENTS_PER_CHUNK
    ops_for_bytes = _gain(now.bytes, before.bytes) / qos.cost.cost_per_io
    return _gain(now.objects, before.objects) + ops_for_bytes + events
