"""`cephqos demo`: a real cluster under load, watched, and one promise broken on purpose."""

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_loadgen.children import child
from cephqos_loadgen.demo_story import CAPACITY_OPTION, AlertWatch, addresses, tell_story
from cephqos_loadgen.demo_view import rows, table
from cephqos_loadgen.errors import LabError, UsageError
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import GIB, LabSpec
from cephqos_loadgen.metrics import Scrape, scrape
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.stack import Stack, StackSpec

POOL = IMAGE = "demo"
STORY_POOL = "story"
IMAGE_SIZE = "1G"
# A load that any machine carries: the demo is to show, not to saturate.
LOAD_IOPS = 200
# What OSDs on a shared disk can do without lying much; their default is that of an NVMe drive.
CAPACITY = 2000


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="a cluster under load, watched, with a promise broken on purpose"
    )
    parser.add_argument("--release", default="reef", help="Ceph release (default %(default)s)")
    parser.add_argument("--osds", type=int, default=3)
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between refreshes")
    parser.add_argument("--calm", action="store_true", help="break no promise")
    parser.add_argument("--once", action="store_true", help="end when the story is told")
    parser.add_argument("--duration", type=float, help="end by itself after so many seconds")
    parser.set_defaults(run=_demo)


async def _demo(arguments: argparse.Namespace) -> int:
    if arguments.osds < 2:
        raise UsageError(f"--osds {arguments.osds}: the demo needs two, one of them to be slow")
    progress = Progress()
    spec = LabSpec(
        name=f"demo-{os.getpid()}",
        release=find_release(arguments.release).name,
        osds=arguments.osds,
        osd_size=4 * GIB,
        backing="loop",
        rotational=False,
        op_queue="mclock_scheduler",
    )
    async with Lab(spec, progress) as lab, contextlib.AsyncExitStack() as running:
        with progress.step("starting the exporter, Prometheus and Alertmanager"):
            stack = await running.enter_async_context(Stack(lab, StackSpec(name="demo")))
        with progress.step(f"making an RBD image of {IMAGE_SIZE} and starting fio on it"):
            await _make_image(lab)
            load = await running.enter_async_context(_load(lab))
        client = await running.enter_async_context(lab.client())
        try:
            await Show(lab, client, load, stack, arguments).run()
        except asyncio.CancelledError:
            # Ctrl-C is how the demo is meant to end: no failure, but the clean-up must still run.
            if task := asyncio.current_task():
                task.uncancel()
    return 0


async def _make_image(lab: RunningLab) -> None:
    async with lab.client() as client:
        # Not in the conf file, which would win over what the story finds out.
        await client.command("config set", who="osd", name=CAPACITY_OPTION, value=str(CAPACITY))
        await client.command("osd pool create", pool=POOL, pg_num=16)
        await client.command("osd pool application enable", pool=POOL, app="rbd")
        # Two copies, so that one slow OSD is not in the way of every write.
        await client.command("osd pool create", pool=STORY_POOL, pg_num=32, size=2)
        await client.command("osd pool application enable", pool=STORY_POOL, app="rados")
    await lab.exec(["rbd", "create", f"{POOL}/{IMAGE}", "--size", IMAGE_SIZE])


@contextlib.asynccontextmanager
async def _load(lab: RunningLab) -> AsyncIterator[asyncio.subprocess.Process]:
    argv = [
        *("fio", "--name=demo", "--ioengine=rbd", "--clientname=admin"),
        *(f"--pool={POOL}", f"--rbdname={IMAGE}", "--rw=randrw", "--rwmixread=30"),
        *("--bs=4k", "--iodepth=8", f"--rate_iops={LOAD_IOPS * 3 // 10},{LOAD_IOPS * 7 // 10}"),
        *("--time_based", "--runtime=30d", "--output-format=json"),
    ]
    async with child(lab.enter_argv(argv), lab.paths.logs / "fio.out") as process:
        yield process


class Show:
    """The demo's screen: the OSDs as they are, and above them what happens."""

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
        """Show until the demo is over: its duration, its story with --once, or Ctrl-C."""
        for name, address in addresses(self._stack).items():
            self._tell(f"{name + ':':13} {address}")
        self._tell(f"inside:       cephqos lab exec --name {self._lab.paths.name} -- ceph -s")
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
            self._tell(f"{time.monotonic() - self._begin:5.0f} s  {line}")

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
                    live.update(view, refresh=True)
                else:
                    self._console.print(view)
                before = now

    async def _scrape(self) -> Scrape:
        try:
            return await scrape(self._url)
        except (OSError, ValueError) as error:
            raise LabError(f"the exporter does not answer as it should: {error}") from error

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
        caption = "ops/s are normalised ops, of one cost per io each. Ctrl-C ends all of it."
        return table(title, caption, rows(before, now))
