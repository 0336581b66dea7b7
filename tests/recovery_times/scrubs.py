"""How right the time left of scrubs is, on real ones:

    python -m tests.recovery_times.scrubs watch FOLDER    # labs that are up, until interrupted
    python -m tests.recovery_times.scrubs judge FOLDER    # recordings to scrubs.csv
    python -m tests.recovery_times.scrubs                 # scrubs.csv to the figures of the docs

`watch` writes a file of JSON lines for each lab: its placement groups, every two seconds. `judge`
takes them in as the exporter does, every five seconds, at a quarter, a half and three quarters of
the time in which something was scrubbed. What is said of the groups that are scrubbed then, and of
all that have still to be, is laid beside how long it took. The exporter's factors are from the
first labs, without recovery: each of their rounds is judged by factors from the others. All others
are judged by what the exporter has.
"""

import asyncio
import contextlib
import csv
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.recovery_times.judge import factors

from cephqos_base.errors import CephqosError
from cephqos_exporter.cluster import replies
from cephqos_exporter.cluster.rates import time_left
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_exporter.cluster.time_left import DUE_SCRUBS, RUNNING_SCRUBS
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.state import lab_names, load_living

RESULTS: Final = Path(__file__).with_name("scrubs.csv")
_EVERY: Final = 2.0
_EXPORTER_EVERY: Final = 5.0
_SHORTEST: Final = 12.0  # seconds
_PAUSE: Final = 3  # looks in which nothing is scrubbed end a round
_WAYS: Final = (0.25, 0.5, 0.75)
_HEAD: Final = ("lab", "began", "took", "recovery", "of", "way", "said", "true")
# Those of the exporter's factors. Beside recovery it has no interval: what it would be is shown.
_FIRST: Final = ("run-3fa85b", "run-f802eb", "run-2d39b2")
_FACTORS: Final = {"running": RUNNING_SCRUBS, "due": DUE_SCRUBS}
_KEPT: Final = (
    *("pgid", "state", "acting_primary", "last_scrub_stamp", "last_deep_scrub_stamp"),
    *("last_change", "objects_scrubbed", "last_scrub_duration", "scrub_duration"),
)

Look = tuple[float, Sequence[replies.PgStat]]


async def watch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for name in lab_names():
            with contextlib.suppress(CephqosError, OSError):
                await _watch_lab(LabHandle(*load_living(name)), folder / f"{name}.jsonl")
        await asyncio.sleep(_EVERY)


async def _watch_lab(lab: LabHandle, file: Path) -> None:
    async with lab.client() as client:
        while True:
            reply = await client.command("pg dump", target="mgr", dumpcontents=["pgs"])
            rows = [_brief(row) for row in reply["pg_stats"]]
            with file.open("a") as out:
                out.write(json.dumps({"time": time.time(), "groups": rows}) + "\n")
            await asyncio.sleep(_EVERY)


def _brief(row: Mapping[str, Any]) -> Mapping[str, Any]:
    sums = {key: row["stat_sum"][key] for key in ("num_objects", "num_bytes")}
    return {key: row[key] for key in _KEPT if key in row} | {"stat_sum": sums}


def looks_of(file: Path) -> Iterator[Look]:
    for line in file.read_text().splitlines():
        poll = json.loads(line)
        groups = replies.parse_pgs({"pg_stats": poll["groups"]}, NotUnderstood())
        yield poll["time"], groups or ()


def rounds_of(looks: Sequence[Look]) -> Iterator[Sequence[Look]]:
    """Stretches in which something is scrubbed, with the looks before; whole ones only."""
    first, last = None, 0
    for number, (_, groups) in enumerate(looks):
        if any(group.scrubbing for group in groups):
            first, last = (number if first is None else first), number
        elif first is not None and number - last >= _PAUSE:
            yield looks[max(0, first - _PAUSE) : last + 2]
            first = None


def rows_of(file: Path) -> Iterator[Sequence[Any]]:
    for looks in rounds_of(list(looks_of(file))):
        began = next(now for now, groups in looks if any(group.scrubbing for group in groups))
        took = looks[-1][0] - began
        if took < _SHORTEST:
            continue
        recovery = any(
            not group.states.isdisjoint(replies.MOVING_STATES) for _, pgs in looks for group in pgs
        )
        of_round = (file.stem, f"{began:.0f}", f"{took:.0f}", int(recovery))
        stamps = {group.pgid: group.deep_scrubbed for group in looks[0][1]}
        progress, ways, asked = ScrubProgress(), list(_WAYS), 0.0
        for number, (now, groups) in enumerate(looks):
            if now - asked < _EXPORTER_EVERY:
                continue
            asked, running = now, [group for group in groups if group.scrubbing]
            progress.observe(groups)
            progress.list_running(running)
            progress.tick(now, {group.pool for group in groups})
            while ways and now >= began + ways[0] * took:
                way = ways.pop(0)
                if not running:
                    continue
                due = [group for group in groups if group.deep_scrubbed == stamps.get(group.pgid)]
                ends = {
                    "running": _ends(looks[number:], {group.pgid for group in running}),
                    "due": looks[-1][0],
                }
                for of, listed in (("running", running), ("due", due)):
                    said = _said(progress, running, listed) or 0
                    yield (*of_round, of, way, f"{said:.1f}", f"{ends[of] - now:.1f}")


def _said(
    progress: ScrubProgress, running: Sequence[replies.PgStat], listed: Iterable[replies.PgStat]
) -> float | None:
    """As the exporter says it of the pool that most of those under way are of."""
    pools, under_way = [group.pool for group in running], {group.pgid for group in running}
    pool = max(set(pools), key=pools.count)
    left = sum(
        max(0, group.objects - (progress.objects_done(group) if group.pgid in under_way else 0))
        for group in listed
        if group.pool == pool
    )
    return time_left(left, progress.pace.since_begun((pool, "deep")))


def _ends(looks: Sequence[Look], pgids: set[str]) -> float:
    return next(
        now
        for now, groups in looks
        if not any(group.scrubbing and group.pgid in pgids for group in groups)
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """What was said at a moment of a round, and what was true."""

    round: str
    later: bool
    of: str
    recovery: bool
    way: float
    said: float
    true: float

    @property
    def factor(self) -> float:
        """On a logarithm: by how much longer it took."""
        return math.log(self.true / self.said)


def moments() -> Sequence[Moment]:
    with RESULTS.open(newline="") as file:
        return [
            Moment(
                row["lab"] + row["began"],
                row["lab"] not in _FIRST,
                row["of"],
                row["recovery"] == "1",
                float(row["way"]),
                float(row["said"]),
                float(row["true"]),
            )
            for row in csv.DictReader(file)
            if float(row["said"])
        ]


def main() -> None:
    every = moments()
    for of in _FACTORS:
        first = enumerate(it.factor for it in every if it.of == of and not it.later)
        print(of, *(f"{factor:.2f}" for factor in factors(first)))
    print("| labs | of | beside | moments | in the 90 % interval | median error | at half |")
    print("|---|---|---|---|---|---|---|")
    for later in (False, True):
        for of in _FACTORS:
            for recovery in (False, True):
                row = [
                    it for it in every if (it.later, it.of, it.recovery) == (later, of, recovery)
                ]
                if row:
                    print(_line(row, [it for it in every if it.of == of and not it.later]))


def _line(row: Sequence[Moment], first: Sequence[Moment]) -> str:
    held, errors, at_half = 0, [], []
    for moment in row:
        of_others = enumerate(it.factor for it in first if it.round != moment.round)
        low, likely, high = _FACTORS[moment.of] if moment.later else factors(of_others)
        held += low * moment.said <= moment.true <= high * moment.said
        error = abs(likely * moment.said / moment.true - 1)
        errors.append(error)
        at_half += [error] if moment.way == 0.5 else []
    words = (
        "**later**" if row[0].later else "first",
        row[0].of,
        "clients and recovery" if row[0].recovery else "clients",
        f"{len(row)}",
        f"{held}",
        f"{statistics.median(errors):.0%}",
        f"{statistics.median(at_half):.0%} of {len(at_half)}" if at_half else "–",
    )
    return f"| {' | '.join(words)} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        asyncio.run(watch(Path(sys.argv[2])))
    if sys.argv[1:2] == ["judge"]:
        with RESULTS.open("w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(_HEAD)
            for recording in sorted(Path(sys.argv[2]).glob("*.jsonl")):
                writer.writerows(rows_of(recording))
    main()
