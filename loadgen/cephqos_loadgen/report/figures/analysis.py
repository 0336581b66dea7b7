"""Repeats of one or more archives put together: a row per point, load, depth and window."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cephqos_loadgen.archive.reader import Archive, damage_named, problems
from cephqos_loadgen.report.arrays import statistics
from cephqos_loadgen.report.arrays.bins import Bins, bin_width, merged
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.loads import WHOLE, LoadPart
from cephqos_loadgen.report.figures.metrics import PERCENTS
from cephqos_loadgen.report.figures.observe import Observation, observe
from cephqos_loadgen.results.repeat import Manifest
from cephqos_loadgen.run_recording.layout import EVENTS_FILE

LOAD, BACKGROUND = "load", "background"


@dataclass(frozen=True, slots=True)
class Key:
    """What a row is about. Rows of different runs match when all but `run` is equal."""

    run: str
    point: str
    phase: str
    kind: str  # LOAD or BACKGROUND
    depth: int | None = None  # of a curve; None if the load has one depth
    op: str = "total"
    window: str = WHOLE

    @property
    def matching(self) -> tuple[object, ...]:
        return (self.point, self.phase, self.kind, self.depth, self.op, self.window)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a row. `value` is of all repeats together, `samples` has one per repeat."""

    value: float
    samples: tuple[float, ...]
    width: float = 0.0  # of the bin that it is read from

    @property
    def deviation(self) -> float | None:
        return statistics.deviation(self.samples)

    @property
    def variation(self) -> float | None:
        return statistics.variation(self.samples)

    def against(self, reference: "Figure", comparisons: int = 1) -> statistics.ChangeInterval:
        """The change between the two values that are shown, so that its sign is theirs."""
        values = (self.value, reference.value)
        return statistics.change(
            self.samples,
            reference.samples,
            shown=values,
            widths=(self.width, reference.width),
            comparisons=comparisons,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReportRow:
    """All figures of one key. More percentiles can be made from `bins`."""

    key: Key
    axes: Mapping[str, str]
    repeats: int
    figures: Mapping[str, Figure]
    bins: Bins | None = None

    def value(self, key: str) -> float | None:
        return self.figures[key].value if key in self.figures else None

    def percentile_seconds(self, percent: float) -> float | None:
        return self.bins.percentile_seconds(percent) if self.bins else None


@dataclass(frozen=True, slots=True, eq=False)
class ReportRun:
    """One archive: its plan, and the results of each repeat."""

    name: str
    folder: str
    manifest: Manifest
    plan: Mapping[str, Any]
    environment: Mapping[str, Any]
    observations: tuple[Observation, ...]
    rows: tuple[ReportRow, ...]
    environments: tuple[Mapping[str, Any], ...] = ()  # if there were several
    resumed: tuple[str, ...] = ()  # folders of earlier runs whose repeats were used
    problems: tuple[str, ...] = ()  # files that are not as the manifest says

    @property
    def finished(self) -> list[Observation]:
        return [o for o in self.observations if o.record.status == "finished"]

    @property
    def first_repeats(self) -> dict[str, Observation]:
        """By point, in the order in which they ran, the first repeat that finished."""
        first: dict[str, Observation] = {}
        for observed in self.finished:
            first.setdefault(observed.record.point, observed)
        return first

    @property
    def planned_phases(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each point's name with each of its phases, as planned."""
        for point in self.plan.get("points", []):
            for phase in point.get("phases", []):
                yield str(point["name"]), phase


def analyse(archive: Archive) -> ReportRun:
    """Read an archive and take all figures from it; ArchiveDamaged if it cannot be read."""
    with damage_named(archive.folder):
        osds = (archive.environment.get("cluster") or {}).get("osds") or []
        hosts = {f"osd.{osd['id']}": str(osd.get("hostname", "")) for osd in osds}
        observations = [observe(repeat, hosts) for repeat in archive.repeats]
        finished = [o for o in observations if o.record.status == "finished"]
        return ReportRun(
            name=archive.manifest.run,
            folder=archive.folder.name,
            manifest=archive.manifest,
            plan=archive.plan,
            environment=archive.environment,
            environments=tuple(archive.environments),
            observations=tuple(observations),
            rows=tuple(rows_of(archive.manifest.run, finished)),
            resumed=tuple(_resumed(archive)),
            # Files that were added later do not matter to a report.
            problems=tuple(problems(archive, added=False)),
        )


def _resumed(archive: Archive) -> Iterator[str]:
    if (archive.folder / EVENTS_FILE).exists():
        for event in archive.events():
            if isinstance(event, dict) and event.get("event") == "resumed":
                yield Path(str(event.get("source"))).name


def key_of(run: str, observed: Observation, part: LoadPart) -> Key:
    """The row that a part of a load belongs to."""
    point = observed.record.point
    return Key(run, point, part.phase, LOAD, part.depth_of_curve, part.op, part.window)


def rows_of(run: str, observations: Sequence[Observation]) -> Iterator[ReportRow]:
    """In the order in which points and phases ran."""
    loads: dict[Key, list[LoadPart]] = {}
    background: dict[Key, list[Mapping[str, float]]] = {}
    axes: dict[str, Mapping[str, str]] = {}
    for observed in observations:
        point = observed.record.point
        axes[point] = observed.record.axes
        for part in observed.loads:
            loads.setdefault(key_of(run, observed, part), []).append(part)
        for phase, figures in observed.background.items():
            background.setdefault(Key(run, point, phase, BACKGROUND), []).append(figures)
    for key, parts in loads.items():
        yield load_row(key, axes[key.point], parts)
    for key, by_repeat in background.items():
        yield ReportRow(key, axes[key.point], len(by_repeat), _averages(by_repeat))


def load_row(key: Key, axes: Mapping[str, str], parts: Sequence[LoadPart]) -> ReportRow:
    """One row of the same load in several repeats."""
    bins = merged(part.bins for part in parts)
    figures = _averages(
        [
            {metrics.IOPS.key: part.iops, metrics.BANDWIDTH.key: part.bytes_per_second, **part.cost}
            for part in parts
        ]
    )
    figures |= _latencies(parts, bins)
    return ReportRow(key, axes, len(parts), figures, bins)


def _averages(repeats: Sequence[Mapping[str, float]]) -> dict[str, Figure]:
    names = dict.fromkeys(name for figures in repeats for name in figures)
    samples = {name: tuple(f[name] for f in repeats if name in f) for name in names}
    return {name: Figure(fmean(values), values) for name, values in samples.items()}


def _latencies(parts: Sequence[LoadPart], bins: Bins) -> dict[str, Figure]:
    """Of all completions together, and of each repeat that has completions."""
    parts = [part for part in parts if part.ios]
    figures: dict[str, Figure] = {}
    ios = sum(part.ios for part in parts)
    if ios:
        centre = math.fsum(part.mean_seconds * part.ios for part in parts) / ios
        figures[metrics.MEAN.key] = Figure(centre, tuple(part.mean_seconds for part in parts))
        spread = _pooled(parts, centre)
        if spread is not None:
            samples = tuple(p.deviation_seconds or 0.0 for p in parts)
            figures[metrics.DEVIATION.key] = Figure(spread, samples)
    for percent in PERCENTS:
        value = bins.percentile_seconds(percent)
        of_parts = [part.bins.percentile_seconds(percent) for part in parts]
        if value is not None:
            samples = tuple(seconds for seconds in of_parts if seconds is not None)
            width = bin_width(value)
            figures[metrics.percentile(percent).key] = Figure(value, samples, width)
    return figures


def _pooled(parts: Iterable[LoadPart], centre: float) -> float | None:
    """The deviation of all completions, computed from count, mean and deviation of each part."""
    squares, count = 0.0, 0
    for part in parts:
        if part.deviation_seconds is None:
            return None
        squares += (part.ios - 1) * part.deviation_seconds**2
        squares += part.ios * (part.mean_seconds - centre) ** 2
        count += part.ios
    return math.sqrt(squares / (count - 1)) if count > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class ReportSettings:
    """What a report compares with."""

    baseline_iops: tuple[float, ...] = ()  # of each repeat; exact if not from an archive
    baseline_name: str = ""
    target: float | None = None  # a share of the baseline
    reference: str = ""  # a point; empty: the first
    percentiles: tuple[float, ...] = ()  # besides the usual ones
    baseline_run: ReportRun | None = None  # its caveats are caveats of the changes
    baseline_row: ReportRow | None = None  # the load that others are compared with
