"""Commands about a stretch of time: in a Prometheus, or in an archive."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.units import parse_seconds, parse_time
from cephqos_doctor.json_api import Sample
from cephqos_doctor.prometheus_access import add_prometheus, check_url

_SHORTEST: Final = 60.0  # a few samples of a Prometheus
_SHORTEST_IN_ARCHIVE: Final = 10.0  # it has a sample each second


def add_past(parser: Parser, *, since: str) -> None:
    add_prometheus(parser, since=since)
    parser.option("--archive DIR", "ask an archive instead")
    parser.option("--at TIME", "look back from then (default: now, or the archive's end)")


def stretch(arguments: argparse.Namespace) -> tuple[float, float | None]:
    """How many seconds, and until when; UsageError where that or the place is not usable."""
    if not arguments.archive:
        if not arguments.prometheus:
            raise UsageError(
                "expected --prometheus URL, such as http://localhost:9090, or --archive"
            )
        check_url(arguments.prometheus)
    since = parse_seconds(arguments.since)
    least = _SHORTEST_IN_ARCHIVE if arguments.archive else _SHORTEST
    if since < least:
        raise UsageError(f"--since {arguments.since}: expected {least:g}s or more")
    return since, parse_time(arguments.at, "--at") if arguments.at else None


class Past:
    """What an archive has of a stretch of time."""

    def __init__(
        self, folder: Path, families: Sequence[str] | None, since: float, at: float | None
    ) -> None:
        """Of these families; None: of those that reports are made of."""
        try:
            from cephqos_loadgen.archive.reader import damage_named, open_archive
            from cephqos_loadgen.record.layout import METRICS_FILE
            from cephqos_loadgen.report.arrays.samples import read_samples
            from cephqos_loadgen.report.figures.observe import FAMILIES
        except ImportError as exc:
            needed = f"needs {exc.name}, not installed here; {how_to_install('report')}"
            raise UsageError(f"--archive {needed}") from None
        archive = open_archive(folder)
        with damage_named(folder):
            repeats = archive.repeats
            files = [it.folder / METRICS_FILE for it in repeats]
            self._samples = [read_samples(file, families or FAMILIES) for file in files]
        end = archive.manifest.end_unix_seconds if at is None else at
        self._span = end - since, end
        times = [(it.record.start_unix_seconds, it.record.end_unix_seconds) for it in repeats]
        spans = [(max(end - since, a), min(end, b)) for a, b in times]
        # Samples of each repeat in the time, and its seconds there.
        self.parts = [
            (its, *span)
            for its, span in zip(self._samples, spans, strict=True)
            if span[0] < span[1]
        ]
        self.seconds = sum(b - a for _, a, b in self.parts)
        if not self.seconds:
            raise UsageError(f"{folder}: found no figures of that time; see cephqos archive show")

    def grown(self, family: str) -> Sequence[Sample]:
        """Growth of counters."""
        return self._of(family, lambda series: series.growth(*self._span))

    def rates(self, family: str) -> Sequence[Sample]:
        """Growth per second."""
        return [(labels, growth / self.seconds) for labels, growth in self.grown(family)]

    def known(self, family: str) -> Sequence[Sample]:
        """What was shown at any time of the archive."""
        return self._of(family, lambda _: 1.0)

    def _of(self, family: str, value: Callable[[Any], float]) -> Sequence[Sample]:
        """Of an OSD that several exporters show, the largest figure."""
        latest: dict[frozenset[tuple[str, str]], float] = {}
        for samples in self._samples:
            largest: dict[frozenset[tuple[str, str]], float] = {}
            for it in samples.of(family):
                own = frozenset(item for item in it.labels.items() if item[0] != "instance")
                largest[own] = max(largest.get(own, 0.0), value(it))
            for own, figure in largest.items():
                latest[own] = latest.get(own, 0.0) + figure
        return [(dict(own), figure) for own, figure in latest.items()]
