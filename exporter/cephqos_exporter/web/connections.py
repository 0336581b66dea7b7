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

from cephqos_exporter.web.auth import RateLimiters
from cephqos_exporter.web.config import RateLimit
from cephqos_exporter.web.handshakes import Handshake
from cephqos_exporter.web.network import network_of
from cephqos_exporter.web.pieces import PIECE_BYTES, Pieces
from cephqos_exporter.web.wire import Wire

log = logging.getLogger(__name__)

# For the first request of a connection, from its start; for the next, from its first byte.
HEADER_SECONDS: Final = 10.0
# To take the whole answer: some megabytes.
ANSWER_SECONDS: Final = 60.0
# Of answers that are on their way, all connections together: some pages of the largest hosts.
UNSENT_BYTES: Final = 64 << 20
# Of a request, body included, to the beginning of the next: Prometheus sends less than 1 KiB.
# Some versions of aiohttp keep headers, trailers and what follows an upgrade without bound.
REQUEST_BYTES: Final = 32 << 10
# The same as TLS records, which add little.
TLS_BYTES: Final = 40 << 10
# Of an answer behind TLS, beside those that are counted.
_BUFFER_BYTES: Final = 64 << 10
# Requests that came before the first of them was answered. Nobody who scrapes sends them so.
REQUESTS_AT_ONCE: Final = 100
# TLS handshakes of one address: each takes 0.5 ms of CPU, and some a new context besides.
HANDSHAKES: Final = RateLimit(interval=0.01, burst=500)
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
        self._everyone: dict[Connection | Handshake, None] = {}  # the oldest first
        self._handshakes: dict[int, Handshake] = {}  # by descriptor
        self._begun = RateLimiters(HANDSHAKES)
        self._answering: dict[Connection, None] = {}  # those who were to take one longest first

    def __call__(self) -> RequestHandler:
        # Nobody reads a body here, so nobody shall unpack one: 10 MB can unpack to 10 GB.
        settings = {"keepalive_timeout": IDLE_SECONDS, "access_log": None, "auto_decompress": False}
        return Connection(self, loop=self._loop, **settings)

    def welcomes(self, network: str) -> bool:
        """Whether a TLS handshake may begin; a client that scrapes begins one and keeps it."""
        return self._begun.of(network).allows()

    def accepted(self, handshake: Handshake) -> None:
        """Take up a connection that has TLS before it; it counts as an idle one."""
        self._shaken(handshake.descriptor)  # of one that failed
        self._handshakes[handshake.descriptor] = handshake
        self._take_up(handshake)

    def gave_up(self, handshake: Handshake) -> None:
        """A handshake came to nothing."""
        self._everyone.pop(handshake, None)
        if self._handshakes.get(handshake.descriptor) is handshake:
            del self._handshakes[handshake.descriptor]

    def _shaken(self, descriptor: int) -> Wire | None:
        handshake = self._handshakes.pop(descriptor, None)
        if handshake is None:
            return None
        self._everyone.pop(handshake, None)
        return handshake.end()

    def opened(self, connection: "Connection", descriptor: int) -> Wire | None:
        """Take up a connection; what is beneath TLS, if it had a handshake."""
        wire = self._shaken(descriptor)
        self._take_up(connection)
        return wire

    def _take_up(self, newest: "Connection | Handshake") -> None:
        """One that is idle gives way, of the network that has most of them.

        So a flood from one address closes its own connections and not those of Prometheus. A flood
        from many closes those first that were never let in, the oldest first.
        """
        self._everyone[newest] = None
        if len(self._everyone) <= self.most:
            return
        for handshake in [one for one in self._handshakes.values() if one.over]:
            self._shaken(handshake.descriptor)
        idle = [one for one in self._everyone if not one.busy]
        if len(self._everyone) <= self.most or not idle:
            return
        held = Counter(one.network for one in idle)
        most = max(held.values())
        candidates = (one for one in idle if held[one.network] == most)
        min(candidates, key=lambda one: one.let_in).cut_off("there are too many")

    def answering(self, connection: "Connection", size: int) -> None:
        """An answer begins. Too much unsent: who took nothing for longest loses his, as above."""
        connection.unsent = size
        self._answering[connection] = None
        while sum(one.unsent for one in self._answering) > self.unsent_bytes:
            others = [one for one in self._answering if one is not connection]
            held: Counter[str] = Counter()
            for one in others:
                held[one.network] += one.unsent
            if not held:
                return
            network, _ = held.most_common(1)[0]
            slow = next(one for one in others if one.network == network)
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

    __slots__ = (
        *("_connections", "_received", "_timer", "_wire"),
        *("address", "busy", "let_in", "network", "unsent"),
    )

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(connections, **settings)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._wire: Wire | None = None  # behind TLS
        self.busy = False  # a request was read and is not answered yet
        self.let_in = False  # a request of it had the right to be answered
        self.unsent = 0  # bytes of the answer under way
        self._received = 0  # bytes since the last request began to be answered
        self.address = self.network = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self.network = network_of(self.address)
        self._start_timer(self._connections.header_seconds)
        sock = transport.get_extra_info("socket")
        self._wire = self._connections.opened(self, sock.fileno() if sock is not None else -1)
        if self._wire is not None and isinstance(transport, asyncio.Transport):
            self._wire.allow(TLS_BYTES)
            transport.set_write_buffer_limits(_BUFFER_BYTES)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        if self._wire is not None:
            self._wire.release()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > REQUEST_BYTES:
            self.cut_off("its request is too large")
            return
        if not self.busy and self._timer is None:  # the first bytes of a further request
            self._start_timer(self._connections.header_seconds)
        super().data_received(data)
        if len(self._messages) > REQUESTS_AT_ONCE:
            self._messages.clear()
            self.cut_off("too many requests at once")

    def begin(self) -> None:
        """A whole request has come."""
        self.busy = True
        self._received = 0
        if self._wire is not None:
            self._wire.allow(TLS_BYTES)
        self._stop_timer()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        for name, value in self._connections.headers().items():
            resp.headers.setdefault(name, value)
        resp.headers.setdefault("Server", "cephqos")  # and not which versions of what
        self._start_timer(self._connections.answer_seconds)
        body = getattr(resp, "body", None)
        size = len(body) if isinstance(body, bytes) and request.method != "HEAD" else 0
        self._connections.answering(self, size)
        sent = 0
        if self._wire is not None:
            sent = self._wire.sent
            if size > PIECE_BYTES and isinstance(resp, web.Response) and isinstance(body, bytes):
                resp.body = Pieces(body)
        try:
            finished = await super().finish_response(request, resp, start_time)
            if self._wire is not None:  # it is longer in TLS records: this much will be sent
                await self._wire.sent_up_to(sent + size)
            return finished
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
        self._connections.closed(self)
        transport = self.transport
        if transport is None:
            return
        log.info("closed a connection from %s: %s", self.address, why)
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
