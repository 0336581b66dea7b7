"""Connections of bounded number, time and noise: who sends what is not HTTP costs nobody else.

aiohttp gives a client all the time it wants to send its headers or to read its answer, and logs a
traceback for each malformed request.
"""

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)

# For the first request of a connection, from its start; for the next, from its first byte.
HEADER_SECONDS: Final = 10.0
# To take the whole answer: some megabytes.
ANSWER_SECONDS: Final = 60.0
# Of answers that are on their way, all connections together: some pages of the largest hosts.
UNSENT_BYTES: Final = 64 << 20
# Between requests: longer than any usual interval between scrapes.
IDLE_SECONDS: Final = 630.0
_LEAST_CONNECTIONS: Final = 16
_MOST_CONNECTIONS: Final = 512

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """The open connections. Where there are too many, one that has asked nothing makes room."""

    def __init__(self, handler: Handler, headers: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(handler)
        self.headers = headers  # to be sent with every answer
        self.header_seconds = HEADER_SECONDS
        self.answer_seconds = ANSWER_SECONDS
        self.unsent_bytes = UNSENT_BYTES
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = max(_LEAST_CONNECTIONS, min(_MOST_CONNECTIONS, soft // 4))
        self.most = most
        self._everyone: dict[Connection, None] = {}  # the oldest first
        self._answering: dict[Connection, None] = {}  # those who were to take one longest first

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, keepalive_timeout=IDLE_SECONDS, access_log=None)

    def opened(self, connection: "Connection") -> None:
        """Take up a connection; one that is idle gives way, of the address that has most of them.

        So a flood from one address closes its own connections and not those of Prometheus.
        """
        self._everyone[connection] = None
        if len(self._everyone) <= self.most:
            return
        idle = [one for one in self._everyone if not one.busy]
        held = Counter(one.address for one in idle)
        if held:
            address, _ = held.most_common(1)[0]
            next(one for one in idle if one.address == address).cut_off("there are too many")

    def answering(self, connection: "Connection", size: int) -> None:
        """An answer begins. Too much unsent: who took nothing for longest loses his, as above."""
        connection.unsent = size
        self._answering[connection] = None
        while sum(one.unsent for one in self._answering) > self.unsent_bytes:
            others = [one for one in self._answering if one is not connection]
            held: Counter[str] = Counter()
            for one in others:
                held[one.address] += one.unsent
            if not held:
                return
            address, _ = held.most_common(1)[0]
            slow = next(one for one in others if one.address == address)
            self.answered(slow)
            slow.cut_off("too many answers are not taken")

    def answered(self, connection: "Connection") -> None:
        """Its answer was sent, or never will be."""
        self._answering.pop(connection, None)

    def closed(self, connection: "Connection") -> None:
        self._everyone.pop(connection, None)
        self._answering.pop(connection, None)


class Connection(RequestHandler):
    """One connection: headers and answers have a deadline, errors take one line of the log."""

    __slots__ = ("_connections", "_timer", "address", "busy", "unsent")

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(connections, **settings)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self.busy = False  # a request was read and is not answered yet
        self.unsent = 0  # bytes of the answer under way
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self._start_timer(self._connections.header_seconds)
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.busy and self._timer is None:  # the first bytes of a further request
            self._start_timer(self._connections.header_seconds)
        super().data_received(data)

    def begin(self) -> None:
        """A whole request has come."""
        self.busy = True
        self._stop_timer()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        for name, value in self._connections.headers().items():
            resp.headers.setdefault(name, value)
        self._start_timer(self._connections.answer_seconds)
        body = getattr(resp, "body", None)
        self._connections.answering(self, len(body) if isinstance(body, bytes) else 0)
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.busy = False
            self._connections.answered(self)
            self._stop_timer()
            if isinstance(resp, web.Response):
                resp.body = None  # aiohttp keeps the last answer of each connection

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """An answer without details; one line of the log, a traceback only for our own defects."""
        if status >= 500:
            log.error("a request from %s failed", self.address, exc_info=exc)
        else:
            log.info("a request from %s that is no HTTP: %s", self.address, type(exc).__name__)
        response = web.Response(status=status, text=f"{status}\n")
        response.force_close()
        return response

    def cut_off(self, why: str) -> None:
        """Close at once, whatever was sent or not taken."""
        log.info("closed a connection from %s: %s", self.address, why)
        self._connections.closed(self)
        transport = self.transport
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self.cut_off, f"nothing whole within {seconds:g} s")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
