"""A throw-away Prometheus on replayed runs, and Grafana where there is one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from cephqos_base import dashboards
from cephqos_dashboards.provisioning import Sources
from cephqos_stack.grafana.place import Grafana
from cephqos_stack.replay.gather import ReplayedBlocks
from cephqos_stack.replay.programs import LOOKBACK, prometheus


def board_url(grafana: Grafana, runs: Sequence[ReplayedBlocks]) -> str:
    """The dashboard of test runs, with the first run and the second one beside it."""
    first = runs[0]
    query = {"var-run": first.run}
    if len(runs) > 1:
        query["var-second"] = runs[1].run
    query |= {
        "from": str(int(first.start_seconds * 1000)),
        "to": str(int(first.end_seconds * 1000) + 1000),
    }
    return grafana.board_url(dashboards.RUN, query)


@contextlib.asynccontextmanager
async def serving(
    data: Path, work: Path, grafana: Grafana | None, lookback: str = LOOKBACK
) -> AsyncIterator[str]:
    """Run a Prometheus on the data, and a Grafana with it. Yields the URL of Prometheus."""
    async with (
        prometheus(data, work, lookback=lookback) as url,
        contextlib.AsyncExitStack() as grafana_stack,
    ):
        if grafana:
            await grafana_stack.enter_async_context(
                grafana.showing(Sources(prometheus=url), work / "grafana")
            )
        yield url


async def until_interrupted() -> None:
    """Wait for Ctrl-C, which is the normal end: what was started must still be ended."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if task := asyncio.current_task():
            task.uncancel()
