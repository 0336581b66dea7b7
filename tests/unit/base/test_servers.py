"""Requests to servers: every failure is one error, in words that help."""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fake_server import serving

from cephqos_base import servers
from cephqos_base.prometheus import JsonApi, PageMissing, Prometheus, Refused, query
from cephqos_base.servers import Address, HttpServer, NoAnswer, fetch


@asynccontextmanager
async def answering(status: int, body: bytes, **headers: str) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers=headers)

    async with serving(answer) as url:
        yield url


@pytest.mark.parametrize("trusted", [True, False])
async def test_an_https_server_is_believed_if_the_system_trusts_its_authority_now(
    trusted: bool, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was added after aiohttp had been imported."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.crt"))

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"here")

    app = web.Application()
    app.router.add_get("/", answer)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=tls)
    async with server:
        page = fetch(f"https://127.0.0.1:{server.port}/")
        if trusted:
            assert await page == b"here"
        else:
            with pytest.raises(NoAnswer, match="its certificate is not trusted: unable to get"):
                await page


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Answers in plain text, or closes the connection where it is asked for /close."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/close" not in await reader.read(4096):
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nthis is no TLS\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1:{port}/", "this port does not speak TLS; try http://"),
        ("http://127.0.0.1:{port}/close", "if this port speaks TLS, try https://"),
        ("http://127.0.0.1:1/", "connection refused"),
    ],
)
async def test_a_wrong_scheme_is_named(port: int, url: str, said: str) -> None:
    with pytest.raises(NoAnswer, match=said):
        await fetch(url.format(port=port))


async def test_a_server_that_hangs_is_waited_for_so_long_and_no_longer() -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with serving(hang) as url:
        with pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
            await fetch(url, within=0.2)


async def test_an_answer_that_unpacks_to_too_much_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_BYTES", 1 << 20)
    bomb = gzip.compress(bytes(4 << 20))
    async with answering(200, bomb, **{"Content-Encoding": "gzip"}) as url:
        with pytest.raises(NoAnswer, match="the answer is larger than 1 MiB"):
            await fetch(url)


async def test_a_password_is_sent_to_no_other_server() -> None:
    seen = []

    async def other(request: web.Request) -> web.Response:
        seen.append(request.headers)
        return web.Response()

    async with serving(other) as there, answering(307, b"", Location=f"{there}/x") as url:
        with_password = Address.parse(url.replace("//", "//me:secret@"), "--url")
        async with HttpServer(with_password, headers={"X-Api-Key": "secret"}) as server:
            with pytest.raises(NoAnswer, match=f"HTTP status 307: it sends to {there}/x; name"):
                await server.get()
    assert not seen


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b"<html>login</html>", "the answer is not JSON"),
        (502, b"", "HTTP 502 for /api/v1/query"),
        (200, b"[]", "this is not the API of a Prometheus"),
        (200, b'{"status":"success","data":[]}', "this is not the API of a Prometheus"),
        (200, b'{"data":{"result":[{"value":[1]}]}}', "this is not the API of a Prometheus"),
    ],
)
async def test_what_is_no_answer_of_prometheus_is_told_in_one_line(
    status: int, body: bytes, expected: str
) -> None:
    async with answering(status, body) as url, HttpServer(Address(url)) as server:
        with pytest.raises(NoAnswer, match=r"^[^\n]*$") as caught:
            await Prometheus(server).vector("up")
    assert expected in str(caught.value)


async def test_an_error_of_prometheus_is_told_with_its_words() -> None:
    body = b'{"status":"error","error":"parse error"}'
    async with answering(400, body) as url, HttpServer(Address(url)) as server:
        with pytest.raises(Refused, match="HTTP 400 for /api/v1/query: parse error"):
            await Prometheus(server).vector("up)")
        with pytest.raises(PageMissing):
            await JsonApi(server).get("/api/v1/status/buildinfo")


async def test_what_is_no_number_is_no_sample() -> None:
    result: list[dict[str, Any]] = [
        {"metric": {"n": text}, "value": [1.0, text]} for text in ("NaN", "+Inf", "-Inf", "1.5")
    ]
    result.append({"metric": {"n": "native histogram"}, "histogram": [1.0, {}]})
    body = json.dumps({"data": {"resultType": "vector", "result": result}}).encode()
    async with answering(200, body) as url:
        async with HttpServer(Address(url)) as server:
            assert await Prometheus(server).vector("x") == [({"n": "1.5"}, 1.5)]
        assert len(await query(url, "x")) == 5
