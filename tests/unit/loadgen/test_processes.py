"""Whoever is started here is ended with all that it started."""

import asyncio
import os
from pathlib import Path

import pytest

from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import in_background, run

# Writes the number of its own child, then waits for it.
PARENT = "sleep 60 & echo $! > {file}.new && mv {file}.new {file}; wait"


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def child_in(file: Path) -> int:
    async with asyncio.timeout(10):
        while not file.exists():
            await asyncio.sleep(0.02)
    return int(file.read_text())


async def gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while alive(pid):
            await asyncio.sleep(0.02)


async def test_past_its_deadline_a_command_ends_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(LabError, match=r"^counting: not done within 1 s$"):
        await run(["sh", "-c", PARENT.format(file=file)], within=1.0, named="counting")
    await gone(await child_in(file))


async def test_a_command_that_is_cancelled_ends_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = asyncio.create_task(run(["sh", "-c", PARENT.format(file=file)], within=60.0))
    child = await child_in(file)
    assert alive(child)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await gone(child)


async def test_a_server_ends_with_its_block_even_if_it_ignores_the_request(tmp_path: Path) -> None:
    file, log = tmp_path / "pid", tmp_path / "log"
    stubborn = f"trap '' TERM; {PARENT.format(file=file)}"
    async with in_background(["sh", "-c", stubborn], log) as server:
        child = await child_in(file)
    assert server.returncode == -9
    await gone(child)


async def test_output_is_begun_anew_or_appended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for append, wanted in ((False, "x"), (False, "x"), (True, "xx")):
        argv = ["sh", "-c", 'printf "$WORD"']
        given = {"WORD": "x"}
        async with in_background(argv, log, environment=given, append=append) as process:
            await process.wait()
        assert log.read_text() == wanted
    assert "WORD" not in os.environ
