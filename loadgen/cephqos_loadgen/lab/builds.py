"""What is built once and kept in the cache. One build at a time; it shows its progress, and its
last lines if it fails."""

import asyncio
import fcntl
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import how_it_ended
from cephqos_loadgen.progress import Say

_LINES = 12
_LOOK_SECONDS = 0.5


@asynccontextmanager
async def alone(lock: Path, say: Say) -> AsyncIterator[None]:
    """Two builds of the same thing at once are one build."""
    with lock.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                say("waiting for another build of it")
                await asyncio.sleep(_LOOK_SECONDS)
        yield


async def to_its_end(
    name: str, process: Process, log: Path, within: float, tell: Callable[[], None]
) -> None:
    """Wait for a build; LabError with what it said last if it fails, or is late."""
    ending = asyncio.ensure_future(process.wait())
    try:
        async with asyncio.timeout(within):
            while not ending.done():
                await asyncio.wait([ending], timeout=_LOOK_SECONDS)
                tell()
    except TimeoutError:
        raise LabError(f"{name} did not finish within {within:.0f} s; see {log}") from None
    if status := ending.result():
        raise LabError(f"{name} {how_it_ended(status)} ({log}):\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES:])
