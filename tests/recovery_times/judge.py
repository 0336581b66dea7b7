"""How right the time left is, on recorded recoveries:

    python -m tests.recovery_times.judge FOLDER    # recordings to recordings/ and results.csv
    python -m tests.recovery_times.judge           # results.csv to the figures of the documentation

A row of results.csv is a recovery at a quarter, a half and three quarters of its way: what the
slowest OSD said to one who looks every five seconds, as the exporter does, and how long it really
took. Looks begin with one of the first five: `begun`. The exporter's factors are from the first
recordings, with looks that begin with the first: each of these recordings is judged by factors from
the others. Later ones are judged by the exporter's.
"""

import csv
import gzip
import json
import math
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.cluster.replies import MOVING_STATES, MovingGroup
from cephqos_exporter.cluster.time_left import FACTORS, Factors, RecoveryPace

RESULTS: Final = Path(__file__).with_name("results.csv")
RECORDINGS: Final = Path(__file__).with_name("recordings")
WAYS: Final = (0.25, 0.5, 0.75)
_COVERED: Final = 0.9
_HEAD: Final = ("recording", "kind", "release", "load", "took", "begun", "way", "said", "true")
EVERY: Final = 5  # looks of a recording, which are a second apart
LEAST: Final = 15.0  # seconds after the beginning; before, nothing is said
_NOT_KNOWN_YET: Final = re.compile(r"\w+-9\d-|reef-81-[56]|pacific-82-6|tentacle-83-[3-6]")
_NO_OSD: Final = 0x7FFFFFFF
_SHORTEST: Final = 10.0  # seconds; the manager's figures are a second old


Look = tuple[float, Sequence[MovingGroup]]  # a time, and the groups that were not done


@dataclass(frozen=True, slots=True)
class Result:
    recording: str
    kind: str
    release: str
    begun: int
    way: float
    said: float
    true: float

    @property
    def later(self) -> bool:
        """Whether it was recorded when the way to say it, and its factors, were there."""
        return bool(_NOT_KNOWN_YET.match(self.recording))

    @property
    def factor(self) -> float:
        """On a logarithm: by how much longer it took."""
        return math.log(self.true / self.said)


def groups_of(poll: Mapping[str, Any]) -> Iterator[MovingGroup]:
    """The groups of a poll that recover or wait, as `parse_moving` has them."""
    for pgid, state, up, acting, primary, _, degraded, misplaced, _ in poll["groups"]:
        states = set(state.split("+"))
        if states.isdisjoint(MOVING_STATES):
            continue
        here, there = ({osd for osd in osds if 0 <= osd < _NO_OSD} for osds in (up, acting))
        osds = frozenset({primary} | ((here - there) or here))
        moving = not states.isdisjoint({"recovering", "backfilling"})
        yield MovingGroup(pgid, degraded + misplaced, osds, moving)


def looks_of(file: Path) -> tuple[Mapping[str, Any], Sequence[Look]]:
    """The conditions of a recording, and its looks."""
    about, *polls = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    return about, [(poll["time"], list(groups_of(poll))) for poll in polls]


def span_of(looks: Sequence[Look]) -> tuple[float, float] | None:
    """When the recovery began and ended; None if it did not end, or was too short."""
    left = [time for time, groups in looks if any(group.left for group in groups)]
    if not left or looks[-1][1]:
        return None
    start, end = left[0], next(time for time, _ in looks if time > left[-1])
    return (start, end) if end - start >= _SHORTEST else None


def rows_of(file: Path) -> Iterator[Sequence[Any]]:
    """Those of one recording."""
    about, looks = looks_of(file)
    span = span_of(looks)
    if span is None:
        return
    start, end = span
    words = (about["recording"], about["kind"], about["release"], int(about["load"]))
    for begun in range(EVERY):
        pace, ways = RecoveryPace(), list(WAYS)
        for time, groups in looks[begun::EVERY]:
            pace.observe(groups, time)
            while ways and end > time >= start + ways[0] * (end - start):
                said, way = pace.slowest_seconds(), ways.pop(0)
                figures = (
                    f"{end - start:.1f}",
                    begun,
                    way,
                    f"{said or 0:.1f}",
                    f"{end - time:.1f}",
                )
                yield (*words, *figures)


def results() -> Sequence[Result]:
    with RESULTS.open(newline="") as file:
        return [
            Result(
                row["recording"],
                row["kind"],
                row["release"],
                int(row["begun"]),
                float(row["way"]),
                float(row["said"]),
                float(row["true"]),
            )
            for row in csv.DictReader(file)
            if float(row["said"]) and float(row["took"]) - float(row["true"]) >= LEAST
        ]


def calibration(all_results: Iterable[Result]) -> Sequence[tuple[str, float]]:
    """The recordings and factors that those of the exporter are from."""
    return [(it.recording, it.factor) for it in all_results if not it.later and it.begun == 0]


def factors(known: Iterable[tuple[object, float]]) -> Factors:
    """From factors on a logarithm, each with what it is of, such as a recording.

    The likely factor is the median; the others are as far from it as 90 % of those (and one more,
    which is not recorded yet) are at most, at the worst of their factors.
    """
    known = list(known)
    likely = statistics.median(factor for _, factor in known)
    worst: dict[object, float] = {}
    for of, factor in known:
        worst[of] = max(worst.get(of, 0.0), abs(factor - likely))
    ranked = sorted(worst.values())
    rank = min(math.ceil(_COVERED * (len(ranked) + 1)), len(ranked))
    half = ranked[rank - 1]
    return Factors(math.exp(likely - half), math.exp(likely), math.exp(likely + half))


@dataclass(frozen=True, slots=True)
class Judged:
    result: Result
    held: bool
    error: float  # of the likely time, as a part of the true one


def judged(all_results: Sequence[Result]) -> Sequence[Judged]:
    """Each result, by factors that know nothing of it."""
    found, first = [], calibration(all_results)
    for result in all_results:
        of_others = [it for it in first if it[0] != result.recording]
        low, likely, high = FACTORS if result.later else factors(of_others)
        held = low * result.said <= result.true <= high * result.said
        found.append(Judged(result, held, abs(likely * result.said / result.true - 1)))
    return found


def write(folder: Path) -> None:
    """Keep the recordings of a folder, and write the rows of all."""
    RECORDINGS.mkdir(exist_ok=True)
    for recording in sorted(folder.glob("*.jsonl")):
        kept = RECORDINGS / f"{recording.name}.gz"
        kept.write_bytes(gzip.compress(recording.read_bytes(), mtime=0))
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEAD)
        for kept in sorted(RECORDINGS.glob("*.jsonl.gz")):
            writer.writerows(rows_of(kept))


def main() -> None:
    all_results = results()
    print(f"factors: {', '.join(f'{it:.2f}' for it in factors(calibration(all_results)))}")
    print("| | way | recordings | said | in the 90 % interval | median error | worst |")
    print("|---|---|---|---|---|---|---|")
    every = judged(all_results)
    for later in (False, True):
        for way in WAYS:
            of_way = [it for it in every if (it.result.later, it.result.way) == (later, way)]
            if not of_way:
                continue
            held, errors = sum(it.held for it in of_way), [it.error for it in of_way]
            recordings = len({it.result.recording for it in of_way})
            print(
                f"| {'later' if later else 'first'} | {way:.0%} | {recordings} | {len(of_way)} |"
                f" {held} | {statistics.median(errors):.0%} | {max(errors):.0%} |"
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
    main()
