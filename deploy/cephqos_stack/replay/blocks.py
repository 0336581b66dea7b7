"""Replays archives as blocks of a Prometheus TSDB, at their own times or moved to others.

`cli` checks the archives, computes by how much each moves, and calls `write_blocks` for each. The
file REPLAYED in the target folder notes what was replayed there.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import WRONG_SHAPES, Archive, ArchiveDamaged, problems
from cephqos_loadgen.progress import Say
from cephqos_loadgen.run_recording.files import write_json
from cephqos_loadgen.run_recording.layout import METRICS_FILE
from cephqos_loadgen.run_recording.regular import read_json
from cephqos_stack.replay.gather import ReplayedBlocks, gather, to_blocks

_BLOCK: Final = "[0-9A-HJKMNP-TV-Z]" * 26  # a block's folder is named by a ULID
# The largest file of metrics that is read: it becomes some fifty times as large in memory.
MOST_BYTES: Final = 512 << 20

# Notes in a target folder which runs were replayed there, and when they lie.
REPLAYED: Final = "cephqos-replayed.json"
# Clocks of two hosts differ.
_SLACK_SECONDS: Final = 60.0


def shifts(archives: Sequence[Archive], at: float | None, now: bool = False) -> list[float]:
    """Seconds by which each run moves. `at`: all start there; `now`: the longest ends there."""
    if at is None:
        return [0.0] * len(archives)
    manifests = [archive.manifest for archive in archives]
    longest = max(run.end_unix_seconds - run.start_unix_seconds for run in manifests)
    begin = at - longest if now else at
    return [begin - run.start_unix_seconds for run in manifests]


def check_archives(archives: Sequence[Archive]) -> None:
    """UsageError or ArchiveDamaged where they cannot be replayed together."""
    runs = [archive.manifest.run for archive in archives]
    twice = next((run for run in runs if runs.count(run) > 1), None)
    if twice:
        raise UsageError(f"the run {twice[:80]!r} is named twice: one archive of a run is enough")
    for archive in archives:
        damage = next(problems(archive, added=False), None)
        if damage:
            raise ArchiveDamaged(
                f"{archive.folder} is damaged, nothing was replayed: {damage}"
                " (cephqos archive verify names all)"
            )
        for path in archive.folder.glob(f"repeats/*/{METRICS_FILE}"):
            if path.stat().st_size > MOST_BYTES:
                raise UsageError(
                    f"{path} is larger than {MOST_BYTES >> 20} MiB, too large to replay"
                )


def in_the_future(archives: Sequence[Archive], moves: Sequence[float], now: float) -> Iterator[str]:
    """A line for each run that ends in the future: a Prometheus with such blocks takes no samples
    of the present."""
    for archive, move in zip(archives, moves, strict=True):
        end = archive.manifest.end_unix_seconds + move
        if end > now + _SLACK_SECONDS:
            yield (
                f"{archive.manifest.run[:80]!r} ends {end - now:.0f} s in the future: a Prometheus"
                " that scrapes refuses the present until then. --at now avoids that."
            )


def check_replayed(target: Path, archives: Sequence[Archive], moves: Sequence[float]) -> None:
    """UsageError where a run lies in the folder at times that it would overlap: two copies of the
    same counters, a few seconds apart, are no counters."""
    replayed = _replayed(target)
    for archive, move in zip(archives, moves, strict=True):
        manifest = archive.manifest
        begin, end = manifest.start_unix_seconds + move, manifest.end_unix_seconds + move
        for copy in replayed.get(manifest.run, []):
            if copy["shift"] != round(move, 3) and begin < copy["end"] and copy["begin"] < end:
                apart = abs(begin - copy["begin"])
                raise UsageError(
                    f"{target} has the run {manifest.run[:80]!r} already, {apart:.0f} s apart from"
                    " where it would be now: use another folder, or another --at"
                )


def note_replayed(target: Path, archives: Sequence[Archive], moves: Sequence[float]) -> None:
    """Write down which runs lie in the folder, and when. A Prometheus leaves the file alone."""
    replayed = _replayed(target)
    for archive, move in zip(archives, moves, strict=True):
        manifest = archive.manifest
        copy = {"begin": manifest.start_unix_seconds + move, "shift": round(move, 3)}
        copy["end"] = manifest.end_unix_seconds + move
        if copy not in replayed.setdefault(manifest.run, []):
            replayed[manifest.run].append(copy)
    write_json(target / REPLAYED, replayed)


def _replayed(target: Path) -> dict[str, list[dict[str, float]]]:
    """By run: the copies that `note_replayed` wrote down; nothing where they cannot be read."""
    try:
        noted = read_json(target / REPLAYED)
        for copies in noted.values():
            for copy in copies:  # raises one of WRONG_SHAPES unless all three are numbers
                copy["begin"] + copy["end"] + copy["shift"]
    except (OSError, *WRONG_SHAPES):
        return {}
    return dict(noted)


async def write_blocks(
    archive: Archive, shift_seconds: float, target: Path, work: Path, say: Say
) -> ReplayedBlocks:
    """A run's series and what the rules record of them, as blocks in `target`."""
    gathered = await gather(archive, shift_seconds, work, say)
    say("writing labelled blocks")
    new = work / "new"
    await to_blocks(gathered.recording, gathered.run_labels, gathered.shift_ms, new, work)
    for block in new.glob(_BLOCK):
        block.rename(target / block.name)
    return gathered.replayed
