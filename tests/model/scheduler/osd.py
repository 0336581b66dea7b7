"""An OSD of the model: shards, their threads, BlueStore's throttle and the device."""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from math import inf
from random import Random

from .parts import Place
from .shard import Shard, Work


class Events:
    """The clock of a simulation: what happens next, in order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, moment: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (moment, next(self._order), happens))

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        self.at(self.now + seconds, happens)

    def run(self, until: float, stop: Callable[[], bool]) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until and not stop():
            self.now, _, happens = heapq.heappop(heap)
            happens()


class ModelOsd:
    """Takes work, and calls `done` of each item when it is on the device."""

    def __init__(self, place: Place, events: Events, random: Random) -> None:
        self._store = place.store
        self._events = events
        self._random = random
        self.shards = [Shard(place, random) for _ in range(place.shards)]
        self._slots = [place.store.slots] * (2 if place.store.apart else 1)
        self._queues: list[deque[tuple[float, Callable[[], None]]]] = [deque() for _ in self._slots]
        self._held = 0.0  # bytes in the throttle
        self._to_commit: list[Work] = []  # their data is written
        self._committing = False
        self._at_throttle: deque[tuple[Work, Shard]] = deque()
        spread = place.store.spread
        self._shape = 1 / spread**2 if spread else 0.0

    def take(self, work: Work, group: int) -> None:
        """Queue it in the shard of its placement group."""
        shard = self.shards[group % len(self.shards)]
        shard.add(work, self._events.now)
        self._feed(shard)

    def _feed(self, shard: Shard) -> None:
        while shard.free:
            found = shard.pull(self._events.now)
            if isinstance(found, Work):
                shard.free -= 1
                self._begin(found, shard)
            else:
                if found is not None:
                    self._wake(shard, found)
                return

    def _wake(self, shard: Shard, moment: float) -> None:
        if self._events.now < shard.wakes_at <= moment or moment == inf:
            return
        shard.wakes_at = moment

        def awake() -> None:
            if shard.wakes_at == moment:
                shard.wakes_at = inf
            self._feed(shard)

        self._events.at(moment, awake)

    def _begin(self, work: Work, shard: Shard) -> None:
        if work.started:
            work.started()
        if not work.requests:
            shard.free += 1
            work.done()
        elif not work.write:
            self._to_device(work, lambda: self._leave(work, shard))
        else:
            self._at_throttle.append((work, shard))
            self._pass_throttle()

    def _leave(self, work: Work, shard: Shard) -> None:
        shard.free += 1
        work.done()
        self._feed(shard)

    def _charge(self, work: Work) -> float:
        return work.size + self._store.throttle_bytes_per_write

    def _pass_throttle(self) -> None:
        most = self._store.throttle_bytes
        while self._at_throttle:
            work, shard = self._at_throttle[0]
            charge = self._charge(work)
            # As Ceph's: what is larger than the whole throttle goes over it.
            if most is not None and self._held > (most - charge if charge <= most else most):
                return
            self._at_throttle.popleft()
            self._held += charge
            shard.free += 1
            self._to_device(work, lambda work=work: self._written(work))  # type: ignore[misc]
            self._events.after(0.0, lambda shard=shard: self._feed(shard))  # type: ignore[misc]

    def _written(self, work: Work) -> None:
        if not self._store.commit_seconds:
            self._release([work])
            work.done()
            return
        self._to_commit.append(work)
        if not self._committing:
            self._commit()

    def _commit(self) -> None:
        """All that wait now, together; what comes meanwhile is for the next one. BlueStore lets go
        of the throttle before the commit, so that the next ones write their data meanwhile."""
        batch, self._to_commit = self._to_commit, []
        self._committing = bool(batch)
        self._release(batch)
        if batch:
            lane = len(self._slots) - 1
            self._queue_on(lane, self._store.commit_seconds, lambda: self._committed(batch))

    def _committed(self, batch: list[Work]) -> None:
        self._commit()
        for work in batch:
            work.done()

    def _release(self, batch: list[Work]) -> None:
        self._held -= sum(map(self._charge, batch))
        self._pass_throttle()

    def _to_device(self, work: Work, done: Callable[[], None]) -> None:
        lane = len(self._slots) - 1 if work.write else 0
        seconds = self._store.seconds(work.size, work.requests, write=work.write)
        self._queue_on(lane, seconds, done)

    def _queue_on(self, lane: int, seconds: float, done: Callable[[], None]) -> None:
        if not self._slots[lane]:
            self._queues[lane].append((seconds, done))
            return
        self._slots[lane] -= 1
        self._serve(lane, seconds, done)

    def _serve(self, lane: int, seconds: float, done: Callable[[], None]) -> None:
        if self._shape:
            seconds *= self._random.gammavariate(self._shape, 1 / self._shape)

        def end() -> None:
            queue = self._queues[lane]
            if queue:
                self._serve(lane, *queue.popleft())
            else:
                self._slots[lane] += 1
            done()

        self._events.after(seconds, end)
