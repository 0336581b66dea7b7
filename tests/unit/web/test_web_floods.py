"""Who asks much, from one address or many, takes no other's place."""

import asyncio
import contextlib
import zlib
from pathlib import Path

import bcrypt
import pytest
from aiohttp.http_parser import DeflateBuffer

from cephqos_exporter.web import connections
from cephqos_exporter.web.auth import BasicAuth
from cephqos_exporter.web.network import network_of

from .test_web_server import HASH, Scrapes, basic, serving


def test_addresses_that_one_host_has_many_of_are_one() -> None:
    assert network_of("2001:db8:1:2::1") == network_of("2001:db8:1:2:ffff::9")
    assert network_of("2001:db8:1:3::1") != network_of("2001:db8:1:2::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") == "10.0.0.1"
    assert network_of("fe80::1%eth0") == network_of("fe80::2")
    assert network_of("127.0.0.1") == network_of("127.9.8.7") == network_of("::ffff:127.1.1.1")
    assert network_of("") == ""


async def test_a_password_with_a_zero_byte_is_wrong_with_every_bcrypt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those before 4 fail on it: that was a 500, and it told that there is no such user."""

    def as_bcrypt_3(password: bytes, _: bytes) -> bytes:
        raise ValueError("password may not contain NUL bytes")

    monkeypatch.setattr(bcrypt, "hashpw", as_bcrypt_3)
    guarded = BasicAuth({"prometheus": HASH})
    assert not await guarded.allows(basic("prometheus", "a\0b"))
    assert not await guarded.allows(basic("nobody", "a\0b"))


async def test_one_who_holds_all_places_of_scrapes_leaves_one_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    networks = iter(["flood", "flood", "flood", "prometheus", "prometheus", *"abcd"])
    monkeypatch.setattr(connections, "network_of", lambda _: next(networks))
    scrapes = Scrapes()
    scrapes.hold = asyncio.Event()
    async with serving(scrapes, max_requests=2) as client:
        begun = []
        statuses = []
        for _ in range(9):
            task = asyncio.create_task(client.get("/metrics", Connection="close"))
            await asyncio.wait([task], timeout=0.2)
            if task.done():
                statuses.append(task.result()[0])
            else:
                statuses.append(0)
                begun.append(task)
        # Twice as many at most, over all networks.
        assert statuses == [0, 0, 503, 0, 503, 0, 503, 503, 503]
        scrapes.hold.set()
        assert [(await task)[0] for task in begun] == [200] * 4
        assert not client.server._scrapes


async def test_a_body_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = []
    monkeypatch.setattr(DeflateBuffer, "feed_data", lambda _, *data: unpacked.append(data))
    body = zlib.compress(bytes(1 << 20))
    head = f"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}"
    async with serving(Scrapes()) as client:
        answer = await client.raw(f"{head}\r\nContent-Encoding: deflate\r\n\r\n".encode() + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert not unpacked


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "headers": (HEAD, b"h: v\r\n"),
    "body": (HEAD + b"Content-Length: 1000000000\r\n\r\n", b"x" * 100),
    "chunks": (CHUNKED, b"1\r\na\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"h: v\r\n"),
    "upgrade": (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"x" * 100),
    "requests": (b"", b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"),
}


@pytest.mark.parametrize("kind", ENDLESS)
async def test_a_request_that_does_not_end_is_cut_off_before_it_takes_memory(kind: str) -> None:
    """aiohttp 3.11 kept headers, trailers and further requests: 1.6 GB after five seconds."""
    begun, more = ENDLESS[kind]
    block = more * (64_000 // len(more))
    async with serving(Scrapes()) as client:
        reader, writer = await asyncio.open_connection(*client.address)
        writer.write(begun)
        sent = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(10):
                while sent < 100_000_000:
                    writer.write(block)
                    await writer.drain()
                    sent += len(block)
        assert sent < 20_000_000, "more than the buffers of sockets hold"
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(10):
                await reader.read()
        writer.close()


async def test_who_asks_again_before_the_answer_gets_that_answer_and_no_other() -> None:
    """Requests that nobody waits for would be kept; nobody who scrapes sends them."""
    scrapes = Scrapes()
    ask = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(scrapes) as client:
        assert (await client.raw(ask * 5)).count(b"x_total 1\n") == 1
        scrapes.hold = asyncio.Event()
        reader, writer = await asyncio.open_connection(*client.address)
        writer.write(ask)
        await asyncio.sleep(0.2)
        writer.write(ask)
        await asyncio.sleep(0.2)
        scrapes.hold.set()
        async with asyncio.timeout(10):
            assert (await reader.read()).count(b"x_total 1\n") == 1
        writer.close()
        assert len(scrapes.seconds) == 2


async def test_an_ordinary_connection_goes_on_for_as_long_as_it_likes() -> None:
    """What is counted is one request, not the connection."""
    async with serving(Scrapes()) as client:
        reader, writer = await asyncio.open_connection(*client.address)
        for _ in range(100):
            writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2000 + b"\r\n\r\n")
            assert b"200 OK" in await reader.readuntil(b"healthy\n")
        writer.close()


async def test_a_request_without_a_host_asks_no_name_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: object) -> str:
        raise AssertionError("the event loop would wait for the DNS")

    monkeypatch.setattr("socket.getfqdn", slow)
    async with serving(Scrapes()) as client:
        answer = await client.raw(b"GET /sd HTTP/1.0\r\n\r\n")
        host, port = client.address
    assert f'"targets": ["{host}:{port}"]'.encode() in answer


async def test_an_answer_does_not_say_which_versions_there_are(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{prometheus: {HASH}}}")
    async with serving(Scrapes(), web_config=config) as client:
        _, _, headers = await client.get("/metrics")
        bad = await client.raw(b"GET /\r\n\r\n")
    assert headers["Server"] == "cephqos"
    assert b"aiohttp" not in bad
