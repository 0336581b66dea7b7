"""The HTTP server: metrics, health, service discovery, behind TLS and authentication if
configured."""

import asyncio
import logging
import socket
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from cephqos_base.errors import MISSING, ConfigError, Described
from cephqos_exporter.daemon import Daemon
from cephqos_exporter.recorder.recorder import Recorder
from cephqos_exporter.recorder.ring import Stamp
from cephqos_exporter.scrape.exposition import OPENMETRICS_CONTENT_TYPE, TEXT_CONTENT_TYPE, Page
from cephqos_exporter.web.addresses import shown
from cephqos_exporter.web.auth import BasicAuth, RateLimiter, TooManyFailures
from cephqos_exporter.web.config import WebConfig, load
from cephqos_exporter.web.connections import Connection, Connections
from cephqos_exporter.web.kept import RECORD, RecordRequests
from cephqos_exporter.web.landing import landing_page
from cephqos_exporter.web.negotiation import accepts_gzip, scrape_seconds, wants_openmetrics
from cephqos_exporter.web.tls import Credentials, has_ended, names_of

log = logging.getLogger(__name__)

# Fast and nearly as small: the text repeats itself so much that level 1 takes 95 % off.
_GZIP_LEVEL: Final = 1
_GZIP_INLINE_BYTES: Final = 1 << 20  # 2 ms; a thread costs as much as a tenth of that
_GZIP_WINDOW: Final = 31  # 15 bits, and 16 for the gzip header

# To take the whole answer: some megabytes.
ANSWER_SECONDS: Final = 60.0
# What is written at once. Behind TLS a whole page would be encrypted at once, and OpenSSL keeps a
# buffer of that size for as long as the connection lives.
_PIECE_BYTES: Final = 64 << 10

# A configuration that could not be read is tried again so often: a file may be readable now, or
# whole, and look as before.
RETRY_SECONDS: Final = 5.0

# What is answered beside the metrics.
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
    max_timeout: float
    max_requests: int
    recorder: Recorder | None = None


class Server:
    """Listens, authenticates, answers. `service` may be replaced at any time."""

    def __init__(self, service: Service, *, web_config: Path | None, drain_seconds: float) -> None:
        self.service = service
        self._path = web_config
        self._mark: object = None
        self._retry_at: float | None = None  # of the monotonic clock, after a failure
        self._complaint = ""
        self._config = WebConfig()
        self._auth = BasicAuth({})
        self._limiter = RateLimiter(self._config.rate_limit)
        self._credentials: Credentials | None = None
        self._scrapes: Counter[str] = Counter()  # under way, by network
        self._record = RecordRequests()
        self._draining = False
        self._serving = False
        self._drain_seconds = drain_seconds
        self._connections: Connections | None = None
        self._runner: web.ServerRunner | None = None
        self.reload_web_config()

    def reload_web_config(self) -> None:
        """Take the web configuration file's present content, or raise and keep what there was."""
        if self._path is None:
            return
        mark = _mark(self._path)
        config = load(self._path)
        marks = (mark, *map(_mark, _tls_files(config)))  # before they are read, not after
        if self._serving:
            self._refuse_less(config)
        self._take_tls(config)
        if (config.users, config.rate_limit) != (self._config.users, self._config.rate_limit):
            self._auth = BasicAuth(config.users, config.rate_limit)
        if config.rate_limit != self._config.rate_limit:
            self._limiter = RateLimiter(config.rate_limit)
        self._config = config
        self._mark = marks
        self._retry_at = None
        self._complaint = ""

    def _refuse_less(self, config: WebConfig) -> None:
        """What protects ends with a restart only: a file that is being written lacks its end."""
        assert self._path is not None  # noqa: S101 - only called where there is such a file
        for key, before, after, allowed in (
            ("basic_auth_users", self._config.users, config.users, "at least one user"),
            ("tls_server_config.client_allowed_sans", _sans(self._config), _sans(config), "names"),
        ):
            if before and not after:
                allowed = f"{allowed}, until a restart"
                raise ConfigError(where=self._path, key=key, found=MISSING, allowed=allowed)

    def _take_tls(self, config: WebConfig) -> None:
        """Serve new connections with the certificates and the client CA as they are now.

        Whether and how clients are asked for certificates takes a restart to change.
        """
        assert self._path is not None  # noqa: S101 - only called where there is such a file
        fresh = Credentials(config.tls, self._path) if config.tls is not None else None
        if self._serving and _manner(config) != _manner(self._config):
            found = Described("TLS switched on or off, or another client_auth_type or version")
            allowed = "the same ones until a restart"
            raise ConfigError(
                where=self._path, key="tls_server_config", found=found, allowed=allowed
            )
        self._credentials = fresh

    def _for_new_connection(self) -> Credentials:
        """A renewed certificate is for a connection that begins already."""
        self._follow_web_config()
        assert self._credentials is not None  # noqa: S101 - TLS is not switched off while it serves
        return self._credentials

    def _follow_web_config(self) -> None:
        """As exporter-toolkit does, notice a changed file without a reload: certificates too."""
        if self._path is None:
            return
        retry = self._retry_at is not None and time.monotonic() >= self._retry_at
        if self._mark == self._marks() and not retry:
            return
        try:
            self.reload_web_config()
        except ConfigError as exc:
            self._mark = self._marks()
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if str(exc) != self._complaint:
                self._complaint = str(exc)
                log.error("kept the web configuration in force: %s", exc)

    def _marks(self) -> tuple[object, ...]:
        assert self._path is not None  # noqa: S101 - only called where there is such a file
        return tuple(map(_mark, (self._path, *_tls_files(self._config))))

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Begin to serve on sockets that listen_on() or systemd_sockets() gave."""
        self._serving = True
        tls = self._for_new_connection if self._credentials is not None else None
        self._connections = Connections(self._answer, lambda: self._config.headers, tls)
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=self._drain_seconds)
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
        self._follow_web_config()
        refusal = await self._refusal(request, connection)
        if refusal is not None:
            return refusal
        connection.let_in = True
        return await self._route(request, connection)

    async def _refusal(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.Response | None:
        refusal = self._refusal_of_certificate(connection)
        if refusal is not None:
            return refusal
        if self._config.users:
            try:
                header = request.headers.get("Authorization")
                if not await self._auth.allows(header, connection.address):
                    headers = {"WWW-Authenticate": "Basic"}
                    return web.Response(status=401, text="Unauthorized\n", headers=headers)
            except TooManyFailures:
                return web.Response(status=429, text="too many failures\n")
        if not self._limiter.allows():
            return web.Response(status=429, text="too many requests\n")
        return None

    def _refusal_of_certificate(self, connection: Connection) -> web.Response | None:
        tls = self._config.tls
        if tls is None or self._credentials is None or not self._credentials.authority:
            return None
        then = connection.credentials
        if then is None or then.authority != self._credentials.authority:
            return _no_more("the client CA was replaced: connect again\n")
        transport = connection.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        if has_ended(certificate):
            return _no_more("the client certificate has expired\n")
        if tls.client_allowed_sans and not names_of(certificate) & set(tls.client_allowed_sans):
            return web.Response(status=403, text="no allowed name in the certificate\n")
        return None

    async def _route(self, request: web.BaseRequest, connection: Connection) -> web.StreamResponse:
        recorder = self.service.recorder
        if request.path == RECORD and request.method == "POST":
            tls = self._credentials.to_equals() if self._credentials else None
            return await self._record.keep(request, recorder, tls)
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
                answer = await self._record.show(path, recorder)
                if isinstance(answer, bytes):
                    headers = {"Content-Type": "application/octet-stream"}
                    return await self._send(answer, headers, request, connection)
                return answer
            case "/sd":
                return web.json_response(self._targets(request))
            case "/":
                text = landing_page(self.service.telemetry_path, self.service.daemons())
                return web.Response(text=text, content_type="text/html")
        return web.Response(status=404, text="not found\n")

    async def _metrics(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.StreamResponse:
        """A scrape is under way until its answer is taken, so that these are bounded as well."""
        service = self.service
        network = connection.network
        if service.max_requests and self._too_many(network):
            text = f"{self._scrapes.total()} scrapes under way already\n"
            return web.Response(status=503, text=text)
        seconds = scrape_seconds(
            request.headers.get("X-Prometheus-Scrape-Timeout-Seconds"),
            offset=service.timeout_offset,
            otherwise=service.timeout,
            most=service.max_timeout,
        )
        self._scrapes[network] += 1
        try:
            began = Stamp.now()
            page = await service.page(seconds)
            body, headers = await _written(page, request)
            if service.recorder is not None:
                compressed = "Content-Encoding" in headers
                service.recorder.take(began, page, body, compressed=compressed)
            return await self._send(body, headers, request, connection)
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
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        response.content_length = len(body)
        assert self._connections is not None  # noqa: S101 - a request came over one
        self._connections.dressed(response)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await response.prepare(request)
                for start in range(0, len(body), _PIECE_BYTES) if request.method == "GET" else ():
                    await response.write(body[start : start + _PIECE_BYTES])
        except TimeoutError:
            connection.cut_off("its answer is not taken")
        except ConnectionError:
            connection.cut_off("it does not wait for its answer")
        return response

    def _too_many(self, network: str) -> bool:
        """One who has no scrape under way is answered even if others have taken all places."""
        most = self.service.max_requests
        total = self._scrapes.total()
        return total >= (most if self._scrapes[network] else 2 * most)

    def _targets(self, request: web.BaseRequest) -> list[dict[str, object]]:
        daemons = self.service.daemons()
        labels = {
            "__metrics_path__": self.service.telemetry_path,
            "__scheme__": "https" if self._credentials else "http",
            "__meta_cephqos_role": ",".join(self.service.roles),
            "__meta_cephqos_daemons": ",".join(daemon.name for daemon in daemons),
            "__meta_cephqos_clusters": ",".join(sorted({daemon.cluster for daemon in daemons})),
        }
        return [{"targets": [_called(request)], "labels": labels}]


def _no_more(text: str) -> web.Response:
    """The last answer of a connection that is not let in any more."""
    response = web.Response(status=403, text=text)
    response.force_close()
    return response


def _called(request: web.BaseRequest) -> str:
    """What the client calls this server; aiohttp may ask the DNS for that, which may take long."""
    name = request.transport.get_extra_info("sockname") if request.transport else None
    return request.headers.get("Host") or (shown(name) if name else "")


async def _written(page: Page, request: web.BaseRequest) -> tuple[bytes, dict[str, str]]:
    """The page as the client wants it, and the headers that say how."""
    openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    body = page.body(openmetrics=openmetrics)
    kind = OPENMETRICS_CONTENT_TYPE if openmetrics else TEXT_CONTENT_TYPE
    headers = {"Content-Type": kind, "Vary": "Accept, Accept-Encoding"}
    if accepts_gzip(request.headers.get("Accept-Encoding", "")):
        # zlib releases the interpreter's lock, so other requests do not wait for large pages.
        small = len(body) < _GZIP_INLINE_BYTES
        body = _gzip(body) if small else await asyncio.to_thread(_gzip, body)
        headers["Content-Encoding"] = "gzip"
    return body, headers


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(body) + compressor.flush()


def _sans(config: WebConfig) -> Sequence[str]:
    return config.tls.client_allowed_sans if config.tls is not None else ()


def _manner(config: WebConfig) -> object:
    """What of a TLS configuration cannot change while it serves."""
    tls = config.tls
    return tls and (tls.client_auth_type, tls.min_version, tls.max_version)


def _tls_files(config: WebConfig) -> list[Path]:
    """The files that the configuration names; what they hold changes without it."""
    tls = config.tls
    names = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls is not None else ()
    return [Path(name) for name in names if name]


def _mark(path: Path) -> object:
    """Changes when a file does; secrets mounted by Kubernetes change their link's target."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
