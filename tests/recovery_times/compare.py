"""Other ways to say how long recovery takes, on the same recordings:

    python -m tests.recovery_times.compare

Each is judged as `judge` does: its likely factor is the median of all other recordings.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.recovery_times.judge import LEAST, RECORDINGS, WAYS, Look, looks_of, span_of

from cephqos_exporter.cluster.time_left import RecoveryPace

_MINUTE: Final = 60.0


def slowest(looks: Sequence[Look]) -> float | None:
    """The one that the exporter has."""
    pace = RecoveryPace()
    for time, groups in looks:
        pace.observe(groups, time)
    return pace.slowest_seconds()


def _done(looks: Sequence[Look], window: float) -> tuple[float, Mapping[int, float], float]:
    """Copies that were made in the last seconds: of all, by OSD, and the seconds."""
    now, total, by_osd = looks[-1][0], 0.0, defaultdict[int, float](float)
    recent = [look for look in looks if look[0] >= now - window]
    for (_, before), (_, after) in pairwise(recent):
        left = {group.pgid: group.left for group in after}
        for group in before:
            done = max(0, group.left - left.get(group.pgid, 0))
            total += done
            for osd in group.osds:
                by_osd[osd] += done
    return total, by_osd, now - recent[0][0]


def _all(window: float) -> Callable[[Sequence[Look]], float | None]:
    def seconds(looks: Sequence[Look]) -> float | None:
        done, _, took = _done(looks, window)
        left = sum(group.left for group in looks[-1][1])
        return left * took / done if done else None

    return seconds


def osd_by_clock(looks: Sequence[Look]) -> float | None:
    """The slowest OSD, by the copies that it made per second, whatever its slots."""
    _, by_osd, took = _done(looks, _MINUTE)
    left = defaultdict[int, float](float)
    for group in looks[-1][1]:
        for osd in group.osds:
            left[osd] += group.left
    times = [left[osd] * took / done for osd, done in by_osd.items() if done]
    return max(times, default=None)


WAYS_TO_SAY: Final[Mapping[str, Callable[[Sequence[Look]], float | None]]] = {
    "the slowest OSD, by the time in which it works": slowest,
    "the slowest OSD, by the clock": osd_by_clock,
    "all copies, last 15 s": _all(15.0),
    "all copies, last minute": _all(_MINUTE),
    "all copies, since the beginning": _all(math.inf),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a recording: how much longer it took than was said."""

    recording: str
    way: float
    ratio: float


def points(say: Callable[[Sequence[Look]], float | None]) -> Iterator[Point]:
    for file in sorted(RECORDINGS.glob("*.jsonl.gz")):
        _, looks = looks_of(file)
        if (span := span_of(looks)) is None:
            continue
        start, end = span
        for way in WAYS:
            until = [look for look in looks if look[0] < start + way * (end - start)]
            if until and until[-1][0] - start >= LEAST and (seconds := say(until)):
                yield Point(file.name, way, (end - until[-1][0]) / seconds)


def errors(found: Sequence[Point]) -> Iterator[tuple[Point, float]]:
    """Of the likely time, as a part of the true one."""
    for point in found:
        others = [other.ratio for other in found if other.recording != point.recording]
        if others:
            yield point, abs(statistics.median(others) / point.ratio - 1)


def main() -> None:
    print("| way to say it | points | median error | at 50 % | worst |")
    print("|---|---|---|---|---|")
    for name, say in WAYS_TO_SAY.items():
        judged = list(errors(list(points(say))))
        each = [error for _, error in judged]
        half = [error for point, error in judged if point.way == 0.5]
        if half:
            middle, of_half = statistics.median(each), statistics.median(half)
            print(f"| {name} | {len(each)} | {middle:.0%} | {of_half:.0%} | {max(each):.0%} |")


if __name__ == "__main__":
    main()
