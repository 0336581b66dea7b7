"""The HTTP server: metrics, health, service discovery, recordings. The gate checks who may ask."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from cephqos_exporter.daemon import Daemon
from cephqos_exporter.flight_recorder.ring import Stamp, packed
from cephqos_exporter.scrape.exposition import OPENMETRICS_CONTENT_TYPE, TEXT_CONTENT_TYPE, Page
from cephqos_exporter.web.addresses import shown
from cephqos_exporter.web.connections import Connection, Connections, named
from cephqos_exporter.web.gate import Gate
from cephqos_exporter.web.landing import landing_page
from cephqos_exporter.web.negotiation import accepts_gzip, scrape_seconds, wants_openmetrics

if TYPE_CHECKING:  # most exporters record nothing: 0.3 MB of memory
    from cephqos_exporter.flight_recorder.recorder import Recorder
    from cephqos_exporter.web.kept import RecordRequests

log = logging.getLogger(__name__)

# Smaller pages are compressed at once, within 2 ms: to start a thread costs a tenth of that.
_GZIP_INLINE_BYTES: Final = 1 << 20

# For a client to take a whole answer of some megabytes.
ANSWER_SECONDS: Final = 60.0
# Answers are written in pieces. With TLS each write is encrypted as one, and OpenSSL keeps a buffer
# of that size as long as the connection lives.
_PIECE_BYTES: Final = 64 << 10

RECORD: Final = "/-/record"
_NOTHING_RECORDED: Final = "nothing is recorded here: --recorder.minutes=10 switches it on\n"
# Paths that are answered, beside the one for metrics.
OTHER_PATHS: Final = frozenset({"/", "/sd", "/-/healthy", "/-/ready", RECORD})


@dataclass(frozen=True, kw_only=True)
class Service:
    """What the pages need; the settings behind it may change while the server runs."""

    page: Callable[[float], Awaitable[Page]]  # of what has answered within these seconds
    daemons: Callable[[], Sequence[Daemon]]
    telemetry_path: str
    roles: Sequence[str]
    timeout: float
    timeout_offset: float
    max_requests: int
    recorder: "Recorder | None" = None


class Server:
    """Listens, and answers whom the gate lets in. `service` may be replaced at any time."""

    def __init__(self, service: Service, *, web_config: Path | None, drain_seconds: float) -> None:
        self.service = service
        self.gate = Gate(web_config)
        self._scrapes: Counter[str] = Counter()  # under way, by network
        self._record: RecordRequests | None = None
        self._draining = False
        self._drain_seconds = drain_seconds
        self._runner: web.ServerRunner | None = None

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Begin to serve on sockets that listen_on() or systemd_sockets() gave."""
        self.gate.open()
        tls = self.gate.for_new_connection if self.gate.credentials is not None else None
        connections = Connections(self._answer, tls)
        self._runner = web.ServerRunner(connections, shutdown_timeout=self._drain_seconds)
        await self._runner.setup()
        for sock in sockets:
            await web.SockSite(self._runner, sock).start()
            scheme = "https" if tls else "http"
            log.info("listening on %s://%s", scheme, shown(sock.getsockname()))

    async def drain(self) -> None:
        """Say that we are not ready, let requests under way finish, stop."""
        self._draining = True
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest, connection: Connection) -> web.StreamResponse:
        self.gate.follow()
        refusal = await self.gate.refusal(request)
        if refusal is not None:
            return refusal
        connection.let_in = True
        return await self._route(request, connection)

    async def _route(self, request: web.BaseRequest, connection: Connection) -> web.StreamResponse:
        if request.path == RECORD and request.method == "POST":
            return await self._recorded(request, connection)
        if request.method not in ("GET", "HEAD"):
            allow = {"Allow": "GET, HEAD"}
            return web.Response(status=405, text="only GET and HEAD\n", headers=allow)
        if request.path == self.service.telemetry_path:
            return await self._metrics(request, connection)
        match request.path:
            case "/-/healthy":
                return web.Response(text="healthy\n")
            case "/-/ready":
                return web.Response(
                    status=503 if self._draining else 200,
                    text="draining\n" if self._draining else "ready\n",
                )
            case path if path == RECORD or path.startswith(f"{RECORD}/"):
                return await self._recorded(request, connection)
            case "/sd":
                return web.json_response(self._targets(request))
            case "/":
                text = landing_page(self.service.telemetry_path, self.service.daemons())
                return web.Response(text=text, content_type="text/html")
        return web.Response(status=404, text="not found\n")

    async def _recorded(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.StreamResponse:
        """Keep what was recorded (POST), or show what is kept."""
        recorder = self.service.recorder
        if recorder is None:
            return web.Response(status=404, text=_NOTHING_RECORDED)
        if self._record is None:
            from cephqos_exporter.web.kept import RecordRequests

            self._record = RecordRequests()
        if request.method == "POST":
            # The request may be forwarded to other exporters, with the same certificate.
            credentials = self.gate.credentials
            to_exporters = credentials.to_equals() if credentials else None
            return await self._record.keep(request, recorder, tls=to_exporters)
        send = partial(self._send, request=request, connection=connection)
        return await self._record.show(request.path, recorder, send)

    async def _metrics(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.StreamResponse:
        """Answer a scrape. It counts as under way until the client has taken the whole answer."""
        service = self.service
        network = connection.network
        if service.max_requests and self._too_many(network):
            text = f"{self._scrapes.total()} scrapes under way already\n"
            return web.Response(status=503, text=text)
        seconds = scrape_seconds(
            request.headers.get("X-Prometheus-Scrape-Timeout-Seconds"),
            offset=service.timeout_offset,
            otherwise=service.timeout,
        )
        self._scrapes[network] += 1
        try:
            began = Stamp.now()
            page = await service.page(seconds)
            body, headers = await _written(page, request)
            if service.recorder is not None:
                compressed = "Content-Encoding" in headers
                service.recorder.take(began, page, body, compressed=compressed)
            response, _ = await self._send(body, headers, request, connection)
            return response
        finally:
            self._scrapes[network] -= 1
            if not self._scrapes[network]:
                del self._scrapes[network]

    async def _send(
        self,
        body: bytes,
        headers: Mapping[str, str],
        request: web.BaseRequest,
        connection: Connection,
    ) -> tuple[web.StreamResponse, bool]:
        """The response, and whether the client took all of it within ANSWER_SECONDS."""
        response = named(web.StreamResponse(headers=headers))
        response.content_length = len(body)
        taken = False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await response.prepare(request)
                if request.method == "GET":  # HEAD: headers only
                    for start in range(0, len(body), _PIECE_BYTES):
                        await response.write(body[start : start + _PIECE_BYTES])
            taken = True
        except TimeoutError:
            connection.cut_off("its answer is not taken")
        except ConnectionError:
            connection.cut_off("it does not wait for its answer")
        return response, taken

    def _too_many(self, network: str) -> bool:
        """Whether to refuse a scrape from this network.

        A network that has none under way may use as many places again, so that another one that
        has taken all places does not keep it out.
        """
        most = self.service.max_requests
        allowed = most if self._scrapes[network] else 2 * most
        return self._scrapes.total() >= allowed

    def _targets(self, request: web.BaseRequest) -> list[dict[str, object]]:
        daemons = self.service.daemons()
        labels = {
            "__metrics_path__": self.service.telemetry_path,
            "__scheme__": "https" if self.gate.credentials else "http",
            "__meta_cephqos_role": ",".join(self.service.roles),
            "__meta_cephqos_daemons": ",".join(daemon.name for daemon in daemons),
            "__meta_cephqos_clusters": ",".join(sorted({daemon.cluster for daemon in daemons})),
        }
        # The address by which the client calls this server. aiohttp's own may wait for the DNS.
        name = request.transport.get_extra_info("sockname") if request.transport else None
        called = request.headers.get("Host") or (shown(name) if name else "")
        return [{"targets": [called], "labels": labels}]


async def _written(page: Page, request: web.BaseRequest) -> tuple[bytes, dict[str, str]]:
    """The page as the client wants it, and the headers that say how."""
    openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    kind = OPENMETRICS_CONTENT_TYPE if openmetrics else TEXT_CONTENT_TYPE
    headers = {"Content-Type": kind, "Vary": "Accept, Accept-Encoding"}
    if accepts_gzip(request.headers.get("Accept-Encoding", "")):
        # zlib releases the interpreter's lock, so other requests do not wait for large pages.
        headers["Content-Encoding"] = "gzip"
        pieces = page.pieces(openmetrics=openmetrics)
        small = page.size < _GZIP_INLINE_BYTES
        return packed(pieces) if small else await asyncio.to_thread(packed, pieces), headers
    return page.body(openmetrics=openmetrics), headers
