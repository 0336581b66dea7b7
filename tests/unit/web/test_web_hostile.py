"""Who may not scrape, or does not speak HTTP, costs those who do nothing."""

import asyncio
import contextlib
import itertools
import logging
import os
import shutil
import socket
import ssl
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest
from tests.exporter_process import COMMAND, exporter
from tests.waiting import wait_until

from cephqos_exporter.log import Bounded
from cephqos_exporter.web import auth, connections, server
from cephqos_exporter.web.auth import BasicAuth

from .test_web_server import HASH, MUTUAL, Scrapes, basic, serving, trusting, web_file


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


# --- what is not HTTP


async def test_half_open_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    async with serving(Scrapes()) as client:
        for begun in (b"", b"GET /metrics HT", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"):
            reader, writer = await asyncio.open_connection(*client.address)
            writer.write(begun)
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()
        # A further request on a connection that is kept has a deadline too; being idle has not.
        reader, writer = await asyncio.open_connection(*client.address)
        writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"healthy\n")
        await asyncio.sleep(0.5)
        assert not reader.at_eof()
        writer.write(b"GET /-/healthy HTTP/1.1\r\n")
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_who_does_not_take_the_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path, secure: bool
) -> None:
    monkeypatch.setattr(server, "ANSWER_SECONDS", 0.3)
    scrapes = Scrapes()
    await scrapes.large()
    config = web_file(tmp_path, certificates) if secure else None
    async with serving(scrapes, web_config=config) as client:
        sock = await asking(client.address, trusting(certificates) if secure else None)
        await asyncio.sleep(3)
        assert await asyncio.to_thread(_take, sock) < 10_000_000


async def test_a_scrape_is_under_way_until_its_answer_is_taken() -> None:
    """So what is not taken is bounded: 500 pages of 10 MB would be 5 GB, for a minute."""
    scrapes = Scrapes()
    await scrapes.large()
    async with serving(scrapes, max_requests=2) as client:
        idle = [await asking(client.address, None) for _ in range(2)]
        await asyncio.sleep(0.5)
        assert (await client.get("/metrics"))[0] == 503
        for sock in idle:
            sock.close()
        async with asyncio.timeout(10):
            while (await client.get("/metrics"))[0] == 503:
                await asyncio.sleep(0.1)


async def asking(address: tuple[str, int], known: ssl.SSLContext | None) -> socket.socket:
    """A connection that has asked for a page and does not read it."""
    sock = socket.socket()
    # It takes no page whole, and more than a segment: less is asked for again ever later.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    await asyncio.to_thread(sock.connect, address)
    if known is not None:
        sock = await asyncio.to_thread(known.wrap_socket, sock, server_hostname=address[0])
    sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    return sock


def _take(sock: socket.socket) -> int:
    """How much comes of an answer, until it passes for whole."""
    came = 0
    sock.settimeout(10)
    with contextlib.suppress(OSError):
        while came <= 10_000_000 and (part := sock.recv(1 << 20)):
            came += len(part)
    sock.close()
    return came


async def test_an_idle_connection_does_not_keep_its_last_page() -> None:
    scrapes = Scrapes()
    scrapes.samples = 100_000
    page = await scrapes.page(1)
    size = len(page.body(openmetrics=False))
    scrapes.page = lambda _: asyncio.sleep(0, page)  # type: ignore[method-assign,assignment]
    async with serving(scrapes) as client:
        opened = []
        tracemalloc.start()
        try:
            for _ in range(10):
                reader, writer = await asyncio.open_connection(*client.address)
                opened.append(writer)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(size)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 2 * size
        for writer in opened:
            writer.close()


async def ends(reader: asyncio.StreamReader) -> bool:
    """Whether the other side closes the connection within five seconds."""
    try:
        async with asyncio.timeout(5):
            return await reader.read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_a_flood_of_connections_closes_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path, secure: bool
) -> None:
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 20)
    config, known = (web_file(tmp_path, certificates), trusting(certificates))
    async with serving(Scrapes(), web_config=config if secure else None) as client:
        flood = [await asyncio.open_connection(*client.address) for _ in range(100)]
        assert (await client.get("/metrics", tls=known if secure else None))[0] == 200
        assert all([await ends(reader) for reader, _ in flood[:70]])
        for _, writer in flood:
            writer.close()


async def test_a_flood_from_one_address_closes_no_connection_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even the oldest, which has asked nothing yet."""
    networks = itertools.chain(["prometheus"], itertools.repeat("flood"))
    monkeypatch.setattr(connections, "network_of", lambda _: next(networks))
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 20)
    async with serving(Scrapes()) as client:
        reader, writer = await asyncio.open_connection(*client.address)
        await asyncio.sleep(0.1)
        flood = [await asyncio.open_connection(*client.address) for _ in range(100)]
        await asyncio.sleep(0.2)
        writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(10):
            assert b"200 OK" in await reader.readuntil(b"healthy\n")
        for _, one in (*flood, (reader, writer)):
            one.close()


def test_malformed_requests_take_a_bounded_number_of_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    flags = (f"--discovery.sockets={tmp_path}", "--web.listen-address=127.0.0.1:0")
    with log.open("w") as stderr:
        process = subprocess.Popen([COMMAND, *flags], stderr=stderr, process_group=0)
    try:
        wait_until(lambda: "listening" in log.read_text(), "it listens", 20)
        address = log.read_text().rsplit("//", 1)[1].split()[0].rstrip('"')
        junk = (b"\x16\x03\x01junk\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET\r\n\r\n", b"GET /\xff")
        for i in range(500):
            with connect(address) as sock, contextlib.suppress(OSError):
                sock.sendall(junk[i % len(junk)] + b"\r\n\r\n")
                sock.recv(1000)
    finally:
        process.terminate()
        process.wait(timeout=20)
    assert log.stat().st_size < 10_000
    assert "Traceback" not in log.read_text()
    assert "more like it are left out" in log.read_text()


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_three_hundred_half_open_connections_at_256_descriptors_end_no_scrape(
    tmp_path: Path, certificates: Path, secure: bool
) -> None:
    flags = [f"--discovery.sockets={tmp_path}"]
    flags += [f"--web.config.file={web_file(tmp_path, certificates)}"] if secure else []
    with exporter(*flags, limit=256) as running:
        held = [connect(running.address) for _ in range(300)]
        try:
            host, _, port = running.address.rpartition(":")
            known = trusting(certificates) if secure else None
            held.append(await asking((host, int(port)), known))
            held[-1].settimeout(10)
            assert held[-1].recv(4096).startswith(b"HTTP/1.1 200")
        finally:
            for sock in held:
                sock.close()


def test_lines_of_a_kind_are_bounded_and_what_was_left_out_is_counted() -> None:
    now = 0.0
    bounded = Bounded(lines=3, seconds=60, clock=lambda: now)

    def passed(name: str, message: str, level: int = logging.INFO) -> bool:
        return bounded.filter(logging.LogRecord(name, level, "", 0, message, (), None))

    assert [passed("a", "x %s") for _ in range(5)] == [True, True, True, False, False]
    assert passed("a", "another")
    assert [passed("asyncio", f"at {i}") for i in range(4)] == [True, True, True, False]
    assert all(passed("a", "x %s", logging.DEBUG) for _ in range(5))
    now = 61.0
    record = logging.LogRecord("a", logging.INFO, "", 0, "x %s", (), None)
    assert bounded.filter(record)
    assert record.getMessage() == "x %s (2 more like it were left out)"


# --- answers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
async def test_other_methods_are_refused_and_no_answer_names_versions(method: str) -> None:
    async with serving(Scrapes()) as client:
        request = f"{method} /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = await client.raw(request.encode())
        assert answer.startswith(b"HTTP/1.1 405")
        assert b"Server: cephqos\r\n" in answer
        bad = await client.raw(b"GET /metrics HTTP/1.1\r\nbad header\r\n\r\n")
        assert bad.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
        assert b"Server: cephqos\r\n" in bad


# --- mutual TLS


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_no_session_outlives_its_authority(
    tmp_path: Path, certificates: Path, version: ssl.TLSVersion
) -> None:
    context = trusting(certificates, "client")
    context.minimum_version = context.maximum_version = version
    request = b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    def ask(address: tuple[str, int], session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        with (
            socket.create_connection(address, timeout=10) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as sock,
        ):
            sock.sendall(request)
            if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
                raise ConnectionAbortedError("let nobody in")
            return sock.session

    path = web_file(tmp_path, certificates, MUTUAL)
    async with serving(Scrapes(), web_config=path) as client:
        session = await asyncio.to_thread(ask, client.address, None)
        await asyncio.to_thread(ask, client.address, session)
        shutil.copy(certificates / "server.crt", tmp_path / "ca.crt")  # signed nobody
        os.utime(path)
        with pytest.raises(OSError):  # an alert, or the connection reset
            await asyncio.to_thread(ask, client.address, session)


# --- basic authentication


async def test_a_flood_of_wrong_passwords_does_not_delay_who_was_let_in_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    under_way = 0

    def matches(password: bytes, hashed: str) -> bool:
        nonlocal under_way
        under_way += 1
        assert under_way == 1, "one check at a time"
        time.sleep(0.05)
        under_way -= 1
        return password == b"secret"

    monkeypatch.setattr(auth, "_matches", matches)
    guarded = BasicAuth({"prometheus": HASH})
    assert await guarded.allows(basic("prometheus", "secret"))
    flood = [asyncio.create_task(guarded.allows(basic("prometheus", str(i)))) for i in range(20)]
    await asyncio.sleep(0.01)
    assert await guarded.allows(basic("prometheus", "secret"))
    assert not any(task.done() for task in flood)
    assert not any(await asyncio.gather(*flood))


async def test_the_rate_limit_counts_requests_with_a_wrong_password_too(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(
        f"basic_auth_users: {{prometheus: {HASH}}}\nrate_limit: {{interval: 1h, burst: 2}}"
    )
    async with serving(Scrapes(), web_config=config) as client:
        for expected in (401, 401, 429):
            header = basic("prometheus", "wrong")
            assert (await client.get("/metrics", Authorization=header))[0] == expected
