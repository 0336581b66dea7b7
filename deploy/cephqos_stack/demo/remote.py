"""`cephqos demo --provoke NAME`: asks the demo, or the lab of the compose stack, that runs here.

They talk through a socket in the lab's folder, which only root can open: a line with a name, and
a line with the answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.state import lab_names

_SOCKET: Final = "provoke.sock"
_LONGEST_NAME: Final = 200  # characters
_ANSWER_SECONDS: Final = 300.0  # the slowest fault takes this long to stage

Answer = Callable[[str], Awaitable[str]]


@contextlib.asynccontextmanager
async def listening(folder: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer the names that others send, for as long as the block runs."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, ValueError):
            name = (await reader.readline()).decode(errors="replace").strip()
            try:
                words = await answer(name[:_LONGEST_NAME])
            except CephqosError as error:
                words = str(error)
            except asyncio.CancelledError:  # what it waited for ends with the demo
                words = "NOT PROVOKED: the demo ends"
            writer.write(f"{words}\n".encode())
            await writer.drain()

    path = folder / _SOCKET
    server = await asyncio.start_unix_server(serve, path)
    path.chmod(0o600)
    async with server:
        yield


async def ask(name: str) -> str:
    """Send a name to the demo that runs here, the newest first. Returns its answer."""
    for lab in reversed(lab_names()):
        path = LabPaths.of(lab).sockets / _SOCKET
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError:  # of a demo that was killed
            continue
        with contextlib.closing(writer):
            writer.write(f"{name}\n".encode())
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    return (await reader.readline()).decode(errors="replace").strip()
            except TimeoutError:
                raise CephqosError(
                    f"the demo gave no answer within {_ANSWER_SECONDS:g} s"
                ) from None
    raise UsageError("--provoke: no demo runs on this host; start one with `cephqos demo`")
