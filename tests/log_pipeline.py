"""A log pipeline whose parts are stopped and killed, and whose Loki is asked what it has."""

import contextlib
import json
import os
import signal
import time
import urllib.parse
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Any, Final

from cephqos_base.servers import fetch
from cephqos_stack.logs import LogPipeline

_PAGE: Final = 5000  # entries that Loki gives at once


class TriedPipeline(LogPipeline):
    """As the demo has it; stopping, killing and asking are for tests."""

    async def stop_loki(self, *, kill: bool = False) -> None:
        await _stop(self._loki, self._loki_process if kill else None)

    async def stop_collector(self, *, kill: bool = False) -> None:
        await _stop(self._collector, self._collector_process if kill else None)

    async def count(self, selector: str, window: str = "6h") -> int:
        """How many entries a selector with its filters finds."""
        found = await self.query(f"sum(count_over_time({selector}[{window}]))")
        return int(found[0]["value"][1]) if found else 0

    async def query(self, expr: str) -> list[dict[str, Any]]:
        """An instant query; the result vector."""
        return await self._get("query", {"query": expr, "time": f"{time.time() + 1:.3f}"})

    async def lines(self, selector: str) -> list[tuple[int, dict[str, str], str]]:
        """Time in nanoseconds, labels and text of the last hours' entries, in order of time."""
        found: list[tuple[int, dict[str, str], str]] = []
        start = int((time.time() - 6 * 3600) * 1e9)
        while True:
            wanted = {"query": selector, "start": str(start), "limit": str(_PAGE)}
            streams = await self._get("query_range", wanted | {"direction": "forward"})
            page = [(int(at), s["stream"], text) for s in streams for at, text in s["values"]]
            found += sorted(page, key=lambda entry: entry[0])
            if len(page) < _PAGE:
                return found
            start = found[-1][0] + 1

    async def _get(self, what: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        text = urllib.parse.urlencode(parameters)
        reply = json.loads(await fetch(f"{self.loki_url}/loki/api/v1/{what}?{text}", within=30))
        found: list[dict[str, Any]] = reply["data"]["result"]
        return found


async def _stop(running: contextlib.AsyncExitStack, kill: Process | None) -> None:
    if kill is not None and kill.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(kill.pid, signal.SIGKILL)
        await kill.wait()
    await running.aclose()
