"""WPQ: a lottery between priorities, in which what costs much is drawn again more often.

After `WeightedPriorityQueue.h` of Ceph. Within a priority the clients take turns. What is at or
above the cut-off of the OSD never gets here: it goes first.
"""

from collections import OrderedDict, deque
from random import Random
from typing import Any


class Wpq:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._priorities: dict[int, OrderedDict[str, deque[tuple[float, Any]]]] = {}
        self._most = 0.0  # the largest cost ever seen
        self.waiting = 0

    def add(self, priority: int, owner: str, cost: float, request: Any) -> None:
        owners = self._priorities.setdefault(priority, OrderedDict())
        owners.setdefault(owner, deque()).append((cost, request))
        self._most = max(self._most, cost)
        self.waiting += 1

    def pull(self) -> Any | None:
        """The next request, or None where none waits."""
        if not self.waiting:
            return None
        priority = self._draw()
        owners = self._priorities[priority]
        owner, queue = next(iter(owners.items()))
        _, request = queue.popleft()
        if queue:
            owners.move_to_end(owner)
        else:
            del owners[owner]
            if not owners:
                del self._priorities[priority]
        self.waiting -= 1
        return request

    def _draw(self) -> int:
        priorities = sorted(self._priorities, reverse=True)
        if len(priorities) == 1:
            return priorities[0]
        while True:
            priority = self._random.choices(priorities, priorities)[0]
            owners = self._priorities[priority]
            cost = next(iter(owners.values()))[0][0]
            if self._random.random() * self._most <= self._most - 0.9 * cost:
                return priority
