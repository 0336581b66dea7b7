"""Tells Grafana (annotations) and Loki (log lines) when phases change, where these are configured.

Nobody waits for them: what cannot be delivered is counted and recorded, the run goes on.
"""

import asyncio
import contextlib
import os
import time
from types import TracebackType
from typing import Any, Self

import aiohttp

_TIMEOUT = 5.0
_QUEUE = 1000
# The annotations API wants a service account's token; a command line would show it to everybody.
TOKEN_VARIABLE = "CEPHQOS_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable


def annotation(event: str, details: dict[str, Any], now: float) -> dict[str, Any]:
    """The body for Grafana's POST /api/annotations; times in milliseconds."""
    tags = ["cephqos", event, *(str(v) for k, v in details.items() if k in ("run", "phase"))]
    text = " ".join(f"{key}={value}" for key, value in details.items())
    return {"time": round(now * 1000), "tags": tags, "text": f"{event} {text}".strip()}


def push(event: str, details: dict[str, Any], now: float) -> dict[str, Any]:
    """The body for Loki's POST /loki/api/v1/push; few labels, the rest in the line."""
    labels = {"job": "cephqos", "run": str(details.get("run", ""))}
    line = " ".join([f"event={event}", *(f"{key}={value}" for key, value in details.items())])
    return {"streams": [{"stream": labels, "values": [[str(int(now * 1e9)), line]]}]}


class Notifier:
    """Sends in the background."""

    def __init__(self, grafana: str | None, loki: str | None, run: str) -> None:
        self._targets = []
        token = os.environ.get(TOKEN_VARIABLE)
        if grafana:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            self._targets.append((f"{grafana.rstrip('/')}/api/annotations", annotation, headers))
        if loki:
            self._targets.append((f"{loki.rstrip('/')}/loki/api/v1/push", push, {}))
        self._run = run
        self._queue: asyncio.Queue[tuple[str, dict[str, Any], float]] = asyncio.Queue(_QUEUE)
        self._task: asyncio.Task[None] | None = None
        self.sent = 0
        self.failed = 0
        self.last_error = ""

    def __call__(self, event: str, **details: Any) -> None:
        if self._targets:
            with contextlib.suppress(asyncio.QueueFull):
                self._queue.put_nowait((event, {"run": self._run, **details}, time.time()))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT):
                await self._queue.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self) -> None:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                event, details, now = await self._queue.get()
                for url, body, headers in self._targets:
                    try:
                        async with session.post(
                            url, json=body(event, details, now), headers=headers
                        ) as response:
                            response.raise_for_status()
                        self.sent += 1
                    except (aiohttp.ClientError, TimeoutError) as error:
                        self.failed += 1
                        self.last_error = f"{url}: {error}"
                self._queue.task_done()
