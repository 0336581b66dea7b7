"""How long recovery still takes: the slowest OSD decides.

Each placement group that recovers, or waits for it, has copies left to make or move. They need its
primary, which reads, and the OSDs that receive. An OSD works on as many groups at once as it has
slots, so its time is the sum of the times of its groups, divided by those that it works on now. The
longest time is that of the cluster. Rates are those of the last minute, by OSD.

The interval is from recorded recoveries (tests/recovery_times): how long they took, divided by what
this file said.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cephqos_exporter.cluster.replies import MovingGroup

_WINDOW_SECONDS: Final = 60.0
# Before three reports of each OSD (one in five seconds), rates are those of the beginning: groups
# peer, and wait for slots. Recorded recoveries were predicted badly from them.
_LEAST_SECONDS: Final = 15.0
# An OSD's own rate counts as much as the mean of all once it has worked for so long.
_MEAN_COUNTS_SECONDS: Final = 5.0


class Factors(NamedTuple):
    """Of what the slowest OSD says: the likely time, and a 90 % interval."""

    low: float
    likely: float
    high: float


FACTORS: Final = Factors(low=0.47, likely=0.88, high=1.66)


@dataclass(slots=True)
class _Step:
    """What was done between two looks, by OSD."""

    began: float
    time: float
    copies: Mapping[int, float]
    seconds: Mapping[int, float]  # of groups that moved; two groups for 5 s are 10
    all_copies: float
    all_seconds: float


@dataclass(slots=True)
class RecoveryPace:
    """Compares each look at the groups with the one before."""

    groups: Sequence[MovingGroup] = ()
    _time: float | None = None
    _steps: deque[_Step] = field(default_factory=deque)

    def observe(self, groups: Sequence[MovingGroup], now: float) -> None:
        """Take in all groups that recover or wait. One that is missing is done."""
        before, then = self.groups, self._time
        self.groups, self._time = groups, now
        if then is None or now <= then:  # the clock was set back
            self._steps.clear()
            return
        left = {group.pgid: group.left for group in groups}
        copies, seconds = defaultdict[int, float](float), defaultdict[int, float](float)
        step = _Step(then, now, copies, seconds, 0.0, 0.0)
        for group in before:
            done = max(0, group.left - left.get(group.pgid, 0))
            took = now - then if group.moving or done else 0.0
            step.all_copies += done
            step.all_seconds += took
            for osd in group.osds:
                copies[osd] += done
                seconds[osd] += took
        self._steps.append(step)
        while self._steps and self._steps[0].time <= now - _WINDOW_SECONDS:
            self._steps.popleft()

    def slowest_seconds(self) -> float | None:
        """The time of the slowest OSD; None while nothing has moved in the last minute, or since
        too short a time."""
        if not any(group.left for group in self.groups):
            return 0.0
        copies = sum(step.all_copies for step in self._steps)
        seconds = sum(step.all_seconds for step in self._steps)
        if not copies or not seconds or self._moved_for() < _LEAST_SECONDS:
            return None
        rates = self._rates(copies / seconds)
        work, moving = defaultdict[int, float](float), defaultdict[int, int](int)
        for group in self.groups:
            if not group.osds and group.left:
                return None  # no OSD has it
            rate = min((rates[osd] for osd in group.osds), default=1.0)
            for osd in group.osds:
                work[osd] += group.left / rate
                moving[osd] += group.moving
        return max(seconds / max(1, moving[osd]) for osd, seconds in work.items())

    def _moved_for(self) -> float:
        """How long ago something moved for the first time in the last minute."""
        first = next(step.began for step in self._steps if step.all_copies)
        return self._steps[-1].time - first

    def _rates(self, mean: float) -> Mapping[int, float]:
        """Copies per second of one group, by OSD."""
        osds = {osd for group in self.groups for osd in group.osds}
        rates = {}
        for osd in osds:
            copies = sum(step.copies.get(osd, 0.0) for step in self._steps)
            seconds = sum(step.seconds.get(osd, 0.0) for step in self._steps)
            weight = _MEAN_COUNTS_SECONDS
            rates[osd] = (copies + weight * mean) / (seconds + weight)
        return rates


def bounds(slowest: float | None, factors: Iterable[float] = FACTORS) -> Factors | None:
    """Low, likely and high; None if it is not known."""
    return None if slowest is None else Factors(*(slowest * factor for factor in factors))
