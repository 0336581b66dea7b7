"""Child processes that cannot outlive us, not even when we are killed."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

_GRACE = 3.0


@asynccontextmanager
async def child(argv: Sequence[str], output: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process for as long as the block; what it prints goes to `output`."""
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL"),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM, a moment, SIGKILL: for the whole group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
