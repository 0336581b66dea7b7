"""All series of a run: recorded, served by the run itself, and made by the recording rules.

    archive -> load -> raw blocks -> promtool, one layer of rules after the other -> read back

`blocks` and `remote_write` write what `gather` returns. `cephqos report` calls `evaluated`.
"""

import contextlib
import math
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.errors import UsageError
from cephqos_base.units import duration
from cephqos_loadgen.archive.openmetrics import pages
from cephqos_loadgen.archive.reader import Archive, ArchiveDamaged, damage_named
from cephqos_loadgen.archive.run_samples import RecordedRun, Samples, merge
from cephqos_loadgen.programs import find_program
from cephqos_loadgen.progress import Say
from cephqos_loadgen.run_recording.columns import labelled, parse, render
from cephqos_loadgen.run_recording.layout import METRICS_FILE
from cephqos_stack.replay.layers import layers, leading_to, recording_rules, rule_file
from cephqos_stack.replay.programs import NEEDED, prometheus, query_past, run_promtool
from cephqos_stack.replay.run_series import run_series

_PAGE_BYTES = 256 << 20  # of OpenMetrics text that promtool gets at once
# On disk, at most. A page of text takes up to 400 bytes per sample, but is removed soon.
_BYTES_PER_SAMPLE = 8
_TEXT_BYTES_PER_SAMPLE = 400
# Scrape intervals for which rules see a series after its last sample. Blocks have no staleness
# markers, so more would draw out what has ended, and less would lose samples that come late.
_RULES_LOOKBACK: Final = 2
# Seconds between samples for which rules are made at most: they need as many samples.
LONGEST_INTERVAL: Final = 300.0


@dataclass(frozen=True, slots=True)
class ReplayedBlocks:
    """A run after its replay: where it lies in time now, and how much it is."""

    run: str
    start_seconds: float
    end_seconds: float
    samples: int  # with those that rules made
    recorded_series: int  # that rules made


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run's series at their own times, and what changes when they are written."""

    recording: RecordedRun
    run_labels: dict[str, str]  # that each series gets
    shift_ms: int  # that each sample moves
    replayed: ReplayedBlocks


async def gather(archive: Archive, shift_seconds: float, work: Path, say: Say) -> Gathered:
    """All series of a run; rules are evaluated in `work`."""
    manifest = archive.manifest
    say("reading")
    recording = load(archive, shift_seconds)
    try:
        begin_ms, end_ms = recording.span_ms()
    except ValueError as error:
        raise ArchiveDamaged(f"{archive.folder}: {error}: nothing to replay") from None
    samples = sum(map(len, recording.series.values()))
    _check_room(work, archive, samples)
    recorded = await _recorded(recording, work, say, interval=scrape_interval(archive))
    all_series = RecordedRun(recording.types, recording.series | recorded.series)
    replayed = ReplayedBlocks(
        run=manifest.run,
        start_seconds=begin_ms / 1000 + shift_seconds,
        end_seconds=end_ms / 1000 + shift_seconds,
        samples=samples + sum(map(len, recorded.series.values())),
        recorded_series=len(recorded.series),
    )
    run_labels = {"run": manifest.run, "archive": archive.folder.resolve().name}
    return Gathered(all_series, run_labels, round(shift_seconds * 1000), replayed)


def load(archive: Archive, shift_seconds: float = 0.0) -> RecordedRun:
    """All series of a run: those of the exporters, and the ones that the run served itself."""
    with damage_named(archive.folder):
        parts = (
            repeat.metrics()
            for repeat in archive.repeats
            if (repeat.folder / METRICS_FILE).exists()
        )
        run = merge(parts)
        served_run = run_series(archive, shift_seconds)
        scraped = _of_job(run, "cephqos")
        served = _of_job(served_run, "cephqos-run")
    return RecordedRun(run.types | served_run.types, scraped | served)


def scrape_interval(archive: Archive) -> float:
    """Seconds between two samples: 1 in a run, more in what a flight recorder kept."""
    with damage_named(archive.folder):
        intervals = [repeat.record.metrics.interval_seconds for repeat in archive.repeats]
    return min(float(round(max([1.0, *intervals]))), LONGEST_INTERVAL)


def _of_job(recording: RecordedRun, job: str) -> dict[str, Samples]:
    """The series with the label `job`, which Prometheus adds to all series of a scrape job."""
    with_job = {}
    for series, samples in recording.series.items():
        name, labels = parse(series)
        with_job[render(name, labelled(labels, {"job": job}))] = samples
    return with_job


def _check_room(work: Path, archive: Archive, samples: int) -> None:
    # The raw blocks, what rules add to them, and the blocks with labels.
    needed = 3 * samples * _BYTES_PER_SAMPLE + min(_PAGE_BYTES, samples * _TEXT_BYTES_PER_SAMPLE)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise UsageError(
            f"{work.parent} has {free >> 20} MiB free; replaying {archive.folder} needs"
            f" {needed >> 20} MiB"
        )


async def to_blocks(
    recording: RecordedRun, run_labels: dict[str, str], shift_ms: int, target: Path, work: Path
) -> None:
    """Write blocks of a run into `target`, with these labels and moved by this time."""
    page = work / "page.om"
    for lines in pages(recording, run_labels, shift_ms, _PAGE_BYTES):
        try:
            with page.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise UsageError(f"cannot write {page}: {error.strerror}") from None
        # promtool creates the folder `target`.
        argv = ["tsdb", "create-blocks-from", "openmetrics", str(page), str(target)]
        await run_promtool(argv)
        page.unlink()


@contextlib.contextmanager
def scratch(folder: Path | None) -> Iterator[Path]:
    """A temporary folder. Inside `folder`, so that blocks can be renamed into that."""
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".cephqos-replay-", dir=folder))
    except OSError as error:
        raise UsageError(f"cannot write to {folder or error.filename}: {error.strerror}") from None
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


async def evaluated(
    archive: Archive, wanted: Collection[str], say: Say, *, time_scale: float = 1.0
) -> RecordedRun:
    """These recorded series of a run, by this version's rules; UsageError without Prometheus.

    `time_scale` shortens windows and holds of the rules, as for `cephqos rules build`.
    """
    for name in NEEDED:
        find_program(name)
    with scratch(None) as work:
        say("reading")
        recording = load(archive)
        if not recording.series:
            return RecordedRun({}, {})
        interval = scrape_interval(archive)
        return await _recorded(
            recording, work, say, wanted, interval=interval, time_scale=time_scale
        )


async def _recorded(
    recording: RecordedRun,
    work: Path,
    say: Say,
    wanted: Collection[str] | None = None,
    *,
    interval: float = 1.0,
    time_scale: float = 1.0,
) -> RecordedRun:
    """The series that recording rules make of one run: all, or those with a wanted name.

    Each run is alone in its blocks: rules know nothing of runs, and would add up two at one time.
    """
    say("writing blocks")
    raw = work / "raw"
    await to_blocks(recording, {}, 0, raw, work)
    settings = RuleSettings(scrape_interval=interval, time_scale=time_scale)
    rules = recording_rules(build_rules(settings, load_slos(DEFAULT_SLOS)).values())
    order = layers(rules if wanted is None else leading_to(rules, wanted))
    begin_ms, end_ms = recording.span_ms()
    begin, end = begin_ms // 1000, math.ceil(end_ms / 1000)
    for number, layer in enumerate(order, 1):
        say(f"recording rules, layer {number} of {len(order)}")
        rules_path = work / "layer.yml"
        rules_path.write_text(rule_file(layer), encoding="utf-8")
        # A new Prometheus for each layer: it reads blocks only when it starts.
        async with prometheus(raw, work, lookback=duration(_RULES_LOOKBACK * interval)) as url:
            argv = ["tsdb", "create-blocks-from", "rules", f"--start={begin}", f"--end={end}"]
            argv += [
                f"--url={url}",
                f"--eval-interval={duration(interval)}",
                f"--output-dir={raw}",
                str(rules_path),
            ]
            await run_promtool(argv)
    names = wanted or dict.fromkeys(str(rule["record"]) for layer in order for rule in layer)
    async with prometheus(raw, work) as url:
        return await _read_back(url, names, begin, end)


async def _read_back(url: str, names: Collection[str], begin: int, end: int) -> RecordedRun:
    """The series with these names that a Prometheus has between two Unix times."""
    run = RecordedRun({}, {})
    for name in names:
        expr = f'{{__name__="{name}"}}[{end - begin + 2}s]'
        for series in await query_past(url, expr, end):
            labels = {key: value for key, value in series["metric"].items() if key != "__name__"}
            values = {round(float(at) * 1000): float(value) for at, value in series["values"]}
            run.series[render(name, labels)] = values
    return run
