"""How right the time left of scrubs is, on real ones:

    python -m tests.recovery_times.scrubs watch FOLDER    # labs that are up, until interrupted
    python -m tests.recovery_times.scrubs judge FOLDER    # recordings to scrubs.csv
    python -m tests.recovery_times.scrubs                 # scrubs.csv to the figures of the docs

`watch` writes a file of JSON lines for each lab: its placement groups, every two seconds. `judge`
takes them in as the exporter does, every five seconds, at a quarter, a half and three quarters of
the time in which something was scrubbed. What is said of the groups that are scrubbed then is laid
beside how long it took until the last of them was done.
"""

import asyncio
import contextlib
import csv
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_exporter.cluster import replies
from cephqos_exporter.cluster.rates import time_left
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.state import lab_names, load_living

RESULTS: Final = Path(__file__).with_name("scrubs.csv")
_EVERY: Final = 2.0
_EXPORTER_EVERY: Final = 5.0
_SHORTEST: Final = 12.0  # seconds
_PAUSE: Final = 3  # looks in which nothing is scrubbed end a round
_WAYS: Final = (0.25, 0.5, 0.75)
_HEAD: Final = ("lab", "began", "took", "recovery", "way", "said", "true")
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
                if running:
                    true = _ends(looks[number:], {group.pgid for group in running}) - now
                    yield (*of_round, way, f"{_said(progress, running) or 0:.1f}", f"{true:.1f}")


def _said(progress: ScrubProgress, running: Sequence[replies.PgStat]) -> float | None:
    """As the exporter says it of the pool that most of these groups are of."""
    pools = [group.pool for group in running]
    pool = max(set(pools), key=pools.count)
    left = sum(
        max(0, group.objects - progress.objects_done(group))
        for group in running
        if group.pool == pool
    )
    return time_left(left, progress.rates.since_begun((pool, "deep")))


def _ends(looks: Sequence[Look], pgids: set[str]) -> float:
    return next(
        now
        for now, groups in looks
        if not any(group.scrubbing and group.pgid in pgids for group in groups)
    )


def main() -> None:
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    print("| beside | way | scrubs | said | half as long or less | twice or more | median error |")
    for recovery in ("0", "1"):
        for way in _WAYS:
            of_way = [it for it in rows if it["recovery"] == recovery and float(it["way"]) == way]
            ratios = [float(it["true"]) / float(it["said"]) for it in of_way if float(it["said"])]
            if not ratios:
                continue
            beside = "clients and recovery" if recovery == "1" else "clients"
            short, long = sum(it <= 0.5 for it in ratios), sum(it >= 2 for it in ratios)
            error = statistics.median(abs(1 / it - 1) for it in ratios)
            print(
                f"| {beside} | {way:.0%} | {len(of_way)} | {len(ratios)} | {short} | {long} |"
                f" {error:.0%} |"
            )


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
