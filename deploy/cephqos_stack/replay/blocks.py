"""Which archives can be replayed together, and when."""

from collections.abc import Iterator, Sequence
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import Archive, ArchiveDamaged, problems
from cephqos_loadgen.record.layout import METRICS_FILE

# The largest file of metrics that is read: it becomes some fifty times as large in memory.
MOST_BYTES: Final = 512 << 20

# Clocks of two hosts differ.
_SLACK_SECONDS: Final = 60.0


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
