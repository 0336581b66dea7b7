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
    io_rates: dict[str, float] = defaultdict(float)
    byte_rates: dict[str, float] = defaultdict(float)
    for points in jobs:
        for direction in points[-1].ios:
            ios = [(point.time, point.ios.get(direction, 0)) for point in points]
            sizes = [(point.time, point.bytes.get(direction, 0)) for point in points]
            io_rates[direction] += (count_at(ios, end) - count_at(ios, begin)) / seconds
            byte_rates[direction] += (count_at(sizes, end) - count_at(sizes, begin)) / seconds
    return CommonRates(seconds, dict(io_rates), dict(byte_rates))


def count_at(points: Sequence[tuple[float, float]], time: float) -> float:
    """The count at a moment, of points (time, count). Before the first point it is the first count,
    after the last point the last."""
    index = bisect_left(points, time, key=lambda point: point[0])
    if index in (0, len(points)):
        return float(points[min(index, len(points) - 1)][1])
    (before, count_before), (after, count_after) = points[index - 1], points[index]
    return count_before + (count_after - count_before) * (time - before) / (after - before)
