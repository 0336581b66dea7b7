"""Processes that run in the background and end with ours, even when ours is killed."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

# Put before a command line: the kernel kills the process when its parent ends.
ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
_SECONDS_TO_END = 3.0


def own_module(name: str) -> list[str]:
    """The start of a command line: a module of ours, which imports nothing from the directory that
    we run in. That may hold files of others, such as an archive."""
    return [sys.executable, "-P", "-m", name]


@asynccontextmanager
async def in_background(
    argv: Sequence[str],
    output: Path,
    *,
    stdin: int = asyncio.subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Process]:
    """Run a process while the block runs; its output goes to the file `output`.

    `environment`: variables besides ours. What `env` would be told, everybody could read.
    """
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *ENDS_WITH_PARENT,
            *argv,
            stdin=stdin,
            stdout=file,
            stderr=file,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    """SIGTERM to the whole process group; SIGKILL if it has not ended after a few seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_END):
                await process.wait()
