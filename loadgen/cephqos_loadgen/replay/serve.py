"""A throw-away Prometheus on replayed runs, and Grafana where there is one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

from cephqos_loadgen.background import in_background
from cephqos_loadgen.replay.blocks import Replayed
from cephqos_loadgen.replay.programs import ReplayFailed, prometheus, run_cephqos, until_ready
from cephqos_loadgen.stack import free_ports

_BOARD = "cephqos-run"


def board_url(grafana: str, runs: Sequence[Replayed]) -> str:
    """The dashboard of test runs: the first run, and the second beside it."""
    first = runs[0]
    query = {"var-run": first.run}
    if len(runs) > 1:
        query["var-second"] = runs[1].run
    query |= {
        "from": str(int(first.start_seconds * 1000)),
        "to": str(int(first.end_seconds * 1000) + 1000),
    }
    return f"{grafana}/d/{_BOARD}?{urlencode(query)}"


@contextlib.asynccontextmanager
async def serving(
    data: Path, work: Path, grafana_home: Path | None
) -> AsyncIterator[tuple[str, str]]:
    """URLs of Prometheus and of Grafana; the latter is empty without one."""
    async with prometheus(data, work) as url, contextlib.AsyncExitStack() as more:
        grafana = ""
        if grafana_home:
            grafana = await more.enter_async_context(_grafana(grafana_home, work / "grafana", url))
        yield url, grafana


@contextlib.asynccontextmanager
async def _grafana(home: Path, folder: Path, url: str) -> AsyncIterator[str]:
    program = home / "bin" / "grafana"
    if not program.is_file():
        raise ReplayFailed(f"GRAFANA_HOME={home}: {program} does not exist")
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    argv = ["dashboards", "install", str(folder), f"--prometheus={url}", "--scrape-interval=1"]
    await run_cephqos(argv, folder / "install.out")
    (port,) = free_ports(1)
    settings = {
        "SERVER_HTTP_ADDR": "127.0.0.1",
        "SERVER_HTTP_PORT": str(port),
        "PATHS_DATA": str(folder / "data"),
        "PATHS_LOGS": str(folder / "logs"),
        "PATHS_PROVISIONING": str(folder / "provisioning"),
        "AUTH_ANONYMOUS_ENABLED": "true",
        "AUTH_ANONYMOUS_ORG_ROLE": "Admin",
        "ANALYTICS_REPORTING_ENABLED": "false",
        "ANALYTICS_CHECK_FOR_UPDATES": "false",
        "ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "NEWS_NEWS_FEED_ENABLED": "false",
    }
    environment = [f"GF_{name}={value}" for name, value in settings.items()]
    argv = ["env", *environment, str(program), "server", f"--homepath={home}"]
    grafana, log = f"http://127.0.0.1:{port}", folder / "grafana.out"
    async with in_background(argv, log) as process:
        await until_ready(f"{grafana}/api/health", process, log, "Grafana")
        yield grafana


async def until_interrupted() -> None:
    """Ctrl-C is the normal end: no failure, but what was started must still end."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if task := asyncio.current_task():
            task.uncancel()
