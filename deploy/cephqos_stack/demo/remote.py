"""`cephqos demo --provoke NAME`: asks the demo, or the lab of the compose stack, that runs here.

A socket of the lab's folder, which only root can open.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.lab.paths import labs_dir

_NAME: Final = "provoke.sock"
_MOST_BYTES: Final = 200  # of a name
_WITHIN: Final = 300.0  # to stage what takes longest

Answer = Callable[[str], Awaitable[str]]


@contextlib.asynccontextmanager
async def listening(folder: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer names that others send, a line each."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, ValueError):
            name = (await reader.readline()).decode(errors="replace").strip()
            try:
                words = await answer(name[:_MOST_BYTES])
            except CephqosError as error:
                words = str(error)
            except asyncio.CancelledError:  # what it waited for ends with the demo
                words = "NOT PROVOKED: the demo ends"
            writer.write(f"{words}\n".encode())
            await writer.drain()

    path = folder / _NAME
    server = await asyncio.start_unix_server(serve, path)
    path.chmod(0o600)
    async with server:
        yield


async def ask(name: str) -> str:
    """What the running demo answers."""
    places = sorted(labs_dir().glob(f"*/run/{_NAME}"))
    for path in reversed(places):
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError:  # of a demo that was killed
            continue
        with contextlib.closing(writer):
            writer.write(f"{name}\n".encode())
            try:
                async with asyncio.timeout(_WITHIN):
                    return (await reader.readline()).decode(errors="replace").strip()
            except TimeoutError:
                raise CephqosError(f"the demo gave no answer within {_WITHIN:g} s") from None
    raise UsageError("--provoke: no demo runs on this host; start one with `cephqos demo`")
