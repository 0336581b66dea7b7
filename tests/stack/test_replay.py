"""Archives replayed into a real Prometheus."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.recorded import ARCHIVE

from cephqos_base.errors import UsageError
from cephqos_base.prometheus import query
from cephqos_base.servers import Address, NoAnswer
from cephqos_dashboards.queries import run as board
from cephqos_loadgen.archive.reader import Archive, open_archive
from cephqos_loadgen.archive.run_samples import RecordedRun
from cephqos_loadgen.programs import find_program
from cephqos_loadgen.run_recording.columns import labelled, parse, render
from cephqos_stack.replay import gather
from cephqos_stack.replay.gather import load
from cephqos_stack.replay.programs import ReplayFailed, prometheus
from cephqos_stack.replay.remote_write import send

AT = 1_800_000_000
LATER = 10.0  # the second run is said to have started so much earlier than its first phase


@dataclass(frozen=True)
class ServedReplay:
    """Two runs in one TSDB, both started at AT."""

    archives: tuple[Archive, Archive]
    data: Path

    def shift(self, archive: Archive) -> float:
        return AT - archive.manifest.start_unix_seconds


def second_archive(folder: Path) -> Path:
    """The recorded archive under another name, with an earlier start."""
    copy = Path(shutil.copytree(ARCHIVE, folder / "second"))
    manifest = copy / "archive.json"
    data = json.loads(manifest.read_text())
    data["run"] = "second"
    data["start_unix_seconds"] -= LATER
    manifest.write_text(json.dumps(data))
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    (copy / "archive.sha256").write_text(f"{digest}  archive.json\n")
    return copy


def needs_prometheus() -> None:
    try:
        find_program("promtool")
        find_program("prometheus")
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedReplay]:
    needs_prometheus()
    folder = tmp_path_factory.mktemp("replay")
    second = second_archive(folder)
    argv = [sys.executable, "-m", "cephqos_base", "replay", str(ARCHIVE), str(second)]
    argv += ["--into", str(folder / "data"), "--at", str(AT)]

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(*argv)
        assert await asyncio.wait_for(process.wait(), 280) == 0

    asyncio.run(run())
    left = [
        path.name for path in (folder / "data").iterdir() if not re.fullmatch(r"\w{26}", path.name)
    ]
    assert left == ["cephqos-replayed.json"]
    yield ServedReplay((open_archive(ARCHIVE), open_archive(second)), folder / "data")


async def test_values_of_both_runs_are_those_of_their_archives_at_every_fourth_instant(
    replayed: ServedReplay, tmp_path: Path
) -> None:
    async with prometheus(replayed.data, tmp_path) as url:
        compared = [
            await same_values(url, archive, replayed.shift(archive), every=4)
            for archive in replayed.archives
        ]
    assert sum(compared) > 10_000


async def same_values(url: str, archive: Archive, shift: float, every: int) -> int:
    """How many values of a Prometheus are those of an archive, at some of its instants."""
    own = {"run": archive.manifest.run, "archive": archive.folder.name}
    expected = load(archive, shift).series
    compared = 0
    for time_ms in sorted({at for samples in expected.values() for at in samples})[::every]:
        found = {}
        at = (time_ms + round(shift * 1000)) / 1000
        for each in await query(url, f'{{run="{own["run"]}",__name__!~".+:.+"}}', at):
            name = each["metric"].pop("__name__")
            found[as_stored(name, each["metric"])] = float(each["value"][1])
        for series, samples in expected.items():
            if time_ms in samples:
                name, labels = parse(series)
                stored = found[as_stored(name, labelled(labels, own))]
                assert stored == samples[time_ms], series
                compared += 1
    return compared


async def test_two_runs_start_together_and_the_board_draws_the_second_over_the_first(
    replayed: ServedReplay, tmp_path: Path
) -> None:
    async with prometheus(replayed.data, tmp_path) as url:
        starts = await query(url, board.START, AT + 30)
        assert {each["metric"]["run"] for each in starts} == {
            archive.manifest.run for archive in replayed.archives
        }
        assert [float(each["value"][1]) for each in starts] == pytest.approx([AT, AT])
        runs = {"run": replayed.archives[0].manifest.run, "second": "second"}
        shift = await query(url, filled(board.SHIFT.partition("(")[2][:-1], runs), AT + 30)
        seconds = shift[0]["value"][1]
        for one, other in (board.IOPS, board.P99, board.WORK):
            first = await ever(url, filled(one.expr, runs))
            second = await ever(url, filled(other.expr, runs | {"shift": seconds}))
            assert first and second == first


def as_stored(name: str, labels: dict[str, str]) -> str:
    """Prometheus drops empty labels; since version 3 it writes bounds as floats."""
    kept = {key: value for key, value in labels.items() if value}
    return render(name, kept | ({"le": str(float(kept["le"]))} if "le" in kept else {}))


async def ever(url: str, expr: str) -> int:
    """How many lines a panel draws of it in the run."""
    return len(await query(url, f"count_over_time(({expr})[70s:1s])", AT + 68))


def filled(expr: str, variables: dict[str, str]) -> str:
    """A dashboard's query as Grafana sends it."""
    cluster = {"cluster": "81704cae-abb3-4bf5-a502-443db0ec9f6c", "__rate_interval": "4s"}
    for name, value in (variables | cluster).items():
        expr = expr.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return expr


async def test_recorded_series_are_there_for_each_run_and_not_summed_over_runs(
    replayed: ServedReplay, tmp_path: Path
) -> None:
    async with prometheus(replayed.data, tmp_path) as url:
        found = await query(
            url, "count by (run) (last_over_time(cluster:cephqos_osds:count[70s]))", AT + 68
        )
        assert {each["metric"]["run"] for each in found} == {
            archive.manifest.run for archive in replayed.archives
        }
        osds = await query(url, "max_over_time(cluster:cephqos_osds:count[70s])", AT + 68)
        assert {each["value"][1] for each in osds} == {"2"}


async def test_nothing_is_shown_ten_seconds_after_the_end(
    replayed: ServedReplay, tmp_path: Path
) -> None:
    end = max(
        archive.manifest.end_unix_seconds + replayed.shift(archive) for archive in replayed.archives
    )
    async with prometheus(replayed.data, tmp_path) as url:
        assert await query(url, "cephqos_daemon_up", end + 10) == []


async def test_remote_write_brings_every_value_and_marks_the_end(tmp_path: Path) -> None:
    """Into a Prometheus with the default lookback: only marks keep it from drawing on."""
    needs_prometheus()
    at_seconds = int(time.time()) - 1800  # a database refuses what lies in the future
    archive = open_archive(ARCHIVE)
    (tmp_path / "data").mkdir()
    receiver = "--web.enable-remote-write-receiver"
    async with prometheus(tmp_path / "data", tmp_path, receiver, lookback="5m") as url:
        argv = [sys.executable, "-m", "cephqos_base", "replay", str(ARCHIVE)]
        argv += ["--into", f"{url}/api/v1/write", "--at", str(at_seconds)]
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        said, _ = await asyncio.wait_for(process.communicate(), 280)
        assert process.returncode == 0 and f"sent to {url}/api/v1/write".encode() in said
        shift = at_seconds - archive.manifest.start_unix_seconds
        assert await same_values(url, archive, shift, every=5) > 2_500
        end = archive.manifest.end_unix_seconds + shift
        assert await query(url, f'{{run="{archive.manifest.run}"}}', end + 10) == []
        rules = await query(url, "max_over_time(cluster:cephqos_osds:count[70s])", at_seconds + 68)
        assert {each["metric"]["run"] for each in rules} == {archive.manifest.run}


async def test_a_prometheus_that_takes_no_remote_write_is_one_line(tmp_path: Path) -> None:
    needs_prometheus()
    (tmp_path / "data").mkdir()
    about = gather.ReplayedBlocks("r", AT, AT, 1, 0)
    one = gather.Gathered(RecordedRun({}, {"m{}": {AT * 1000: 1.0}}), {"run": "r"}, 0, about)
    async with prometheus(tmp_path / "data", tmp_path) as url:
        with pytest.raises(ReplayFailed, match=r"--web\.enable-remote-write-receiver") as caught:
            async for _ in send(Address(f"{url}/api/v1/write"), one):
                pass
    assert "\n" not in str(caught.value)


async def test_serve_answers_until_interrupted_and_leaves_nothing(tmp_path: Path) -> None:
    needs_prometheus()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("GRAFANA_HOME", None)
    assert tempfile.gettempdir() != str(tmp_path)
    argv = [sys.executable, "-m", "cephqos_base", "replay", str(ARCHIVE), "--serve"]
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, env=environment
    )
    said = b""
    assert process.stdout
    async with asyncio.timeout(200):
        while b"Ctrl-C" not in said:
            line = await process.stdout.readline()
            assert line, said
            said += line
        address = re.search(rb"Prometheus: (\S+)", said)
        assert address
        manifest = open_archive(ARCHIVE).manifest
        at = manifest.end_unix_seconds - 4
        assert await query(address[1].decode(), "cephqos_daemon_up", at)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NoAnswer, match="refused"):
        await query(address[1].decode(), "up", at)
