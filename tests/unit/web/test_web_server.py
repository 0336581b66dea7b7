"""The HTTP server, asked over real sockets: pages, formats, TLS, authentication, limits."""

import asyncio
import base64
import gzip
import inspect
import os
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import bcrypt
import pytest
from aiohttp import web

from cephqos_base.errors import ConfigError
from cephqos_exporter.daemon import Daemon
from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render
from cephqos_exporter.web.addresses import listen_on
from cephqos_exporter.web.auth import BasicAuth, RateLimiter
from cephqos_exporter.web.config import RateLimit
from cephqos_exporter.web.connections import Connection, Connections
from cephqos_exporter.web.server import Server, Service

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


class Scrapes:
    """Stands for the scraper: a page of one sample, and what was asked of it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.hold: asyncio.Event | None = None
        self.samples = 1

    async def page(self, seconds: float) -> Page:
        self.seconds.append(seconds)
        if self.hold is not None:
            await self.hold.wait()
        page = Page()
        labels = [LabelText("")] + [LabelText(f'n="{i}"') for i in range(1, self.samples)]
        family = Family("x_total", "counter", "Help.", [("", text, 1) for text in labels])
        page.add(render([family]))
        return page

    async def large(self) -> int:
        """Let each page be the same one, of 11 MB, which no socket buffers take; gives its size."""
        self.samples = 500_000
        page = await self.page(1)  # a busy machine takes its time for it
        self.page = lambda _: asyncio.sleep(0, page)  # type: ignore[method-assign,assignment]
        return len(page.body(openmetrics=False))

    def service(self, **changes: object) -> Service:
        values: dict[str, object] = {
            "page": self.page,
            "daemons": lambda: [Daemon("osd", "3", "c1", Path("/run/ceph/<odd>.asok"))],
            "telemetry_path": "/metrics",
            "roles": ("osd",),
            "timeout": 10.0,
            "timeout_offset": 0.5,
            "max_requests": 40,
        }
        return Service(**(values | changes))  # type: ignore[arg-type]


class WebClient:
    """Asks one server."""

    def __init__(self, server: Server, base: str, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._base = base
        self._session = session

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._base.rsplit("//", 1)[1].split(":")
        return host, int(port)

    async def raw(self, request: bytes) -> bytes:
        """What comes for these bytes until the connection ends."""
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(request)
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer

    async def get(
        self, path: str, *, tls: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.get(self._base + path, headers=named, ssl=tls or True) as reply:
            return reply.status, await reply.read(), reply.headers


@asynccontextmanager
async def serving(
    scrapes: Scrapes, *, web_config: Path | None = None, **changes: object
) -> AsyncIterator[WebClient]:
    server = Server(scrapes.service(**changes), web_config=web_config, drain_seconds=5)
    (sock,) = listen_on(["127.0.0.1:0"])
    scheme = "https" if web_config and "tls_server" in web_config.read_text() else "http"
    base = f"{scheme}://127.0.0.1:{sock.getsockname()[1]}"
    await server.start([sock])
    async with aiohttp.ClientSession(
        auto_decompress=False, skip_auto_headers=["Accept-Encoding"]
    ) as session:
        try:
            yield WebClient(server, base, session)
        finally:
            await server.drain()
    await asyncio.sleep(0.05)  # TLS transports end a moment after their session


async def test_metrics_come_as_text_unless_openmetrics_is_preferred() -> None:
    async with serving(Scrapes()) as client:
        status, body, headers = await client.get("/metrics")
        assert status == 200
        assert body == b"# HELP x_total Help.\n# TYPE x_total counter\nx_total 1\n"
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        _, body, headers = await client.get("/metrics", Accept=PROMETHEUS_3)
        assert body == b"# HELP x Help.\n# TYPE x counter\nx_total 1\n# EOF\n"
        assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")


async def test_metrics_are_gzipped_for_who_accepts_it() -> None:
    async with serving(Scrapes()) as client:
        _, body, headers = await client.get("/metrics", Accept_Encoding="gzip")
        assert headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body).endswith(b"x_total 1\n")
        _, body, _ = await client.get("/metrics", Accept_Encoding="gzip;q=0, identity")
        assert body.endswith(b"x_total 1\n")


async def test_the_timeout_of_prometheus_is_the_scrapes_deadline() -> None:
    scrapes = Scrapes()
    async with serving(scrapes) as client:
        await client.get("/metrics")
        await client.get("/metrics", X_Prometheus_Scrape_Timeout_Seconds="5")
        await client.get("/metrics", X_Prometheus_Scrape_Timeout_Seconds="nonsense")
        await client.get("/metrics", X_Prometheus_Scrape_Timeout_Seconds="0.01")
        await client.get("/metrics", X_Prometheus_Scrape_Timeout_Seconds="1e9")
    assert scrapes.seconds == [10.0, 4.5, 10.0, 0.2, 59.5]


async def test_health_readiness_targets_and_landing_page_are_served() -> None:
    async with serving(Scrapes()) as client:
        assert (await client.get("/-/healthy"))[:2] == (200, b"healthy\n")
        assert (await client.get("/-/ready"))[:2] == (200, b"ready\n")
        assert (await client.get("/elsewhere"))[0] == 404
        _, page, _ = await client.get("/")
        assert b'href="/metrics"' in page
        assert b"/run/ceph/&lt;odd&gt;.asok" in page
        status, body, headers = await client.get("/sd")
        assert status == 200
        assert headers["Content-Type"].startswith("application/json")
        assert b'"__meta_cephqos_daemons": "osd.3"' in body
        assert b'"targets": ["127.0.0.1:' in body


async def test_the_path_of_the_metrics_is_as_set() -> None:
    async with serving(Scrapes(), telemetry_path="/m") as client:
        assert (await client.get("/m"))[0] == 200
        assert (await client.get("/metrics"))[0] == 404


async def test_more_scrapes_than_allowed_at_once_are_refused() -> None:
    scrapes = Scrapes()
    scrapes.hold = asyncio.Event()
    async with serving(scrapes, max_requests=1) as client:
        first = asyncio.create_task(client.get("/metrics"))
        while not scrapes.seconds:
            await asyncio.sleep(0.005)
        assert (await client.get("/metrics"))[0] == 503
        scrapes.hold.set()
        assert (await first)[0] == 200
        assert (await client.get("/metrics"))[0] == 200


async def test_a_request_under_way_is_finished_when_the_server_ends() -> None:
    scrapes = Scrapes()
    scrapes.hold = asyncio.Event()
    async with serving(scrapes) as client:
        request = asyncio.create_task(client.get("/metrics"))
        while not scrapes.seconds:
            await asyncio.sleep(0.005)
        draining = asyncio.create_task(client.server.drain())
        await asyncio.sleep(0.05)
        scrapes.hold.set()
        assert (await request)[0] == 200
        await draining


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def test_only_users_with_their_password_get_in(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{prometheus: {HASH}}}")
    async with serving(Scrapes(), web_config=config) as client:
        status, _, headers = await client.get("/metrics")
        assert status == 401
        assert headers["WWW-Authenticate"] == "Basic"
        for header in (
            basic("prometheus", "wrong"),
            basic("nobody", "secret"),
            "Basic !!!",
            "Bearer secret",
        ):
            assert (await client.get("/metrics", Authorization=header))[0] == 401
        for path in ("/metrics", "/-/healthy", "/"):
            assert (await client.get(path, Authorization=basic("prometheus", "secret")))[0] == 200


async def test_a_changed_web_configuration_acts_without_a_restart_and_a_bad_one_does_not(
    tmp_path: Path,
) -> None:
    config = tmp_path / "web.yml"
    config.write_text("{}")
    async with serving(Scrapes(), web_config=config) as client:
        assert (await client.get("/metrics"))[0] == 200
        config.write_text(f"basic_auth_users: {{prometheus: {HASH}}}")
        assert (await client.get("/metrics"))[0] == 401
        config.write_text("basic_auth_users: {prometheus: oops}")
        assert (await client.get("/metrics"))[0] == 401
        with pytest.raises(ConfigError):
            client.server.gate.reload()
        config.unlink()
        assert (await client.get("/metrics"))[0] == 401
        config.write_text(f"basic_auth_users: {{other: {HASH}}}")
        assert (await client.get("/metrics", Authorization=basic("other", "secret")))[0] == 200


async def test_the_rate_limit_refuses_what_comes_too_fast(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text("rate_limit: {interval: 1h, burst: 2}")
    async with serving(Scrapes(), web_config=config) as client:
        assert [(await client.get("/metrics"))[0] for _ in range(3)] == [200, 200, 429]


def trusting(certificates: Path, client: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    if client:
        context.load_cert_chain(certificates / f"{client}.crt", certificates / f"{client}.key")
    return context


def web_file(tmp_path: Path, certificates: Path, more: str = "") -> Path:
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "web.yml"
    path.write_text(f"tls_server_config: {{cert_file: server.crt, key_file: server.key{more}}}")
    return path


MUTUAL = ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt"


async def test_tls_serves_those_who_trust_its_authority(tmp_path: Path, certificates: Path) -> None:
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get("/metrics")
        _, body, _ = await client.get("/sd", tls=trusting(certificates))
        assert b'"__scheme__": "https"' in body


async def test_mutual_tls_wants_a_certificate_of_the_authority(
    tmp_path: Path, certificates: Path
) -> None:
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates, MUTUAL)) as client:
        assert (await client.get("/metrics", tls=trusting(certificates, "client")))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await client.get("/metrics", tls=trusting(certificates))


async def test_a_renewed_certificate_is_served_to_new_connections(
    tmp_path: Path, certificates: Path
) -> None:
    path = web_file(tmp_path, certificates)
    async with serving(Scrapes(), web_config=path) as client:
        await client.get("/metrics", tls=trusting(certificates))
        for end in ("crt", "key"):
            shutil.copy(certificates / f"client.{end}", tmp_path / f"server.{end}")
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match=r"127\.0\.0\.1"):
            await client.get("/metrics", tls=trusting(certificates))


async def test_a_client_authority_that_was_replaced_is_trusted_no_longer(
    tmp_path: Path, certificates: Path
) -> None:
    path = web_file(tmp_path, certificates, MUTUAL)
    async with serving(Scrapes(), web_config=path) as client:
        assert (await client.get("/metrics", tls=trusting(certificates, "client")))[0] == 200
        shutil.copy(certificates / "server.crt", tmp_path / "ca.crt")  # signed nobody
        os.utime(path)
        client.server.gate.reload()
        with pytest.raises(aiohttp.ClientError):
            await client.get("/metrics", tls=trusting(certificates, "client"))


async def test_what_only_a_restart_can_change_is_refused_while_it_serves(
    tmp_path: Path, certificates: Path
) -> None:
    path = web_file(tmp_path, certificates)
    with_tls = path.read_text()
    async with serving(Scrapes(), web_config=path) as client:
        for content in ("{}", with_tls.replace("server.key", f"server.key{MUTUAL}")):
            path.write_text(content)
            with pytest.raises(ConfigError, match="until a restart"):
                client.server.gate.reload()
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200
    path.write_text("{}")
    async with serving(Scrapes(), web_config=path) as client:
        path.write_text(with_tls)
        with pytest.raises(ConfigError, match="until a restart"):
            client.server.gate.reload()


async def test_a_password_that_is_right_is_hashed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed = 0
    really = bcrypt.hashpw

    def counting(password: bytes, salt: bytes) -> bytes:
        nonlocal hashed
        hashed += 1
        return really(password, salt)

    monkeypatch.setattr(bcrypt, "hashpw", counting)
    auth = BasicAuth({"a": HASH, "old": HASH.replace("$2b$", "$2y$")})
    assert [await auth.allows(basic("a", "secret")) for _ in range(3)] == [True] * 3
    assert hashed == 1
    assert [await auth.allows(basic("a", f"wrong {i}")) for i in range(3)] == [False] * 3
    assert not await auth.allows(basic("nobody", "secret")), "the hash of another user's"
    assert hashed == 5, "as much work as for one who exists"
    assert await auth.allows(basic("a", "secret"))
    assert hashed == 5
    assert await auth.allows(basic("old", "secret"))
    assert not await auth.allows(basic("a", "x" * 100))


def test_the_bucket_fills_again_with_time() -> None:
    now = 0.0
    limiter = RateLimiter(RateLimit(interval=2.0, burst=1), clock=lambda: now)
    assert [limiter.allows(), limiter.allows()] == [True, False]
    now = 2.0
    assert [limiter.allows(), limiter.allows()] == [True, False]


def test_no_private_attribute_of_aiohttp_is_touched() -> None:
    """They change without notice. Of other objects than `self`, ruff's SLF finds them."""
    for own, theirs in ((Connections, web.Server), (Connection, web.RequestHandler)):
        used = set(re.findall(r"self\.(_\w+)", inspect.getsource(own)))
        source = "".join(inspect.getsource(base) for base in theirs.__mro__[:-1])
        private = set(re.findall(r"self\.(_\w+)", source))
        assert private
        assert not used & private
