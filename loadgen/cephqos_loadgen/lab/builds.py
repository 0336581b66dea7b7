"""Builds of what is kept in the cache: release trees and tools. Each is built by one process at a
time, which shows its progress, and its last lines if it fails."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cephqos_base.locks import try_lock
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import how_it_ended
from cephqos_loadgen.progress import Say

_LAST_LINES = 12
_LOOK_SECONDS = 0.5


@asynccontextmanager
async def alone(lock: Path, say: Say) -> AsyncIterator[None]:
    """Hold the lock of a build. Who comes second waits, and then finds the thing built."""
    with lock.open("w") as file:
        while not try_lock(file.fileno()):
            say("waiting for another build of it")
            await asyncio.sleep(_LOOK_SECONDS)
        yield


async def to_its_end(
    name: str, process: Process, log: Path, within: float, tell: Callable[[], None]
) -> None:
    """Wait for a build to end; LabError with its last lines if it fails or is late."""
    ended = asyncio.ensure_future(process.wait())
    try:
        async with asyncio.timeout(within):
            while not ended.done():
                await asyncio.wait([ended], timeout=_LOOK_SECONDS)
                tell()
    except TimeoutError:
        raise LabError(f"{name} did not finish within {within:.0f} s; see {log}") from None
    if status := ended.result():
        raise LabError(f"{name} {how_it_ended(status)} ({log}):\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
