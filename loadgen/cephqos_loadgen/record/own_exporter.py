"""The exporters that a run records: those given for the hosts' OSDs, and one of its own.

Its own asks the cluster (scrub and recovery progress of the pools) and, where none was given and
the OSDs' admin sockets are on this host, the OSDs.
"""

import asyncio
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from cephqos_loadgen.cluster.connection import Access
from cephqos_loadgen.record.child import Child, ChildFailed, Launch

_START_SECONDS = 15.0


def argv(port: int, access: Access, python: str, sockets: Path | None) -> list[str]:
    """The run's own exporter; `python` is one that has the rados module."""
    # Also when the run is killed: nobody else would end it.
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "cephqos_exporter.cli"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    if sockets is None:
        command += ["--role=cluster"]
    else:
        command += ["--role=osd,cluster", f"--discovery.sockets={sockets}"]
    place = access.place
    command += [f"--cluster.conf={access.conf}", f"--cluster.name=client.{place.user}"]
    command += [f"--cluster.keyring={place.keyring}"] if place.keyring else []
    command += [f"--cluster.python={shlex.join(access.argv([python]))}"]
    # The scenarios let the OSDs report every second. A scrub of a small placement group is over
    # before it is seen to run: then only the stamps tell, which are read once a round.
    return [*command, "--cluster.interval=1", "--cluster.schedule-interval=5"]


@asynccontextmanager
async def exporters(
    access: Access, python: str, sockets: Path | None, given: Sequence[str], output: Path
) -> AsyncIterator[tuple[Mapping[str, str], Child]]:
    """URLs to scrape by name, and the child that is one of them."""
    urls = {f"exporter.{n}": url for n, url in enumerate(given)}
    port = _free_port()
    command = argv(port, access, python, None if given else sockets)
    async with Child(Launch("exporter", command, {}), output) as child:
        url = f"http://127.0.0.1:{port}/metrics"
        await _until_it_answers(url, child)
        yield {**urls, "exporter": url}, child


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
