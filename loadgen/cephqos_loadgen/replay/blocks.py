"""Which archives are replayed, when, and as blocks of a Prometheus TSDB."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import Archive, ArchiveDamaged, problems
from cephqos_loadgen.progress import Say
from cephqos_loadgen.replay.gather import METRICS_FILE, ReplayedBlocks, gather, to_blocks

_BLOCK: Final = "[0-9A-HJKMNP-TV-Z]" * 26  # a block's folder is named by a ULID
# The largest file of metrics that is read: it becomes some fifty times as large in memory.
MOST_BYTES: Final = 512 << 20


def shifts(archives: Sequence[Archive], at: float | None, now: bool = False) -> list[float]:
    """Seconds by which each run moves. `at`: all start there; `now`: the longest ends there."""
    if at is None:
        return [0.0] * len(archives)
    manifests = [archive.manifest for archive in archives]
    longest = max(it.end_unix_seconds - it.start_unix_seconds for it in manifests)
    begin = at - longest if now else at
    return [begin - it.start_unix_seconds for it in manifests]


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


async def write_blocks(
    archive: Archive, shift_seconds: float, target: Path, work: Path, say: Say
) -> ReplayedBlocks:
    """A run's series and what the rules record of them, as blocks in `target`."""
    found = await gather(archive, shift_seconds, work, say)
    say("writing labelled blocks")
    new = work / "new"
    await to_blocks(found.recording, found.own, found.shift_ms, new, work)
    for block in new.glob(_BLOCK):
        block.rename(target / block.name)
    return found.about
