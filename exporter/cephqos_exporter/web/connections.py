"""Connections of bounded number, time and size: a client that sends no HTTP costs no other client.

aiohttp gives a client all the time it wants to send its headers, and logs a traceback for each
malformed request. What is left to a firewall or a proxy is in docs/internals/hardening.md.
"""

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from aiohttp import web

from cephqos_exporter.web.network import network_of
from cephqos_exporter.web.tls import Credentials

log = logging.getLogger(__name__)

# For the first request of a connection, TLS handshake included; for the next, from its first byte.
HEADER_SECONDS: Final = 10.0
# Of a request, body included: Prometheus sends less than 1 KiB.
# Some versions of aiohttp keep headers, trailers and what follows an upgrade without bound.
REQUEST_BYTES: Final = 32 << 10
# Of an answer that waits for a client to take it, in each connection.
_BUFFER_BYTES: Final = 64 << 10
# Between requests: longer than any usual interval between scrapes.
_IDLE_SECONDS: Final = 630.0
_LEAST_CONNECTIONS: Final = 16
_MOST_CONNECTIONS: Final = 512

Answer = Callable[[web.BaseRequest, "Connection"], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """The open connections. If there are too many, an idle one is closed."""

    def __init__(
        self,
        answer: Answer,
        credentials: Callable[[], Credentials] | None = None,
    ) -> None:
        super().__init__(self._handle)
        self._answer = answer
        self.credentials = credentials  # for a connection that begins, if it is to have TLS
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = max(_LEAST_CONNECTIONS, min(_MOST_CONNECTIONS, soft // 4))
        self._open_connections: dict[Connection, None] = {}  # the oldest first

    def __call__(self) -> web.RequestHandler:
        # A body is never read here, so it must not be unpacked: 10 MB can unpack to 10 GB.
        loop = asyncio.get_running_loop()
        settings = {"loop": loop, "keepalive_timeout": _IDLE_SECONDS, "access_log": None}
        return Connection(self, auto_decompress=False, **settings)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast(Connection, request.protocol)
        connection.begin()
        try:
            response = await self._answer(request, connection)
        finally:
            more = connection.end(request)
        if more:
            response.force_close()
        return named(response)

    def opened(self, newest: "Connection") -> None:
        """Count a new connection. If there are too many, close an idle one.

        It is one of the network with most of them: so a flood from one address closes its own
        connections and not those of Prometheus. Of equal networks, it is the oldest connection that
        was never let in.
        """
        self._open_connections[newest] = None
        idle = [one for one in self._open_connections if not one.busy]
        if len(self._open_connections) > self.most and idle:
            held = Counter(one.network for one in idle)
            first = max(idle, key=lambda one: (held[one.network], not one.let_in))
            first.cut_off("there are too many")

    def closed(self, connection: "Connection") -> None:
        self._open_connections.pop(connection, None)

    def pre_shutdown(self) -> None:
        for one in [one for one in self._open_connections if one.transport is None]:
            one.cut_off("no TLS handshake before the end")
        super().pre_shutdown()


class Connection(web.RequestHandler):
    """One connection: requests have a deadline and a largest size, errors take one line of log."""

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(connections, **settings)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._socket: asyncio.Transport | None = None  # beneath TLS, until there is TLS
        self._handshake: asyncio.Task[None] | None = None
        self._early = b""  # what came with the end of the handshake
        self._received = 0  # bytes since the last request was answered
        self.busy = False  # a request was read and is not answered yet
        self.let_in = False  # a request of it had the right to be answered
        self.address = self.network = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self.network = network_of(self.address)
        self._socket = cast(asyncio.Transport, transport)
        self._start_timer()
        self._connections.opened(self)
        if self._connections.credentials is None:
            super().connection_made(transport)
            return
        self._socket.pause_reading()
        credentials = self._connections.credentials()
        self._handshake = asyncio.create_task(self._shake_hands(self._socket, credentials))

    async def _shake_hands(self, beneath: asyncio.Transport, credentials: Credentials) -> None:
        """Begin TLS. As a task of its own, so that handshakes count as connections."""
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(beneath, self, credentials.context, server_side=True)
        except OSError as exc:
            log.info("no TLS with %s: %s", self.address, exc)
            transport = None
        if transport is None:  # it failed, or the client went
            self._stop_timer()
            self._connections.closed(self)
            return
        self._socket = transport
        transport.set_write_buffer_limits(_BUFFER_BYTES)
        super().connection_made(transport)
        if self._early:
            self.data_received(self._early)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            self._early += data
            return
        self._received += len(data)
        if self._received > REQUEST_BYTES:
            self.cut_off("its request is too large")
            return
        if not self.busy and self._timer is None:  # the first bytes of a further request
            self._start_timer()
        super().data_received(data)

    def begin(self) -> None:
        """A whole request has come."""
        self.busy = True
        self._stop_timer()

    def end(self, request: web.BaseRequest) -> bool:
        """The request is answered. True if more bytes than the request have come: then the
        connection is closed. A scraper waits for the answer, and a flood would fill the memory.
        """
        more = self._received > _head_bytes(request)
        self.busy = False
        self._received = 0
        return more

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
        response = named(web.Response(status=status, text=f"{status}\n"))
        response.force_close()
        return response

    def cut_off(self, why: str) -> None:
        """Close at once, whatever was sent or not taken."""
        self._connections.closed(self)
        self._stop_timer()
        if self._socket is None:
            return
        log.info("closed a connection from %s: %s", self.address, why)
        self.force_close()
        self._socket.abort()

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        why = f"no whole request within {HEADER_SECONDS:g} s"
        self._timer = loop.call_later(HEADER_SECONDS, self.cut_off, why)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def named(response: web.StreamResponse) -> web.StreamResponse:
    """The same response: it names this server, and not which versions of what it is made of."""
    response.headers.setdefault("Server", "cephqos")
    return response


def _head_bytes(request: web.BaseRequest) -> int:
    """How long the request line and headers are, as clients write them."""
    headers = sum(len(name) + len(value) + len(": \r\n") for name, value in request.raw_headers)
    return len(f"{request.method} {request.raw_path} HTTP/1.1\r\n\r\n") + headers
