"""Rates of several jobs together: over the time in which all of them ran.

Jobs start and end at different moments. Total I/Os by the longest run time says too little, the sum
of each job's own rate too much.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoneSoFar:
    """What a job had done at a moment (seconds since the epoch), by direction."""

    time: float
    ios: Mapping[str, int]
    bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CommonRates:
    """Per second, by direction, over `seconds`."""

    seconds: float
    ios: Mapping[str, float]
    bytes: Mapping[str, float]


def over_common_time(jobs: Sequence[Sequence[DoneSoFar]]) -> CommonRates | None:
    """The rates of these jobs in the time from the last start to the first end; between two points
    of a job its rate counts as even. None where no such time exists."""
    if not jobs or not all(jobs):
        return None
    begin = max(points[0].time for points in jobs)
    end = min(points[-1].time for points in jobs)
    seconds = round(end - begin, 6)  # of times since the epoch the digits after that are noise
    if seconds <= 0:
        return None
    ios: dict[str, float] = defaultdict(float)
    moved: dict[str, float] = defaultdict(float)
    for points in jobs:
        for direction in points[-1].ios:
            done = [(point.time, point.ios.get(direction, 0)) for point in points]
            sizes = [(point.time, point.bytes.get(direction, 0)) for point in points]
            ios[direction] += (_at(done, end) - _at(done, begin)) / seconds
            moved[direction] += (_at(sizes, end) - _at(sizes, begin)) / seconds
    return CommonRates(seconds, dict(ios), dict(moved))


def _at(points: Sequence[tuple[float, int]], time: float) -> float:
    """The count at a moment; before the first point and after the last it is theirs."""
    after = bisect_left(points, time, key=lambda point: point[0])
    if after in (0, len(points)):
        return float(points[min(after, len(points) - 1)][1])
    (before, count), (later, more) = points[after - 1], points[after]
    return count + (more - count) * (time - before) / (later - before)
