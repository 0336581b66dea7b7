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
    """The values from which a figure is evidence. docs/internals/rules.md has the reasons."""

    # Client operations in every sample. One alone may be a client that sends one after the other.
    in_progress: float = 2
    waiting: float = 1  # client operations, or threads of an OSD, that wait on average
    store_in_progress: float = 8  # transactions in BlueStore on average
    # Seconds of a transaction. Below, many in progress are a sign of load and not of piling up.
    store_latency_ssd: float = 0.005
    store_latency_hdd: float = 0.05
    reservation_lag: float = 0.25  # seconds; above, a class is served too late
    # Share of a reservation, limit or CPU that counts as all of it: rates are off by up to a tenth.
    reached: float = 0.9


BOUNDS: Final = Bounds()


class Amount(Protocol):
    """A number (`top`), or an array with a number for each moment (reports)."""

    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...


# Every comparison with NaN is false, so a figure that is not known is no evidence.
UNKNOWN: Final = math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hold:
    """The figures of a class of an OSD over a hold: the time for which a state must last.

    Minima are over the samples of the hold. The verdicts are bools; arrays of them for arrays of
    figures, so they are combined with & and |. Attained, reserved and limit are in normalised
    operations per second.
    """

    work: str  # the class
    attained: Amount = UNKNOWN
    reserved: Amount = UNKNOWN  # the reservation of all shards
    limit: Amount = UNKNOWN  # 0: none
    queued: Amount = UNKNOWN  # minimum of its requests in the queue
    lag: Amount = UNKNOWN  # minimum, in seconds, of the shard that is furthest behind
    shards_with_demand: Amount = 1.0  # share of the shards that have work for it
    # Of clients only. Seconds per second are a mean number: of operations that wait, or of
    # transactions in the store.
    in_progress: Amount = UNKNOWN  # minimum of operations, with those in the queue
    waiting: Amount = (
        UNKNOWN  # seconds per second: before the scheduler, in its queue, at throttles
    )
    store_seconds: Amount = UNKNOWN  # seconds per second that transactions are in the store
    store_ended: Amount = UNKNOWN  # transactions per second
    store_used: Amount = UNKNOWN  # minimum of the used share of the store's throttle
    on_disk: bool = False  # the OSD's media is a hard disk

    @property
    def piling_up(self) -> Any:
        """Many transactions in the store, each longer than its media explains; or none ends."""
        latency = BOUNDS.store_latency_hdd if self.on_disk else BOUNDS.store_latency_ssd
        slow = (self.store_ended > 0) & (self.store_seconds >= self.store_ended * latency)
        many = self.store_seconds >= BOUNDS.store_in_progress
        return (slow & many) | ((self.store_ended <= 0) & (self.store_used > 0))

    @property
    def has_demand(self) -> Any:
        """Whether there is unmet demand. A class without it is not violated."""
        if self.work != CLIENT:
            return self.queued >= 1
        waits = (self.waiting >= BOUNDS.waiting) | self.piling_up
        return (self.in_progress >= BOUNDS.in_progress) & waits

    @property
    def short(self) -> Any:
        """Whether the class gets too little of its effective reservation.

        Each shard has an equal part of the reservation, and the class can use the parts of shards
        in which it has work. If work piles up behind the scheduler, which delays all shards, the
        whole reservation counts. Recovery at its limit has had its reservation: its figures are
        estimates.
        """
        enough = self.reserved * BOUNDS.reached
        below_part = self.attained < enough * self.shards_with_demand
        if self.work == CLIENT:
            return below_part | (self.piling_up & (self.attained < enough))
        at_limit = (self.limit > 0) & (self.attained > self.limit * BOUNDS.reached)
        return below_part & (at_limit ^ True)  # not at_limit, for bools and for arrays

    @property
    def violated(self) -> Any:
        """Whether the class has demand, and gets less than its reservation or gets it too late.

        The attained work of best effort is a lower bound: for it only the reservation lag decides.
        """
        late = (self.lag > BOUNDS.reservation_lag) & (self.reserved > 0)
        return self.has_demand & (late if self.work == BEST_EFFORT else self.short | late)
