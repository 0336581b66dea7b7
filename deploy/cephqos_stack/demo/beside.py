"""What the demo starts and does not wait for: Grafana, and Loki with the collector.

Each has a `state`, a sentence for the screen that says how far it is.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

from cephqos_alerts.output.build import log_rules
from cephqos_base import textfile
from cephqos_base.errors import CephqosError
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.progress import Say, Silent
from cephqos_stack.demo.load import archives
from cephqos_stack.grafana.find import HOW_TO_GET
from cephqos_stack.grafana.place import Grafana
from cephqos_stack.logs import LogPipeline, LogSpec
from cephqos_stack.stack import Stack
from cephqos_stack.tools import ensure_tool


class Beside:
    """One of them, as the screen shows it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = "starting"
        self.stays = False  # whether the screen shows the state for as long as the demo runs
        self.ready = asyncio.Event()  # it can be used, or it is known that it cannot

    def tell(self, text: str) -> None:
        self.state = text

    def settled(self, text: str, *, stays: bool = False) -> None:
        self.state, self.stays = text, stays
        self.ready.set()

    async def within(self, seconds: float) -> None:
        """Wait until it is ready, but not longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ready.wait()


class _AsState(Silent):
    """The progress of a build as the state of what is built."""

    def __init__(self, tell: Say) -> None:
        super().__init__()
        self._tell = tell

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Say]:
        self._tell(title)
        yield lambda text: self._tell(f"{title}: {text}")


@contextlib.asynccontextmanager
async def _beside(name: str, work: Callable[[Beside], Awaitable[None]]) -> AsyncIterator[Beside]:
    """Do the work for as long as the block runs. If it fails, the demo goes on without it."""
    beside = Beside(name)

    async def do() -> None:
        try:
            await work(beside)
        except (CephqosError, OSError) as error:
            beside.settled(f"none: {error}")

    task = asyncio.create_task(do())
    try:
        yield beside
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()


@contextlib.asynccontextmanager
async def grafana_beside(
    grafana: Grafana | None, sources: Sources, folder: Path
) -> AsyncIterator[Beside]:
    """Show our dashboards in this Grafana; without one, say how to get one."""

    async def show(beside: Beside) -> None:
        if grafana is None:
            beside.settled(HOW_TO_GET)
            return
        async with grafana.showing(sources, folder, beside.tell):
            beside.settled(grafana.home_url, stays=True)
            await asyncio.Event().wait()

    async with _beside("Grafana", show) as beside:
        yield beside


def log_pipeline(lab: RunningLab, stack: Stack, loki_port: int) -> LogPipeline:
    """Loki and the collector for the lab's logs; its address is known before it runs."""
    return LogPipeline(
        LogSpec(
            folder=lab.paths.work / "logs",
            logs=lab.paths.logs,
            cluster=lab.state.fsid,
            alertmanager_url=stack.alertmanager_url,
            archives=archives(lab),
            loki_port=loki_port,
        )
    )


@contextlib.asynccontextmanager
async def logs_beside(pipeline: LogPipeline, stack: Stack) -> AsyncIterator[Beside]:
    """Collect logs. What `make tools` has not built yet is built first, at the lowest priority."""

    async def collect(beside: Beside) -> None:
        for name in ("cephqos-collector", "loki"):
            await ensure_tool(name, _AsState(beside.tell), nice=19)
        rules = pipeline.spec.folder / "rules" / "fake" / "logs.yml"
        textfile.write(rules, log_rules(stack.spec.rule_settings))
        beside.tell("Loki and the collector are starting")
        async with pipeline:
            beside.settled(f"in Loki: {pipeline.loki_url}")
            await asyncio.Event().wait()

    async with _beside("logs", collect) as beside:
        yield beside
