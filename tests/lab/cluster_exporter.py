"""The exporter's command on a lab, in both of its roles, and its page."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from tests.exporter_process import ExporterProcess, exporter
from tests.waiting import until

from cephqos_loadgen.lab.lab import RunningLab

from .live_exporter import LivePage


class ClusterExporter:
    """A running cephqos-exporter, and how long its last scrape took."""

    def __init__(self, running: ExporterProcess) -> None:
        self.process = running.process
        self._running = running
        self.seconds = 0.0

    async def scrape(self) -> LivePage:
        self.seconds, text = await asyncio.to_thread(self._running.timed)
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
        "cluster.conf": str(lab.paths.conf),
        "cluster.name": "client.admin",
        "cluster.python": shlex.join(lab.enter_argv(["python3"])),
        "cluster.interval": "0.5",
        "cluster.schedule-interval": "1",
        "cluster.timeout": "2",
    }
    settings |= {name.replace("_", "."): value for name, value in flags.items()}
    with exporter(*(f"--{name}={value}" for name, value in settings.items())) as running:
        yield ClusterExporter(running)
