"""The judge: does a class of an OSD have unmet demand, and is its reservation violated?

Where the recording rules run, their verdict counts (`PerClass.DEMAND`, `PerClass.VIOLATED`). This
is for places without rules: `top` on an exporter, and reports from archives. The rules take their
bounds from here and say the same in PromQL; a test compares the two. The rules see more besides:
bursts in step with the scrapes, and clients that wait for another OSD.

A window in which the OSD or its exporter restarted is evidence of nothing: counters began at 0, and
work was held up. The rules leave it out of the violations (`unless … resets(...) > 0`). For reports
what it shows is UNKNOWN: neither demand nor a violation. `top` has no window and cannot tell: it
may show `behind` for a moment.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cephqos_base.series import BEST_EFFORT, CLIENT


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """From where on a figure is evidence. docs/internals/rules.md says why each is what it is."""

    in_progress: float = 2  # client operations in every sample: not one client in lock step
    waiting: float = 1  # client operations, or threads of an OSD, that wait on average
    store_in_progress: float = 8  # transactions in BlueStore on average
    store_latency_ssd: float = 0.005  # seconds; below, many in progress is not piling up
    store_latency_hdd: float = 0.05  # a disk takes long for being a disk
    reservation_lag: float = 0.25  # seconds
    # Of a reservation, a limit, a CPU: from here on it is reached. Rates are off by a tenth.
    reached: float = 0.9


BOUNDS: Final = Bounds()


class Amount(Protocol):
    """A number, or an array with one for each moment."""

    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...


# Neither more nor less than anything: what is not known is no evidence.
UNKNOWN: Final = math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hold:
    """What a class of an OSD shows over a hold. Its verdicts are bools, or arrays of them."""

    work: str  # the class
    attained: Amount = UNKNOWN
    reserved: Amount = UNKNOWN
    limit: Amount = UNKNOWN  # 0: none
    queued: Amount = UNKNOWN  # the fewest in its queue
    lag: Amount = UNKNOWN  # seconds: the least, of the shard that is furthest behind
    shards_with_demand: Amount = 1.0  # the share of the shards that have work for it
    # What else clients wait for. Seconds of waiting and in the store are per second.
    in_progress: Amount = UNKNOWN  # the fewest, with those in the queue
    waiting: Amount = UNKNOWN  # before the scheduler, in its queue and at throttles
    store_seconds: Amount = UNKNOWN
    store_ended: Amount = UNKNOWN  # transactions per second
    store_used: Amount = UNKNOWN  # the least of its throttle
    on_disk: bool = False

    @property
    def piling_up(self) -> Any:
        """Many transactions in the store, each longer than its media explains; or none ends."""
        latency = BOUNDS.store_latency_hdd if self.on_disk else BOUNDS.store_latency_ssd
        slow = (self.store_ended > 0) & (self.store_seconds >= self.store_ended * latency)
        many = self.store_seconds >= BOUNDS.store_in_progress
        return (slow & many) | ((self.store_ended <= 0) & (self.store_used > 0))

    @property
    def has_demand(self) -> Any:
        """Whether there is demand: without it nothing is violated."""
        if self.work != CLIENT:
            return self.queued >= 1
        waits = (self.waiting >= BOUNDS.waiting) | self.piling_up
        return (self.in_progress >= BOUNDS.in_progress) & waits

    @property
    def short(self) -> Any:
        """Whether it gets too little of its effective reservation.

        That is the part of those shards for which it has work; where work piles up behind the
        scheduler all shards share that fate. What is counted for recovery is estimated: at its
        limit it has had its reservation.
        """
        least = self.reserved * BOUNDS.reached
        in_part = self.attained < least * self.shards_with_demand
        if self.work == CLIENT:
            return in_part | (self.piling_up & (self.attained < least))
        held = (self.limit > 0) & (self.attained > self.limit * BOUNDS.reached)
        return in_part & (held ^ True)

    @property
    def violated(self) -> Any:
        """Whether it has demand, and gets too little of what is reserved, or gets it too late.

        What is counted for best effort is a lower bound, so only its lag tells.
        """
        late = (self.lag > BOUNDS.reservation_lag) & (self.reserved > 0)
        return self.has_demand & (late if self.work == BEST_EFFORT else self.short | late)
