"""A shard of an OSD: what goes first, the scheduler, and the threads that it feeds."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from cephqos_base.series import CLIENT, IMMEDIATE
from cephqos_exporter.qos.cost_models import BandwidthModel, QosState

from .dmclock import DmClock, Served, Terms
from .parts import Place
from .wpq import Wpq


@dataclass(slots=True, eq=False)
class Work:
    """One item in the queue of a shard, and what it does once it is its turn."""

    work: str  # the class
    size: int  # bytes of the device
    charged: float  # bytes that mClock charges
    write: bool
    done: Callable[[], None]
    started: Callable[[], None] | None = None
    priority: int = 0
    wpq_cost: float = 0.0
    owner: str = "osd"
    requests: int = 1  # of the device


def cost_of(qos: QosState, charged: float) -> float:
    """In the scheduler's own units: bytes, or the early model's whole numbers."""
    if isinstance(qos.cost, BandwidthModel):
        return max(float(int(charged)), float(int(qos.cost.cost_per_io)))
    return qos.cost.normalised(charged)


def terms_of(qos: QosState) -> dict[str, Terms]:
    """What each shard's scheduler is given."""
    unit = qos.cost.cost_per_io if isinstance(qos.cost, BandwidthModel) else 1.0
    share = unit / qos.shards
    return {
        name: Terms((c.reservation or 0.0) * share, c.weight, (c.limit or 0.0) * share)
        for name, c in qos.classes.items()
    }


class Shard:
    """Either scheduler, behind what is strictly first."""

    def __init__(self, place: Place, random: Random) -> None:
        self.free = place.threads
        self.wakes_at = inf
        self._qos: Final = place.qos
        self._first: deque[Work] = deque()
        self._wpq = Wpq(random)
        self._mclock = DmClock(terms_of(place.qos)) if place.qos else None

    def add(self, work: Work, now: float) -> None:
        if self._qos is None or self._mclock is None:
            self._wpq.add(work.priority, work.owner, work.wpq_cost, work)
        elif work.work == IMMEDIATE:
            self._first.append(work)
        else:
            self._mclock.add(work.work, cost_of(self._qos, work.charged), work, now)

    def pull(self, now: float) -> Work | float | None:
        """What is next; or when to ask again; or None."""
        if self._first:
            return self._first.popleft()
        if self._mclock is None:
            work: Work | None = self._wpq.pull()
            return work
        found = self._mclock.pull(now)
        if isinstance(found, Served):
            served: Work = found.request
            return served
        return found

    def lag(self, now: float, work: str = CLIENT) -> float:
        return self._mclock.lag(work, now) if self._mclock else 0.0
