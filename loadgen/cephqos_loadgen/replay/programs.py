"""promtool and Prometheus: where they are, and runs of them that end."""

import asyncio
import contextlib
import json
import shutil
import sys
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.background import in_background
from cephqos_loadgen.fetch import fetch
from cephqos_loadgen.lab.releases import RELEASES
from cephqos_loadgen.lab.trees import tree_path, tree_ready
from cephqos_loadgen.stack import free_ports

# How far back a query looks for a sample. Prometheus' default of five minutes would draw a line
# through every gap: blocks made from text have no staleness markers.
LOOKBACK: Final = "5s"
_TOOL_SECONDS = 1800.0
_START_SECONDS = 60.0
_QUERY_SECONDS = 300.0


class ReplayFailed(CephqosError):
    """promtool, Prometheus or Grafana did not do what was asked."""


def find_program(name: str) -> list[str]:
    """The start of a command line: from the PATH, else from the newest release tree of the lab."""
    found = shutil.which(name)
    if found:
        return [found]
    for release in reversed(RELEASES.values()):
        tree = tree_path(release)
        program = tree / "usr" / "bin" / name
        loader = next(tree.glob("usr/lib*/**/ld-linux*.so*"), None)
        if tree_ready(release) and program.exists() and loader:
            libraries = loader.resolve().parent
            return [str(loader), "--library-path", str(libraries), str(program)]
    raise UsageError(
        f"{name} not found: install Prometheus (apt-get install prometheus), or run"
        " `cephqos lab trees`, which has it"
    )


async def run_promtool(arguments: Sequence[str], log: Path) -> None:
    """Run promtool to its end; ReplayFailed with its last words."""
    await _run("promtool", [*find_program("promtool"), *arguments], log)


async def run_cephqos(arguments: Sequence[str], log: Path) -> None:
    """Run another of our own commands; ReplayFailed with its last words."""
    name = f"cephqos {arguments[0]}"
    await _run(name, [sys.executable, "-P", "-m", "cephqos_base", *arguments], log)


async def _run(name: str, argv: Sequence[str], log: Path) -> None:
    async with in_background(argv, log) as process:
        try:
            async with asyncio.timeout(_TOOL_SECONDS):
                status = await process.wait()
        except TimeoutError:
            raise ReplayFailed(f"{name} did not end within {_TOOL_SECONDS:.0f} s") from None
    if status:
        raise ReplayFailed(f"{name} failed: {last_words(log)}")


def last_words(log: Path) -> str:
    """The last line of an output, at most 300 characters of it."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][-300:] if lines else "it said nothing"


@contextlib.asynccontextmanager
async def prometheus(data: Path, work: Path) -> AsyncIterator[str]:
    """A Prometheus that scrapes nothing, on the blocks of a folder; its URL."""
    config, log = work / "prometheus.yml", work / "prometheus.out"
    config.write_text("global: {}\n", encoding="utf-8")
    (port,) = free_ports(1)
    argv = [
        *find_program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={LOOKBACK}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    async with in_background(argv, log) as process:
        await until_ready(f"{url}/-/ready", process, log, "Prometheus")
        yield url


async def until_ready(url: str, process: asyncio.subprocess.Process, log: Path, name: str) -> None:
    """Wait until a server of ours answers."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_SECONDS
    while True:
        with contextlib.suppress(OSError):
            await fetch(url, within=2.0)
            return
        if process.returncode is not None or loop.time() > deadline:
            raise ReplayFailed(f"{name} did not start: {last_words(log)}")
        await asyncio.sleep(0.1)


async def query(url: str, expr: str, at_seconds: float) -> list[dict[str, Any]]:
    """An instant query; the result vector or matrix."""
    text = urllib.parse.urlencode({"query": expr, "time": f"{at_seconds:.3f}"})
    try:
        reply = json.loads(await fetch(f"{url}/api/v1/query?{text}", within=_QUERY_SECONDS))
    except (OSError, ValueError) as error:
        raise ReplayFailed(f"Prometheus did not answer {expr[:80]}: {error}") from None
    found: list[dict[str, Any]] = reply["data"]["result"]
    return found
