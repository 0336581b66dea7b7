"""Series of an archive, checked and labelled. What an archive holds is not trusted."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cephqos_exporter.model import render_labels
from cephqos_loadgen.record.columns import Columns

# By milliseconds since the epoch.
Samples = dict[int, float]

MOST_SERIES: Final = 500_000
MOST_SERIES_CHARACTERS: Final = 8192
LAST_TIME_MS: Final = 4_102_444_800_000  # the year 2100

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_UNESCAPED: Final = {"n": "\n"}


@dataclass(slots=True)
class RecordedRun:
    """The samples of a whole run: families with their type, series as `name{labels}`."""

    types: dict[str, str]
    series: dict[str, Samples]

    def span_ms(self) -> tuple[int, int]:
        """Time of the first and of the last sample; ValueError where there is none."""
        times = [time for samples in self.series.values() for time in (min(samples), max(samples))]
        if not times:
            raise ValueError("no metrics were recorded")
        return min(times), max(times)


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Name and labels of `name{labels}`; ValueError where it is anything else."""
    shown = repr(text[:80])
    if len(text) > MOST_SERIES_CHARACTERS:
        raise ValueError(f"series longer than {MOST_SERIES_CHARACTERS} characters: {shown}")
    name, brace, rest = text.partition("{")
    if not _NAME.fullmatch(name) or (brace and not rest.endswith("}")):
        raise ValueError(f"not a series: {shown}")
    inside, labels, at = rest[:-1] if brace else "", {}, 0
    while at < len(inside):
        match = _LABEL.match(inside, at)
        if not match or match[1] in labels or match[1] == "__name__":
            raise ValueError(f"not a series: {shown}")
        labels[match[1]] = _ESCAPE.sub(lambda it: _UNESCAPED.get(it[1], it[1]), match[2])
        at = match.end()
    return name, labels


def labelled(labels: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Labels with ours added. Ours win: another value of that name is kept as `exported_NAME`."""
    found = {}
    for name, value in labels.items():
        kept = name
        while kept in own and own[kept] != value:
            kept = f"exported_{kept}"
        found[kept] = value
    return found | dict(own)


def render(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{{{render_labels(dict(sorted(labels.items())))}}}"


def merge(parts: Iterable[Columns]) -> RecordedRun:
    """The repeats of a run as one recording, as a Prometheus would have it that scraped them all.

    A series has no sample where the exporter gave none: a gap stays a gap.
    """
    found = RecordedRun({}, {})
    for part in parts:
        for family, (kind, _) in part.families.items():
            found.types.setdefault(family, kind)
        for series, values in part.series.items():
            samples = _samples(series, values)
            if samples:
                name, labels = parse(series)
                found.series.setdefault(render(name, labels), {}).update(samples)
        if len(found.series) > MOST_SERIES:
            raise ValueError(f"more than {MOST_SERIES} series")
    return found


def _samples(series: str, values: Iterable[tuple[float, float]]) -> Samples:
    found: Samples = {}
    for seconds, value in values:
        time = round(seconds * 1000)
        if not 0 < time < LAST_TIME_MS:
            raise ValueError(f"{series[:80]!r} has a sample at {seconds} s since 1970")
        if value == value:
            found[time] = value
    return found
