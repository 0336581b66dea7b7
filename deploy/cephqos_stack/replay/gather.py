"""All series of a run: recorded, served by the run itself, and made by the recording rules."""

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
from cephqos_loadgen.archive.series import RecordedRun, Samples, merge
from cephqos_loadgen.programs import find_program
from cephqos_loadgen.progress import Say
from cephqos_loadgen.record.columns import labelled, parse, render
from cephqos_loadgen.record.layout import METRICS_FILE
from cephqos_stack.replay.layers import layers, leading_to, recording_rules, rule_file
from cephqos_stack.replay.programs import NEEDED, prometheus, query_past, run_promtool
from cephqos_stack.replay.run_series import run_series

_PAGE_BYTES = 256 << 20
# Blocks of one-second samples take less; the pages of text come and go.
_BYTES_PER_SAMPLE = 8
# Blocks have no staleness markers: in each layer of rules, what is absent is seen for so many
# scrapes after its last sample. Some samples are late.
_RULES_LOOKBACK: Final = 2
# Of what is replayed: the rules need more samples than longer ones would give.
LONGEST_INTERVAL: Final = 300.0


@dataclass(frozen=True, slots=True)
class ReplayedBlocks:
    """A run as it is written: its labels, and where it lies in time."""

    run: str
    start_seconds: float
    end_seconds: float
    samples: int
    recorded_series: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run's series at their own times, and the labels and the shift that they are to get."""

    recording: RecordedRun
    own: dict[str, str]
    shift_ms: int
    about: ReplayedBlocks


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
    whole = RecordedRun(recording.types, recording.series | recorded.series)
    own = {"run": manifest.run, "archive": archive.folder.resolve().name}
    about = ReplayedBlocks(
        manifest.run,
        begin_ms / 1000 + shift_seconds,
        end_ms / 1000 + shift_seconds,
        samples + sum(map(len, recorded.series.values())),
        len(recorded.series),
    )
    return Gathered(whole, own, round(shift_seconds * 1000), about)


def load(archive: Archive, shift_seconds: float = 0.0) -> RecordedRun:
    """All series of a run: those of the exporters, and the ones that the run served itself."""
    with damage_named(archive.folder):
        parts = [
            repeat.metrics()
            for repeat in archive.repeats
            if (repeat.folder / METRICS_FILE).exists()
        ]
        run = merge(parts)
        own = run_series(archive, shift_seconds)
        scraped = _of_job(run, "cephqos")
        served = _of_job(own, "cephqos-run")
    return RecordedRun(run.types | own.types, scraped | served)


def scrape_interval(archive: Archive) -> float:
    """Seconds between two samples: 1 of a run, more of what an exporter recorded by itself."""
    with damage_named(archive.folder):
        every = [repeat.record.metrics.interval_seconds for repeat in archive.repeats]
    return min(float(round(max([1.0, *every]))), LONGEST_INTERVAL)


def _of_job(recording: RecordedRun, job: str) -> dict[str, Samples]:
    """With the label that Prometheus adds to all series of a scrape job."""
    found = {}
    for series, samples in recording.series.items():
        name, labels = parse(series)
        found[render(name, labelled(labels, {"job": job}))] = samples
    return found


def _check_room(work: Path, archive: Archive, samples: int) -> None:
    needed = samples * _BYTES_PER_SAMPLE * 3 + min(_PAGE_BYTES, samples * 400)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise UsageError(
            f"{work.parent} has {free >> 20} MiB free; replaying {archive.folder} needs"
            f" {needed >> 20} MiB"
        )


async def to_blocks(
    recording: RecordedRun, own: dict[str, str], shift_ms: int, target: Path, work: Path
) -> None:
    page = work / "page.om"
    for lines in pages(recording, own, shift_ms, _PAGE_BYTES):
        try:
            with page.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise UsageError(f"cannot write {page}: {error.strerror}") from None
        # promtool makes the folder.
        argv = ["tsdb", "create-blocks-from", "openmetrics", str(page), str(target)]
        await run_promtool(argv)
        page.unlink()


@contextlib.contextmanager
def scratch(folder: Path | None) -> Iterator[Path]:
    """A folder for what is in between; it is gone afterwards. In `folder`, to move blocks there."""
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".cephqos-replay-", dir=folder))
    except OSError as error:
        raise UsageError(f"cannot write to {folder or error.filename}: {error.strerror}") from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


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
    """What the recording rules make of a run alone, without labels of ours; all, or those wanted.

    Alone, since rules know nothing of runs: two at the same time would be added up.
    """
    say("writing blocks")
    raw = work / "raw"
    await to_blocks(recording, {}, 0, raw, work)
    settings = RuleSettings(scrape_interval=interval, time_scale=time_scale)
    every = recording_rules(build_rules(settings, load_slos(DEFAULT_SLOS)).values())
    order = layers(every if wanted is None else leading_to(every, wanted))
    begin_ms, end_ms = recording.span_ms()
    begin, end = begin_ms // 1000, math.ceil(end_ms / 1000)
    for number, layer in enumerate(order, 1):
        say(f"recording rules, layer {number} of {len(order)}")
        rules = work / "layer.yml"
        rules.write_text(rule_file(layer), encoding="utf-8")
        # Prometheus sees new blocks when it starts.
        async with prometheus(raw, work, lookback=duration(_RULES_LOOKBACK * interval)) as url:
            argv = ["tsdb", "create-blocks-from", "rules", f"--start={begin}", f"--end={end}"]
            argv += [
                f"--url={url}",
                f"--eval-interval={duration(interval)}",
                f"--output-dir={raw}",
                str(rules),
            ]
            await run_promtool(argv)
    names = wanted or dict.fromkeys(str(rule["record"]) for layer in order for rule in layer)
    async with prometheus(raw, work) as url:
        return await _read_back(url, names, begin, end)


async def _read_back(url: str, names: Collection[str], begin: int, end: int) -> RecordedRun:
    run = RecordedRun({}, {})
    for name in names:
        expr = f'{{__name__="{name}"}}[{end - begin + 2}s]'
        for each in await query_past(url, expr, end):
            labels = {key: value for key, value in each["metric"].items() if key != "__name__"}
            values = {round(float(at) * 1000): float(value) for at, value in each["values"]}
            run.series[render(name, labels)] = values
    return run
