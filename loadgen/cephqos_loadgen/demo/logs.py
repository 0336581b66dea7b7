"""Loki and the collector beside the demo, which does not wait for them.

What `make tools` has not built yet is built meanwhile, with the least priority. `state` says how
far that is.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from cephqos_base.errors import CephqosError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.logs import LogPipeline, LogSpec
from cephqos_loadgen.progress import Say, Silent
from cephqos_loadgen.stack import Stack
from cephqos_loadgen.tools import ensure_tool


class DemoLogs:
    """`url` is Loki's once it is there; `state` a sentence for whoever looks."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.state = "Loki and the collector are starting"


class _Told(Silent):
    """Keeps what a build says for those who ask."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Say]:
        yield lambda text: self._tell(f"{title}: {text}")


@contextlib.asynccontextmanager
async def logs_beside(lab: RunningLab, stack: Stack) -> AsyncIterator[DemoLogs]:
    """Collect the lab's logs for as long as the block runs, from when the tools are there."""
    logs = DemoLogs()
    task = asyncio.create_task(_collect(logs, lab, stack))
    try:
        yield logs
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _collect(logs: DemoLogs, lab: RunningLab, stack: Stack) -> None:
    def tell(text: str) -> None:
        logs.state = text

    folder = lab.paths.work / "logs"
    try:
        for name in ("cephqos-collector", "loki"):
            await ensure_tool(name, _Told(tell), nice=19)
        await _write_rules(folder, stack)
        spec = LogSpec(
            folder=folder,
            logs=lab.paths.logs,
            cluster=lab.state.fsid,
            alertmanager_url=stack.alertmanager_url,
        )
        async with LogPipeline(spec) as pipeline:
            logs.url = pipeline.loki_url
            tell(f"logs are in Loki: {logs.url}")
            await asyncio.Event().wait()
    except (CephqosError, OSError) as error:
        # The demo shows the cluster with or without its logs.
        logs.url = None
        tell(f"no logs: {error}")


async def _write_rules(folder: Path, stack: Stack) -> None:
    """The same settings as the stack's rules have; its other files are written a second time."""
    loki = folder / "rules" / "fake" / "logs.yml"
    loki.parent.mkdir(parents=True, exist_ok=True)
    argv = [*stack.spec.rules_argv(folder / "prometheus"), f"--loki={loki}"]
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode != 0:
        raise LabError(f"rules for Loki: {said.decode(errors='replace').strip()}")
