"""The samples of a whole run, as one recording. What an archive holds is not trusted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.run_recording.columns import MOST_SAMPLES, MOST_SERIES, Columns, parse, render

# By milliseconds since the epoch.
Samples = dict[int, float]

LAST_TIME_MS: Final = 4_102_444_800_000  # the year 2100


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


def merge(parts: Iterable[Columns]) -> RecordedRun:
    """The repeats of a run as one recording, as a Prometheus would have it that scraped them all.

    A series has no sample where the exporter gave none: a gap stays a gap.
    """
    run = RecordedRun({}, {})
    taken = 0
    for part in parts:
        taken += sum(map(len, part.series.values()))
        if taken > MOST_SAMPLES:
            raise ValueError(f"{taken:,} samples or more, expected at most {MOST_SAMPLES:,}")
        for family, (kind, _) in part.families.items():
            run.types.setdefault(family, kind)
        for series, values in part.series.items():
            samples = _samples(series, values)
            if samples:
                name, labels = parse(series)
                run.series.setdefault(render(name, labels), {}).update(samples)
        if len(run.series) > MOST_SERIES:
            raise ValueError(f"more than {MOST_SERIES:,} series")
    return run


def _samples(series: str, values: Iterable[tuple[float, float]]) -> Samples:
    samples: Samples = {}
    for seconds, value in values:
        time = round(seconds * 1000)
        if not 0 < time < LAST_TIME_MS:
            raise ValueError(f"{series[:80]!r} has a sample at {seconds} s since 1970")
        if value == value:
            samples[time] = value
    return samples
