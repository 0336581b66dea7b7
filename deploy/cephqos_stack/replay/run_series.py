"""The series that a run itself served while it went on, made again from its archive.

They are not recorded as metrics. But the archive has what they were made from: phases, intervals
and latency bins. So `run_series` sets the same live state (`Live`) as during the run, second by
second, and notes what it would have served.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cephqos_exporter.labels import render_labels
from cephqos_loadgen.archive.reader import Archive, RecordedRepeat
from cephqos_loadgen.archive.run_samples import LAST_TIME_MS, RecordedRun
from cephqos_loadgen.engines.fio_output import IoTotals, add
from cephqos_loadgen.live.metrics import METRICS, LiveMetrics
from cephqos_loadgen.live.state import Live, LiveClient, RunPlace
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.repeat import RepeatRecord
from cephqos_loadgen.run_recording.columns import MOST_SERIES

_LONGEST_SECONDS = 7 * 86400  # of a run: a longer one is a damaged manifest
ClientKey = tuple[str, str]  # phase and client


@dataclass(slots=True)
class _ClientSecond:
    """What one client did in one second."""

    totals: dict[str, list[IoTotals]] = field(default_factory=dict)  # by direction
    seconds: dict[str, float] = field(default_factory=dict)  # that intervals cover, by job

    def add(self, interval: Interval) -> None:
        for direction, figures in (("read", interval.read), ("write", interval.write)):
            if figures:
                self.totals.setdefault(direction, []).append(_totals(figures, interval.seconds))
        self.seconds[interval.job] = self.seconds.get(interval.job, 0.0) + interval.seconds


def _totals(figures: LoadFigures, seconds: float) -> IoTotals:
    count = sum(figures.latency_bins_ns.values()) or figures.ios
    return IoTotals(
        ios=figures.ios,
        bytes=round(figures.bytes_per_second * seconds),
        latency_count=count,
        latency_sum=figures.latency_mean_seconds * count,
        bins_ns=figures.latency_bins_ns,
    )


def run_series(archive: Archive, shift_seconds: float) -> RecordedRun:
    """One sample per second, at the run's own times. Only starts, which are values, move."""
    manifest = archive.manifest
    start, end = manifest.start_unix_seconds, manifest.end_unix_seconds
    if not (0 < start <= end < LAST_TIME_MS / 1000 and end - start <= _LONGEST_SECONDS):
        raise ValueError(
            f"the run is said to last from {start} to {end},"
            f" expected at most {_LONGEST_SECONDS:,} s"
        )
    live = Live(RunPlace(manifest.run, manifest.scenario, _fsid(archive)))
    live.started = start + shift_seconds
    live.repeats = (0, manifest.repeats_planned)
    run = RecordedRun({name: spec.type for name, spec in METRICS.items()}, {})
    left = [math.ceil(start) + n for n in range(int(end - start) + 1)]  # seconds of the run
    repeats = [repeat for repeat in archive.repeats if repeat.record.end_unix_seconds >= start]
    finished = 0
    for repeat in repeats:
        seconds = [second for second in left if second <= repeat.record.end_unix_seconds]
        del left[: len(seconds)]
        _replay(live, repeat, seconds, run, shift_seconds)
        finished += repeat.record.status == "finished"
        live.repeats = (finished, manifest.repeats_planned)
        live.new_repeat()
    for second in left:
        _note(live, second, run)
    return run


def _fsid(archive: Archive) -> str:
    cluster = archive.environment.get("cluster", {})
    return str(cluster.get("fsid", "")) if isinstance(cluster, dict) else ""


def _replay(
    live: Live, repeat: RecordedRepeat, seconds: list[int], run: RecordedRun, shift: float
) -> None:
    """Set the live state as it was at each second of a repeat, and note its series."""
    record = repeat.record
    phases = sorted(record.phases.items(), key=lambda item: item[1].start_unix_seconds)
    clients = _by_second(repeat, seconds)
    for second in seconds:
        if second >= record.start_unix_seconds:
            live.where.point, live.where.repeat = record.point, record.repeat
        live.where.phases = {
            name: phase.start_unix_seconds + shift
            for name, phase in phases
            if phase.start_unix_seconds <= second <= phase.end_unix_seconds
        }
        _set_clients(live, record, clients.get(second, {}))
        _note(live, second, run)


def _set_clients(live: Live, record: RepeatRecord, done: Mapping[ClientKey, _ClientSecond]) -> None:
    """Set what the clients did in one second. Those that are not in `done` did nothing."""
    for client in live.clients.values():
        client.interval, client.seconds = {}, 0.0
    for (phase, name), client_second in done.items():
        result = record.phases[phase].result if phase in record.phases else None
        engine = str(getattr(result, "engine", getattr(result, "kind", "unknown")))
        client = live.clients.setdefault((phase, name), LiveClient(engine))
        client.interval = {
            direction: add(parts) for direction, parts in client_second.totals.items()
        }
        client.seconds = max(client_second.seconds.values())
        for direction, part in client.interval.items():
            client.before[direction] = add((client.before.get(direction, IoTotals()), part))


def _by_second(
    repeat: RecordedRepeat, seconds: list[int]
) -> dict[int, dict[ClientKey, _ClientSecond]]:
    """What clients did, by the first second after the end of each interval, or the last second."""
    by_second: dict[int, dict[ClientKey, _ClientSecond]] = {}
    for interval in repeat.intervals() if seconds else ():
        index = min(bisect_right(seconds, interval.end_unix_seconds), len(seconds) - 1)
        clients = by_second.setdefault(seconds[index], {})
        clients.setdefault((interval.phase, interval.client), _ClientSecond()).add(interval)
    return by_second


def _note(live: Live, second: int, run: RecordedRun) -> None:
    """Add the samples of the live state at this second to the run; NaN is no sample."""
    for series, value in _samples(live):
        if not math.isnan(value):
            run.series.setdefault(series, {})[second * 1000] = value
    if len(run.series) > MOST_SERIES:
        raise ValueError(f"the run served more than {MOST_SERIES:,} series of its own")


def _samples(live: Live) -> Iterator[tuple[str, float]]:
    for metric in LiveMetrics(live).collect():
        for sample in metric.samples:
            yield f"{sample.name}{{{render_labels(sample.labels)}}}", sample.value
