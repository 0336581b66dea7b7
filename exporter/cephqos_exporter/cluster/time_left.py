"""How long recovery still takes: the slowest OSD decides. And intervals, of scrubs too.

Each placement group that recovers, or waits for it, has copies left to make or move. They need its
primary, which reads, and the OSDs that receive. The rate of an OSD is the copies that it makes per
second in which it works, in the last minute. Time in which it waits for others does not count. So
the OSD that others wait for has the longest time, and that is the cluster's.

Intervals are from recorded recoveries and scrubs (tests/recovery_times): how long they took,
divided by what was said of them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cephqos_exporter.cluster.replies import MovingGroup
from cephqos_exporter.families import Family
from cephqos_exporter.labels import Labels

_WINDOW_SECONDS: Final = 60.0
# Before three reports of each OSD (one in five seconds), rates are those of the beginning: groups
# peer, and wait for slots. Recorded recoveries were predicted badly from them.
_LEAST_SECONDS: Final = 15.0
# An OSD's own rate counts as much as the mean of all once it has worked for so long.
_MEAN_COUNTS_SECONDS: Final = 5.0


class Factors(NamedTuple):
    """Of what is said at first: the likely time, and a 90 % interval."""

    low: float
    likely: float
    high: float


FACTORS: Final = Factors(low=0.63, likely=1.21, high=2.31)
# Of what scrubs have left, divided by their rate: until the last of those under way is done, and
# until the pool is.
RUNNING_SCRUBS: Final = Factors(low=0.44, likely=1.17, high=3.08)
DUE_SCRUBS: Final = Factors(low=0.33, likely=1.01, high=3.08)


@dataclass(slots=True)
class _Step:
    """What was done between two looks, by OSD. An OSD counts as working if a group of it moved at
    the first of the two."""

    began: float
    time: float
    copies: Mapping[int, float]
    seconds: Mapping[int, float]


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
        copies, seconds = defaultdict[int, float](float), dict[int, float]()
        for group in before:
            done = max(0, group.left - left.get(group.pgid, 0))
            for osd in group.osds:
                copies[osd] += done
                if group.moving and group.left:
                    seconds[osd] = now - then
        self._steps.append(_Step(then, now, copies, seconds))
        while self._steps and self._steps[0].time <= now - _WINDOW_SECONDS:
            self._steps.popleft()

    def slowest_seconds(self) -> float | None:
        """The time of the slowest OSD; None while nothing has moved in the last minute, or since
        too short a time."""
        left = defaultdict[int, float](float)
        for group in self.groups:
            if not group.osds and group.left:
                return None  # no OSD has it
            for osd in group.osds:
                left[osd] += group.left
        if not any(left.values()):
            return 0.0
        copies = _total(step.copies for step in self._steps)
        seconds = _total(step.seconds for step in self._steps)
        if not sum(copies.values()) or not seconds or self._moved_for() < _LEAST_SECONDS:
            return None
        weight = _MEAN_COUNTS_SECONDS
        like_all = weight * sum(copies.values()) / sum(seconds.values())
        return max(
            of_osd * (seconds[osd] + weight) / (copies[osd] + like_all)
            for osd, of_osd in left.items()
        )

    def _moved_for(self) -> float:
        """How long ago something moved for the first time in the last minute."""
        first = next(step.began for step in self._steps if any(step.copies.values()))
        return self._steps[-1].time - first


def _total(steps: Iterable[Mapping[int, float]]) -> Mapping[int, float]:
    """Of all steps, by OSD."""
    total = defaultdict[int, float](float)
    for step in steps:
        for osd, amount in step.items():
            total[osd] += amount
    return total


def add_bounds(
    family: Family,
    seconds: float | None,
    factors: Factors,
    labels: Labels,
    *pairs: str,
    interval: bool = True,
) -> None:
    """Low, likely and high; nothing if it is not known. `interval`: whether that is."""
    for bound, factor in () if seconds is None else factors._asdict().items():
        if interval or bound == "likely":
            family.add(labels.of(*pairs, "bound", bound), seconds * factor)
