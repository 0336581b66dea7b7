"""promtool and Prometheus for replayed runs."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_base.prometheus import query
from cephqos_base.servers import NoAnswer
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import ENDS_WITH_PARENT, in_background, run
from cephqos_loadgen.programs import find_program, free_ports, until_answers

# How far back a query looks for a sample. Prometheus' default of five minutes would draw a line
# through every gap, because blocks made from text have no staleness markers.
LOOKBACK: Final = "5s"
LOOKBACK_SCRAPES: Final = 3  # intervals, for archives with fewer samples than one per second
NEEDED: Final = ("promtool", "prometheus")
_QUERY_SECONDS = 300.0  # for an answer
_PROMTOOL_SECONDS = 1800.0  # for a run of promtool


class ReplayFailed(CephqosError):
    """A run could not be written, or Prometheus did not answer."""


async def run_promtool(arguments: Sequence[str]) -> None:
    """Run promtool to its end; LabError with its last words."""
    argv = [*ENDS_WITH_PARENT, *find_program("promtool"), *arguments]
    done = await run(argv, within=_PROMTOOL_SECONDS, named="promtool")
    if done.returncode:
        output = done.stderr.strip() or done.stdout.strip() or "it said nothing"
        raise LabError(f"promtool failed: {output.splitlines()[-1][-300:]}")


@contextlib.asynccontextmanager
async def prometheus(
    data: Path, work: Path, *flags: str, lookback: str = LOOKBACK
) -> AsyncIterator[str]:
    """Run a Prometheus on the blocks of a folder, which scrapes nothing. Yields its URL."""
    config, log = work / "prometheus.yml", work / "prometheus.out"
    config.write_text("global: {}\n", encoding="utf-8")
    (port,) = free_ports(1)
    argv = [
        *find_program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={lookback}",
        "--log.level=warn",
        *flags,
    ]
    url = f"http://127.0.0.1:{port}"
    async with in_background(argv, log) as process:
        await until_answers(f"{url}/-/ready", process, log, "Prometheus")
        yield url


async def query_past(url: str, expr: str, at_seconds: float) -> list[dict[str, Any]]:
    """What a Prometheus on replayed runs had at that time."""
    try:
        return await query(url, expr, at_seconds, _QUERY_SECONDS)
    except NoAnswer as error:
        raise ReplayFailed(f"Prometheus did not answer {expr[:80]}: {error}") from None
