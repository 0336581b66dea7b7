"""The exporter's command on a lab, in both of its roles, and its page."""

import asyncio
import contextlib
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
from tests.waiting import until

from cephqos_exporter.ceph.cluster import tied
from cephqos_loadgen.lab.lab import RunningLab

from .live_exporter import LivePage

COMMAND = Path(sys.executable).with_name("cephqos-exporter")


class ClusterExporter:
    """A running cephqos-exporter, and what it last said."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self._url = url
        self.seconds = 0.0  # that the last scrape took

    async def scrape(self) -> LivePage:
        started = time.monotonic()
        async with aiohttp.ClientSession() as session, session.get(self._url) as response:
            text = await response.text()
        self.seconds = time.monotonic() - started
        return LivePage(text)

    async def until(self, condition: Callable[[LivePage], bool], what: str) -> LivePage:
        """The first page on which it is so."""

        async def found() -> LivePage | None:
            page = await self.scrape()
            return page if condition(page) else None

        return await until(found, what)

    @property
    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.asynccontextmanager
async def exporting(lab: RunningLab, **flags: str) -> AsyncIterator[ClusterExporter]:
    """The exporter on all of a lab, on a port of its own."""
    settings = {
        "role": "osd,cluster",
        "discovery.sockets": f"{lab.paths.sockets}/*.asok",
        "web.listen-address": "127.0.0.1:0",
        "cluster.conf": str(lab.paths.conf),
        "cluster.name": "client.admin",
        "cluster.python": shlex.join(lab.enter_argv(["python3"])),
        "cluster.interval": "0.5",
        "cluster.schedule-interval": "1",
        "cluster.timeout": "2",
    }
    settings |= {name.replace("_", "."): value for name, value in flags.items()}
    process = await asyncio.create_subprocess_exec(
        *tied([str(COMMAND), *(f"--{name}={value}" for name, value in settings.items())]),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    try:
        async with asyncio.timeout(60):
            line = (await process.stderr.readline()).decode()
        found = re.search(r"listening on (http://[\d.:]+)", line)
        assert found, line
        yield ClusterExporter(process, f"{found[1]}/metrics")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()
