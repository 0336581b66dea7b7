"""dmClock as an OSD's shard runs it: the tags of each class, and which request is next.

After the library in Ceph (`src/dmclock`), in the variant that the OSD uses: only the request at the
head of a queue has a tag, a limit is waited for, and delta and rho are 0 because each shard is
alone.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple

# Seconds after which a class without requests competes again. The library looks once a minute.
_IDLE_AGE: Final = 300.0


class Terms(NamedTuple):
    """What a class is given of a shard, in cost per second; 0 is none."""

    reservation: float
    weight: float
    limit: float


class Tag(NamedTuple):
    """When a request falls due: by reservation, by weight, and by limit."""

    reservation: float
    proportion: float
    limit: float


def next_tag(previous: Tag, terms: Terms, cost: float, arrival: float) -> Tag:
    """The tag of a request that follows one with the tag `previous`."""
    reservation, weight, limit = terms
    return Tag(
        max(arrival, previous.reservation + cost / reservation) if reservation else inf,
        max(arrival, previous.proportion + cost / weight) if weight else inf,
        max(arrival, previous.limit + cost / limit) if limit else -inf,
    )


_START: Final = Tag(0.0, 0.0, 0.0)


@dataclass(slots=True)
class _Class:
    terms: Terms
    tag: Tag = _START  # of the head, or of the last one when none waits
    ready: bool = False
    requests: deque[tuple[float, float, Any]] = field(default_factory=deque)
    idle: bool = True
    added: float = 0.0
    # What is added to its proportion since it came back from being idle.
    shift: float = 0.0

    def advance(self, cost: float, arrival: float) -> None:
        new = next_tag(self.tag, self.terms, cost, arrival)
        # A bound that the class does not have leaves the last value.
        kept = [
            old if abs(value) == inf else value for old, value in zip(self.tag, new, strict=True)
        ]
        self.tag = Tag(*kept)
        self.ready = False


class Served(NamedTuple):
    """A request that is next, and whether its reservation made it so."""

    name: str
    cost: float
    by_reservation: bool
    request: Any


class DmClock:
    """The queues of one shard. Times are seconds of any clock that only grows."""

    def __init__(self, terms: dict[str, Terms]) -> None:
        self._classes = {name: _Class(each) for name, each in terms.items()}
        self.waiting = 0

    def add(self, name: str, cost: float, request: Any, now: float) -> None:
        each = self._classes[name]
        if each.idle or now - each.added > _IDLE_AGE:
            each.idle = True
            self._return(each, now)
        each.added = now
        if not each.requests:
            each.advance(cost, now)
        each.requests.append((now, cost, request))
        self.waiting += 1

    def _return(self, each: _Class, now: float) -> None:
        """A class that was idle competes from where the least of the others is."""
        others = [
            c.tag.proportion + c.shift
            for c in self._classes.values()
            if not c.idle and (c.requests or now - c.added <= _IDLE_AGE)
        ]
        if others:
            each.shift = min(others) - now
        each.idle = False

    def pull(self, now: float) -> Served | float | None:
        """The next request; or when to ask again; or None where none waits."""
        waiting = [(name, c) for name, c in self._classes.items() if c.requests]
        if not waiting:
            return None
        due = [(c.tag.reservation, name) for name, c in waiting if c.terms.reservation]
        first = min(due, default=(inf, ""))
        if first[0] <= now:
            return self._pop(first[1], by_reservation=True)
        best, chosen = inf, ""
        for name, c in waiting:
            if not c.ready:
                c.ready = not c.terms.limit or c.tag.limit <= now
            if c.ready and c.terms.weight and c.tag.proportion + c.shift < best:
                best, chosen = c.tag.proportion + c.shift, name
        if chosen:
            return self._pop(chosen, by_reservation=False)
        return min([first[0], *(c.tag.limit for _, c in waiting if not c.ready)])

    def _pop(self, name: str, *, by_reservation: bool) -> Served:
        each = self._classes[name]
        _, cost, request = each.requests.popleft()
        self.waiting -= 1
        if each.requests:
            arrival, following, _ = each.requests[0]
            each.advance(following, arrival)
        if not by_reservation and each.terms.reservation:
            # What the weight gave is not charged to the reservation.
            paid = each.tag.reservation - cost / each.terms.reservation
            each.tag = each.tag._replace(reservation=paid)
        return Served(name, cost, by_reservation, request)

    def lag(self, name: str, now: float) -> float:
        """Seconds by which the head of the class has missed its reservation."""
        each = self._classes[name]
        if not each.requests or not each.terms.reservation:
            return 0.0
        return max(0.0, now - each.tag.reservation)

    def waiting_of(self, name: str) -> int:
        return len(self._classes[name].requests)
