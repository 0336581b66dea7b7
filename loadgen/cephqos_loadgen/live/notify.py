"""Sends events of a run to Grafana as annotations, and to Loki as log lines.

The run does not wait for them: each receiver has a queue. What cannot be delivered is counted and
recorded. An event has a name, details and a time: ("repeat_started", {"repeat": 1}, 1.7e9).
"""

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from cephqos_base.servers import Address, HttpServer, NoAnswer

_TIMEOUT = 5.0  # seconds for an answer
_QUEUE_EVENTS = 1000
# At the end of a run, receivers have so long to take what is in their queues.
_LAST_SECONDS = 2.0
# The annotations API wants a service account's token; a command line would show it to everybody.
TOKEN_VARIABLE = "CEPHQOS_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable

ANNOTATIONS = "/api/annotations"
PUSH = "/loki/api/v1/push"

_Event = tuple[str, dict[str, Any], float]
Body = Callable[[str, dict[str, Any], float], dict[str, Any]]


def with_token(grafana: Address) -> Address:
    """With the token of the environment, if it is set, instead of a password in the URL."""
    return grafana.with_token(os.environ.get(TOKEN_VARIABLE, ""))


def annotation(event: str, details: dict[str, Any], now: float, cluster: str) -> dict[str, Any]:
    """The body for Grafana's POST /api/annotations; times in milliseconds. Dashboards show those
    that have the tags `cephqos` and the cluster."""
    named = (str(details[key]) for key in details if key in ("run", "phase"))
    tags = ["cephqos", cluster, event, *named]
    return {"time": round(now * 1000), "tags": tags, "text": f"{event} {_logfmt(details)}".strip()}


def push(event: str, details: dict[str, Any], now: float, cluster: str) -> dict[str, Any]:
    """The body for Loki's POST /loki/api/v1/push, labelled as the collector labels events."""
    severity = "error" if details.get("error") else "info"
    labels = {"cluster": cluster, "log": "run", "severity": severity}
    metadata = {key: str(details[key]) for key in ("run", "phase") if details.get(key)}
    line = json.dumps({"time": now, "event": event, **details}, default=str)
    value = [str(int(now * 1e9)), line, {"event": event, **metadata}]  # in nanoseconds
    return {"streams": [{"stream": labels, "values": [value]}]}


def _logfmt(details: Mapping[str, Any]) -> str:
    """As in `phase=client error="no space left"`."""
    return " ".join(f"{key}={_quoted(str(value))}" for key, value in details.items())


def _quoted(text: str) -> str:
    """In quotation marks, if it would not be read as one word."""
    return text if re.fullmatch(r'[^\s="]+', text) else json.dumps(text)


class _Target:
    """One receiver with its queue. `body` makes what it is sent of an event."""

    def __init__(self, address: Address, body: Body) -> None:
        self.body = body
        self._server = HttpServer(address, within=_TIMEOUT)
        self.queue: asyncio.Queue[_Event] = asyncio.Queue(_QUEUE_EVENTS)
        self.sent = 0
        self.failed = 0
        self.last_error = ""

    def put(self, event: _Event) -> None:
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            self.failed += 1
            self.last_error = f"{self._server.shown}: {_QUEUE_EVENTS} events wait already"

    async def run(self) -> None:
        """Until cancelled."""
        async with self._server:
            while True:
                event = await self.queue.get()
                try:
                    await self._send(event)
                finally:
                    self.queue.task_done()

    async def _send(self, event: _Event) -> None:
        try:
            answer = await self._server.ask("POST", json=self.body(*event))
            if answer.status >= 400:
                raise NoAnswer(f"HTTP status {answer.status}")
            self.sent += 1
        except NoAnswer as error:
            self.failed += 1
            self.last_error = f"{self._server.shown}: {error}"
        except asyncio.CancelledError:
            self.failed += 1
            self.last_error = f"{self._server.shown}: no answer before the run ended"
            raise


class Notifier:
    """Sends in the background. `cluster` is its fsid, once it is known."""

    def __init__(self, grafana: Address | None, loki: Address | None, run: str) -> None:
        self.cluster = "unknown"
        self._targets: list[_Target] = []
        if grafana:
            address = with_token(grafana).below(ANNOTATIONS)
            self._targets.append(_Target(address, self._body(annotation)))
        if loki:
            self._targets.append(_Target(loki.below(PUSH), self._body(push)))
        self._run = run
        self._tasks: list[asyncio.Task[None]] = []

    def _body(self, made: Callable[[str, dict[str, Any], float, str], dict[str, Any]]) -> Body:
        return lambda event, details, now: made(event, details, now, self.cluster)

    def __call__(self, event: str, **details: Any) -> None:
        for target in self._targets:
            target.put((event, {"run": self._run, **details}, time.time()))

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(target.run()) for target in self._targets]
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await asyncio.gather(*(target.queue.join() for target in self._targets))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for target in self._targets:
            target.failed += target.queue.qsize()  # these were never sent

    @property
    def sent(self) -> int:
        return sum(target.sent for target in self._targets)

    @property
    def failed(self) -> int:
        return sum(target.failed for target in self._targets)

    @property
    def last_error(self) -> str:
        return "; ".join(target.last_error for target in self._targets if target.last_error)
