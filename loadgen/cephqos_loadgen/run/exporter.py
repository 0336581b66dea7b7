"""The exporters that a run records: those given, or one of its own where there are sockets."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from cephqos_loadgen.record.child import Child, ChildFailed, Launch

_START_SECONDS = 15.0


def argv(port: int, sockets: Path) -> list[str]:
    # Also when the run is killed: nobody else would end it.
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "cephqos_exporter.cli"]
    command += [f"--web.listen-address=127.0.0.1:{port}", f"--discovery.sockets={sockets}"]
    return command


@asynccontextmanager
async def exporters(
    sockets: Path | None, given: Sequence[str], output: Path
) -> AsyncIterator[tuple[Mapping[str, str], Child | None]]:
    """URLs to scrape by name, and the child if one was started. No sockets, none given: none."""
    urls = {f"exporter.{n}": url for n, url in enumerate(given)}
    if given or sockets is None:
        yield urls, None
        return
    port = _free_port()
    async with Child(Launch("exporter", argv(port, sockets), {}), output) as child:
        url = f"http://127.0.0.1:{port}/metrics"
        await _until_it_answers(url, child)
        yield {"exporter": url}, child


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def _until_it_answers(url: str, child: Child) -> None:
    try:
        async with asyncio.timeout(_START_SECONDS), aiohttp.ClientSession() as session:
            while True:
                if not child.running:
                    await child.wait(1.0)
                    raise ChildFailed(f"the exporter ended at once: {child.said}")
                try:
                    async with session.get(url) as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise ChildFailed(
            f"the exporter did not answer within {_START_SECONDS:g} s: {child.said}"
        ) from None
