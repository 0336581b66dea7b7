"""The demo's screen: a terminal shows one table that is updated; a pipe gets one after another."""

import argparse
import asyncio
import contextlib
import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_loadgen.demo.osd_table import rows, table
from cephqos_loadgen.demo.story import STORY_POOL, AlertWatch, addresses, tell_story
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.progress import folded
from cephqos_loadgen.scraping import Scrape, scrape
from cephqos_loadgen.stack import Stack


class Screen:
    """Shows the table of OSDs, and the events of the story above it."""

    def __init__(
        self,
        lab: RunningLab,
        client: MonClient,
        load: asyncio.subprocess.Process,
        stack: Stack,
        arguments: argparse.Namespace,
    ) -> None:
        self._lab = lab
        self._client = client
        self._load = load
        self._url = f"{stack.exporter_url}/metrics"
        self._stack = stack
        self._arguments = arguments
        self._console = Console()
        self._begin = time.monotonic()

    async def run(self) -> None:
        """Run until --duration has passed, the story is over (with --once), or Ctrl-C."""
        for name, address in addresses(self._stack).items():
            self._tell(f"{name + ':':13} {address}")
        self._tell(f"ceph:         cephqos lab exec --name {self._lab.paths.name} -- ceph -s")
        try:
            async with asyncio.TaskGroup() as group:
                refreshing = group.create_task(self._refresh())
                telling = None if self._arguments.calm else group.create_task(self._story())
                last = telling if self._arguments.once and telling else refreshing
                await asyncio.wait([last], timeout=self._arguments.duration)
                for task in filter(None, (refreshing, telling)):
                    task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _tell(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    async def _story(self) -> None:
        def tell(line: str) -> None:
            line = f"{time.monotonic() - self._begin:5.0f} s  {line}"
            self._tell(folded(line, self._console.width))

        watch = AlertWatch(self._stack, tell)
        await tell_story(self._lab, self._stack, watch, STORY_POOL, tell)

    async def _refresh(self) -> None:
        before = await self._scrape()
        live = Live(console=self._console, auto_refresh=False)
        with live if self._console.is_terminal else contextlib.nullcontext():
            while True:
                await asyncio.sleep(self._arguments.interval)
                if self._load.returncode is not None:
                    said = (self._lab.paths.logs / "fio.out").read_text(errors="replace")
                    status = self._load.returncode
                    raise LabError(f"fio ended with status {status}: {said[-500:]}")
                now = await self._scrape()
                view = await self._view(before, now)
                if self._console.is_terminal:
                    # An empty row for the echo of ^C, which would otherwise move the table.
                    live.update(Group(view, ""), refresh=True)
                else:
                    self._console.print(view)
                before = now

    async def _scrape(self) -> Scrape:
        try:
            return await scrape(self._url)
        except (OSError, ValueError) as error:
            raise LabError(f"no metrics from the exporter: {error}") from error

    async def _view(self, before: Scrape, now: Scrape) -> Table:
        try:
            status = await self._client.command("status", within=2.0)
            health = status["health"]["status"]
            states = status["pgmap"].get("pgs_by_state", [])
            pgs = ", ".join(f"{state['count']} PGs {state['state_name']}" for state in states)
        except (ClusterUnreachable, CommandFailed) as error:
            health, pgs = f"monitor: {error}", "PGs unknown"
        ceph = self._lab.spec.ceph
        seconds = time.monotonic() - self._begin
        title = f"Ceph {ceph.version} ({ceph.name}) · {health} · {pgs} · {seconds:.0f} s"
        caption = (
            "Rates are in normalised ops/s: 1 op is one cost_per_io of work. Ctrl-C ends the demo."
        )
        return table(title, caption, rows(before, now))
