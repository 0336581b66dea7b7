"""The series that a run itself served while it went on, made again from its archive.

They are not recorded as metrics. Phases, intervals and latency bins are, which is what they were
made from.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cephqos_exporter.labels import render_labels
from cephqos_loadgen.archive.reader import Archive, RecordedRepeat
from cephqos_loadgen.archive.series import LAST_TIME_MS, RecordedRun
from cephqos_loadgen.engines.fio_output import IoTotals, add
from cephqos_loadgen.live.metrics import METRICS, LiveMetrics
from cephqos_loadgen.live.state import Live, LiveClient, RunPlace
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.repeat import RepeatRecord

_LONGEST_SECONDS = 30 * 86400
ClientKey = tuple[str, str]  # phase and client


@dataclass(slots=True)
class _Tick:
    """What one client did in one second: by direction, and by job how long."""

    done: dict[str, list[IoTotals]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def take(self, interval: Interval) -> None:
        for direction, figures in (("read", interval.read), ("write", interval.write)):
            if figures:
                self.done.setdefault(direction, []).append(_totals(figures, interval.seconds))
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
    """One sample per second, at the original times. The run's start is a value: it is shifted."""
    manifest = archive.manifest
    start, end = manifest.start_unix_seconds, manifest.end_unix_seconds
    if not (0 < start <= end < LAST_TIME_MS / 1000 and end - start <= _LONGEST_SECONDS):
        raise ValueError(f"the run is said to last from {start} to {end}")
    live = Live(RunPlace(manifest.run, manifest.scenario, _fsid(archive)))
    live.started = start + shift_seconds
    live.repeats = (0, manifest.repeats_planned)
    run = RecordedRun({name: spec.type for name, spec in METRICS.items()}, {})
    ticks = [math.ceil(start) + n for n in range(int(end - start) + 1)]
    repeats = [it for it in archive.repeats if it.record.end_unix_seconds >= start]
    for repeat in repeats:
        mine = [t for t in ticks if t <= repeat.record.end_unix_seconds]
        del ticks[: len(mine)]
        _replay(live, repeat, mine, run)
        live.repeats = (live.repeats[0] + (repeat.record.status == "finished"), live.repeats[1])
        live.new_repeat()
    for second in ticks:
        _note(live, second, run)
    return run


def _fsid(archive: Archive) -> str:
    cluster = archive.environment.get("cluster", {})
    return str(cluster.get("fsid", "")) if isinstance(cluster, dict) else ""


def _replay(live: Live, repeat: RecordedRepeat, ticks: list[int], run: RecordedRun) -> None:
    """Let the live state be what it was at each second of a repeat, and note its series."""
    record = repeat.record
    phases = sorted(record.phases.items(), key=lambda it: it[1].start_unix_seconds)
    clients = _by_tick(repeat, ticks)
    for second in ticks:
        if second >= record.start_unix_seconds:
            live.where.point, live.where.repeat = record.point, record.repeat
        live.where.phases = tuple(
            name
            for name, phase in phases
            if phase.start_unix_seconds <= second <= phase.end_unix_seconds
        )
        _let_clients_work(live, record, clients.get(second, {}))
        _note(live, second, run)


def _let_clients_work(live: Live, record: RepeatRecord, done: Mapping[ClientKey, _Tick]) -> None:
    """What the clients did in one second; those that are not among them did nothing."""
    for client in live.clients.values():
        client.interval, client.seconds = {}, 0.0
    for (phase, name), tick in done.items():
        result = record.phases[phase].result if phase in record.phases else None
        engine = str(getattr(result, "engine", getattr(result, "kind", "unknown")))
        client = live.clients.setdefault((phase, name), LiveClient(engine))
        client.interval = {direction: add(parts) for direction, parts in tick.done.items()}
        client.seconds = max(tick.seconds.values())
        for direction, part in client.interval.items():
            client.before[direction] = add((client.before.get(direction, IoTotals()), part))


def _by_tick(repeat: RecordedRepeat, ticks: list[int]) -> dict[int, dict[ClientKey, _Tick]]:
    """Intervals by the second in which they were known; the last ones by the last second."""
    by_second: dict[int, dict[ClientKey, _Tick]] = {}
    for interval in repeat.intervals() if ticks else ():
        at = min(bisect_right(ticks, interval.end_unix_seconds), len(ticks) - 1)
        clients = by_second.setdefault(ticks[at], {})
        clients.setdefault((interval.phase, interval.client), _Tick()).take(interval)
    return by_second


def _note(live: Live, second: int, run: RecordedRun) -> None:
    for series, value in _samples(live):
        if value == value:
            run.series.setdefault(series, {})[second * 1000] = value


def _samples(live: Live) -> Iterator[tuple[str, float]]:
    for metric in LiveMetrics(live).collect():
        for sample in metric.samples:
            yield f"{sample.name}{{{render_labels(sample.labels)}}}", sample.value
