"""What `cephqos who`, `blame` and `advise` share: options that name a time in a Prometheus or in an
archive, and `Past`, which gives samples of an archive in the shape that a Prometheus answers."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.prometheus import Sample
from cephqos_base.units import parse_seconds, parse_time
from cephqos_base.urls import check_url
from cephqos_insight.prometheus_access import PASSWORDS, add_prometheus

_SHORTEST: Final = 60.0  # a few samples of a Prometheus
_SHORTEST_IN_ARCHIVE: Final = 10.0  # an archive has a sample each second


def add_past(parser: Parser, *, since: str) -> None:
    add_prometheus(parser, since=since)
    parser.option("--archive DIR", "ask an archive instead")
    parser.option("--at TIME", "look back from then (default: now, or the archive's end)")


def stretch(arguments: argparse.Namespace) -> tuple[float, float | None]:
    """How many seconds, and the Unix time of their end; None: now, or the archive's end.

    Raises UsageError if the time is too short, or neither a Prometheus nor an archive is named.
    """
    if not arguments.archive:
        if not arguments.prometheus:
            raise UsageError(
                "expected --prometheus URL, such as http://localhost:9090, or --archive"
            )
        check_url("--prometheus", arguments.prometheus, PASSWORDS)
    since = parse_seconds(arguments.since)
    least = _SHORTEST_IN_ARCHIVE if arguments.archive else _SHORTEST
    if since < least:
        raise UsageError(f"--since {arguments.since}: expected {least:g}s or more")
    return since, parse_time(arguments.at, "--at") if arguments.at else None


class RepeatPart(NamedTuple):
    """A repeat of a run, and the part of the time that it covers."""

    name: str  # its point and number, such as "balanced r2"
    samples: Any  # Samples of cephqos_loadgen, which may not be installed
    start: float  # Unix seconds
    end: float


class Past:
    """What an archive has of `since` seconds until `at`."""

    def __init__(
        self,
        folder: Path,
        families: Sequence[str] | None,
        since: float,
        at: float | None,
        back: float = 0.0,
        repeat: str = "",
    ) -> None:
        """Reads these families; None: those that reports are made of. `back`: the time ends so many
        seconds before `at`. `repeat`: only the one of this name, at its end if `at` is None."""
        try:
            from cephqos_loadgen.archive.reader import damage_named, open_archive
            from cephqos_loadgen.report.arrays.samples import read_samples
            from cephqos_loadgen.report.figures.observe import FAMILIES
            from cephqos_loadgen.run_recording.layout import METRICS_FILE
        except ImportError as exc:
            needed = f"needs {exc.name}, not installed here; {how_to_install('report')}"
            raise UsageError(f"--archive {needed}") from None
        archive = open_archive(folder)
        with damage_named(folder):
            repeats = _named(archive.repeats, repeat, folder)
            files = [repeat.folder / METRICS_FILE for repeat in repeats]
            self._samples = [read_samples(file, families or FAMILIES) for file in files]
        if at is None:
            at = repeats[0].record.end_unix_seconds if repeat else archive.manifest.end_unix_seconds
        end = at - back
        self._span = start, end = end - since, end
        self.parts = []
        for samples, repeat_of in zip(self._samples, repeats, strict=True):
            part_start = max(start, repeat_of.record.start_unix_seconds)
            part_end = min(end, repeat_of.record.end_unix_seconds)
            if part_start < part_end:
                self.parts.append(RepeatPart(repeat_of.name, samples, part_start, part_end))
        self.seconds = sum(part.end - part.start for part in self.parts)  # without gaps
        if not self.seconds:
            raise UsageError(f"{folder}: found no figures of that time; see cephqos archive show")

    def grown(self, family: str) -> Sequence[Sample]:
        """How much counters grew in the time."""
        return self._of(family, lambda series: series.growth(*self._span))

    def rates(self, family: str) -> Sequence[Sample]:
        """How much counters grew per second of the time."""
        return [(labels, growth / self.seconds) for labels, growth in self.grown(family)]

    def known(self, family: str) -> Sequence[Sample]:
        """A sample for each series of the archive, at whatever time. Only its labels count."""
        return self._of(family, lambda _: 1.0)

    def _of(self, family: str, value: Callable[[Any], float]) -> Sequence[Sample]:
        """A value for each set of labels, `instance` aside, summed over the repeats. If several
        exporters show the same OSD, the largest value of a repeat counts."""
        sums: dict[frozenset[tuple[str, str]], float] = {}  # by labels
        for samples in self._samples:
            largest: dict[frozenset[tuple[str, str]], float] = {}
            for series in samples.of(family):
                labels = frozenset(item for item in series.labels.items() if item[0] != "instance")
                largest[labels] = max(largest.get(labels, 0.0), value(series))
            for labels, figure in largest.items():
                sums[labels] = sums.get(labels, 0.0) + figure
        return [(dict(labels), figure) for labels, figure in sums.items()]


def _named(repeats: Sequence[Any], name: str, folder: Path) -> Sequence[Any]:
    """The repeat of this name; all if it is empty."""
    if not name or (found := [repeat for repeat in repeats if repeat.name == name]):
        return found if name else repeats
    names = ", ".join(repeat.name for repeat in repeats)
    raise UsageError(f"{folder}: found no repeat {name!r}; expected one of {names}")
