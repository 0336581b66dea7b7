"""Counted lines through the log pipeline: rotation, restarts and outages lose and double nothing.

Writers append numbered lines in Ceph's format, as daemons do, for as long as a case lasts. The
files, the collector and Loki are real; no cluster is needed to write a line.
"""

import asyncio
import contextlib
import gzip
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.log_pipeline import TriedPipeline
from tests.waiting import until

from cephqos_stack.logs import LogSpec

from .log_files import need_tools

pytestmark = pytest.mark.full


CLUSTER = "11111111-2222-3333-4444-555555555555"
_PER_SECOND = 200


class Writer:
    """A daemon's log: opened once, flushed line by line, reopened when it is told to."""

    def __init__(self, path: Path, osd: int) -> None:
        self.path = path
        self.osd = osd
        self.count = 0
        self._file = path.open("ab", buffering=0)
        self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while True:
            for _ in range(_PER_SECOND // 20):
                self.line()
            await asyncio.sleep(0.05)

    def line(self) -> None:
        """Every tenth entry has lines that belong to it."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        stamp = now.replace("+00:00", "+0000")
        more = "\n 1: a frame\n 2: another\n" if self.count % 10 == 0 else ""
        # Files are recognised by their first 1000 bytes: those of two daemons are never the same.
        line = f"{stamp} 7f0d559906c{self.osd}  1 osd.{self.osd} 24 counted {self.count}{more}\n"
        self._file.write(line.encode())
        self.count += 1

    def reopen(self) -> None:
        """As a daemon does at SIGHUP."""
        self._file.close()
        self._file = self.path.open("ab", buffering=0)

    async def stop(self) -> int:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._file.close()
        return self.count


class CountedCase:
    """A pipeline, and the writers of two daemons' logs."""

    def __init__(self, pipeline: TriedPipeline, folder: Path) -> None:
        self.pipeline = pipeline
        self.writers = [Writer(folder / f"ceph-osd.{osd}.log", osd) for osd in (0, 1)]

    async def every_line_once(self, within: float = 60) -> int:
        """Stop writing, and wait until each counted line is in Loki, once."""
        wrong = "nothing yet"
        counts = [await writer.stop() for writer in self.writers]

        async def complete() -> bool:
            nonlocal wrong
            for osd, count in enumerate(counts):
                found = await self._numbers(osd)
                missing = [number for number in range(count) if number not in found]
                doubled = [number for number, times in found.items() if times > 1]
                wrong = f"osd.{osd}: {len(missing)} of {count} missing {missing[:3]}, "
                wrong += f"{len(doubled)} doubled {doubled[:3]}"
                if missing or doubled:
                    return False
            return True

        await until(complete, lambda: wrong, within)
        total = await self.pipeline.count(f'{{cluster="{CLUSTER}"}} |= "counted"')
        assert total == sum(counts)
        print(f"{total} lines written, {total} lines in Loki")
        return total

    async def _numbers(self, osd: int) -> Counter[int]:
        selector = f'{{cluster="{CLUSTER}", log="osd"}} | ceph_daemon="osd.{osd}"'
        found: Counter[int] = Counter()
        for _, _, line in await self.pipeline.lines(selector):
            found[int(line.split("counted ")[1].split()[0])] += 1
        return found


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[CountedCase]:
    need_tools()
    logs = tmp_path / "log"
    logs.mkdir()
    spec = LogSpec(folder=tmp_path, logs=logs, cluster=CLUSTER, host="h")
    async with TriedPipeline(spec) as pipeline:
        case = CountedCase(pipeline, logs)
        yield case
        for writer in case.writers:
            await writer.stop()


def rename(path: Path) -> Path:
    """The first half of logrotate's work: the daemon goes on writing to the renamed file."""
    return path.rename(path.with_name(f"{path.name}.1"))


def compress(path: Path) -> None:
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()


def copy_and_truncate(path: Path) -> None:
    """logrotate's other way. Nobody writes between the two steps: logrotate would lose that."""
    shutil.copy(path, f"{path}.1")
    with path.open("r+b") as file:
        file.truncate()


async def test_rotation_by_renaming_and_by_copying(case: CountedCase) -> None:
    first, second = case.writers
    for _ in range(3):
        await asyncio.sleep(3)
        rotated = rename(first.path)
        copy_and_truncate(second.path)
        await asyncio.sleep(0.3)  # until a daemon has taken the signal
        first.reopen()
        compress(rotated)
    await asyncio.sleep(2)
    await case.every_line_once()


async def test_rotation_and_compression_while_the_collector_is_down(case: CountedCase) -> None:
    first, second = case.writers
    await asyncio.sleep(3)
    await case.pipeline.stop_collector()
    await asyncio.sleep(2)
    rotated = rename(first.path)
    copy_and_truncate(second.path)
    await asyncio.sleep(0.3)
    first.reopen()
    compress(rotated)
    await asyncio.sleep(2)
    await case.pipeline.start_collector()
    await asyncio.sleep(3)
    await case.every_line_once()


async def test_a_collector_that_is_killed_again_and_again(case: CountedCase) -> None:
    for _ in range(4):
        await asyncio.sleep(2.3)
        await case.pipeline.stop_collector(kill=True)
        await asyncio.sleep(0.5)
        await case.pipeline.start_collector()
    await asyncio.sleep(2)
    await case.every_line_once()


async def test_loki_that_is_restarted_and_loki_that_is_killed(case: CountedCase) -> None:
    for kill in (False, True):
        await asyncio.sleep(3)
        await case.pipeline.stop_loki(kill=kill)
        await asyncio.sleep(1)
        await case.pipeline.start_loki()
    await asyncio.sleep(2)
    await case.every_line_once()


async def test_loki_down_for_half_a_minute_with_rotation_and_a_killed_collector(
    case: CountedCase,
) -> None:
    first, _ = case.writers
    await asyncio.sleep(2)
    await case.pipeline.stop_loki()
    began, written = asyncio.get_running_loop().time(), first.count
    await asyncio.sleep(10)
    rotated = rename(first.path)
    first.reopen()
    compress(rotated)
    await case.pipeline.stop_collector(kill=True)
    await case.pipeline.start_collector()
    await asyncio.sleep(20)
    rate = (first.count - written) / (asyncio.get_running_loop().time() - began)
    assert rate > 0.5 * _PER_SECOND, "who writes logs does not wait for Loki"
    await case.pipeline.start_loki()
    back = asyncio.get_running_loop().time()
    total = await case.every_line_once()
    print(f"{total} lines caught up {asyncio.get_running_loop().time() - back:.1f} s after Loki")
