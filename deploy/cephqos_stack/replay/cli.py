"""`cephqos replay`: recorded runs in Prometheus and Grafana again."""

import argparse
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_base.terminal import say
from cephqos_base.units import duration, parse_time
from cephqos_base.urls import without_password
from cephqos_loadgen.archive.reader import Archive, open_archive
from cephqos_loadgen.archive.run_samples import LAST_TIME_MS
from cephqos_loadgen.programs import find_program
from cephqos_loadgen.progress import Progress
from cephqos_stack.grafana.find import HOW_TO_GET, find_grafana
from cephqos_stack.replay import blocks
from cephqos_stack.replay.gather import ReplayedBlocks, gather, scrape_interval, scratch
from cephqos_stack.replay.programs import LOOKBACK, LOOKBACK_SCRAPES, NEEDED, ReplayFailed
from cephqos_stack.replay.remote_write import send
from cephqos_stack.replay.serve import board_url, serving, until_interrupted


def add_options(parser: Parser) -> None:
    parser.add_argument("archive", nargs="+", type=Path, help="folder of a recorded run")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--into",
        metavar="DIR|URL",
        help="write blocks into this data directory of a Prometheus, or send the runs there by"
        " remote write (token in CEPHQOS_REMOTE_WRITE_TOKEN)",
    )
    where.add_argument(
        "--serve",
        action="store_true",
        help="start a Prometheus on the runs until Ctrl-C, and a Grafana where there is one",
    )
    parser.option(
        "--at TIME",
        "move all runs to start together: now (the longest ends now), seconds since 1970, or"
        " 2026-01-31T12:00:00Z (default: their own times)",
    )
    parser.set_defaults(run=_replay)


def parse_at(text: str | None, now: float) -> float | None:
    """Seconds since 1970; UsageError where it is no time."""
    if text is None:
        return None
    if text == "now":
        return now
    seconds = parse_time(text, "--at")
    if not 0 < seconds < LAST_TIME_MS / 1000:
        raise UsageError(f"--at {text[:80]}: expected a time before 2100")
    return seconds


def check_target(into: str) -> Path:
    """The folder of --into; UsageError where blocks cannot be written there."""
    target = Path(into)
    if target.exists() and not target.is_dir():
        raise UsageError(f"--into {into}: expected a folder")
    return target


def remote_address(into: str) -> Address | None:
    """The address for remote write that --into is; UsageError for one of another kind."""
    if "://" not in into:
        return None
    if not into.startswith(("http://", "https://")):
        raise UsageError(
            f"--into {without_password(into)[:80]}: expected a folder, or an address such as"
            " http://prometheus:9090/api/v1/write"
        )
    return Address.parse(into, "--into", whole=True)


async def _replay(arguments: argparse.Namespace) -> int:
    into = arguments.into
    remote = remote_address(into) if into else None
    target = check_target(into) if into and not remote else None
    at = parse_at(arguments.at, time.time())
    archives = [open_archive(path) for path in arguments.archive]
    blocks.check_archives(archives)
    for name in NEEDED:
        find_program(name)
    moves = blocks.shifts(archives, at, arguments.at == "now")
    if target:
        blocks.check_replayed(target, archives, moves)
    try:
        if remote:
            await _send(archives, moves, remote)
        elif target:
            await _into(archives, moves, target)
        else:
            await _serve(archives, moves)
    except OSError as error:
        raise ReplayFailed(f"cannot write {error.filename or ''}: {error.strerror}") from None
    return 0


async def _write(
    archives: Sequence[Archive], moves: Sequence[float], target: Path, work: Path
) -> list[ReplayedBlocks]:
    written = []
    progress = Progress()
    for archive, move in zip(archives, moves, strict=True):
        with progress.step(f"replaying {archive.folder.name}") as tell, scratch(work) as inner:
            written.append(await blocks.write_blocks(archive, move, target, inner, tell))
    return written


async def _into(archives: Sequence[Archive], moves: Sequence[float], target: Path) -> None:
    # All blocks of all runs, or none: they are written beside their place and then renamed.
    with scratch(target) as work:
        new = work / "blocks"
        new.mkdir()
        runs = await _write(archives, moves, new, work)
        blocks.note_replayed(target, archives, moves)
        for block in new.iterdir():
            block.rename(target / block.name)
    say(*map(describe, runs), f"blocks are in {target}")
    say(*blocks.in_the_future(archives, moves, time.time()))
    say(
        f"Start Prometheus with --query.lookback-delta={lookback(archives)}, and with a"
        " --storage.tsdb.retention.time that reaches back to these times."
    )


async def _send(archives: Sequence[Archive], moves: Sequence[float], to: Address) -> None:
    """Send the runs one after the other, the earliest first."""
    token = os.environ.get("CEPHQOS_REMOTE_WRITE_TOKEN", "")
    progress = Progress()

    def start(pair: tuple[Archive, float]) -> float:
        archive, move = pair
        return archive.manifest.start_unix_seconds + move

    for archive, move in sorted(zip(archives, moves, strict=True), key=start):
        with progress.step(f"replaying {archive.folder.name}") as tell, scratch(None) as work:
            gathered = await gather(archive, move, work, tell)
            async for samples in send(to, gathered, token):
                tell(f"sent {samples:,} samples")
        say(describe(gathered.replayed))
    say(f"sent to {to.url}")


def lookback(archives: Sequence[Archive]) -> str:
    """How far back a query looks for a sample of these."""
    interval = max(map(scrape_interval, archives))
    return LOOKBACK if interval <= 1 else duration(LOOKBACK_SCRAPES * interval)


async def _serve(archives: Sequence[Archive], moves: Sequence[float]) -> None:
    grafana = await find_grafana(os.environ)
    with scratch(None) as work:
        data, servers = work / "data", work / "servers"
        data.mkdir()
        servers.mkdir()
        runs = await _write(archives, moves, data, work)
        async with serving(data, servers, grafana, lookback(archives)) as url:
            say(*map(describe, runs), f"Prometheus: {url}")
            say(f"Grafana:    {board_url(grafana, runs) if grafana else HOW_TO_GET}")
            say("Ctrl-C ends it and removes everything.")
            await until_interrupted()


def describe(run: ReplayedBlocks) -> str:
    """One line: the run, its times, how much it is."""
    begin, end = (
        datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for seconds in (run.start_seconds, run.end_seconds)
    )
    return (
        f"run={json.dumps(run.run)}, {begin} to {end} UTC: {run.samples} samples,"
        f" {run.recorded_series} series from recording rules"
    )
