"""TLS: handshakes that never end are counted and have a deadline; pages go out in pieces."""

import asyncio
import itertools
import socket
import ssl
from pathlib import Path

import psutil
import pytest

from cephqos_exporter.web import connections

from .test_web_hostile import ends
from .test_web_server import Scrapes, serving, trusting, web_file

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_a_handshake_that_does_not_go_on_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        reader, writer = await asyncio.open_connection(*client.address)
        writer.write(begun)
        assert await ends(reader)
        writer.close()
        # Nobody who has made it is closed for that.
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200
        await asyncio.sleep(0.5)
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200


async def test_who_was_let_in_is_closed_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    """A flood from many networks: each has as many connections as Prometheus."""
    networks = (f"10.0.0.{i}" for i in itertools.count())
    monkeypatch.setattr(connections, "network_of", lambda _: next(networks))
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 16)
    config = web_file(tmp_path, certificates)
    config.write_text(config.read_text() + "\nrate_limit: {interval: 1h, burst: 2}")
    async with serving(Scrapes(), web_config=config) as client:
        reader, writer = await asyncio.open_connection(
            *client.address, ssl=trusting(certificates), server_hostname="127.0.0.1"
        )
        writer.write(GET)
        await reader.readuntil(b"x_total 1\n")
        flood = [await asyncio.open_connection(*client.address) for _ in range(40)]
        assert all([await ends(reader) for reader, _ in flood[:20]])
        writer.write(GET)
        await reader.readuntil(b"x_total 1\n")
        for _, one in (*flood, (reader, writer)):
            one.close()


async def test_a_client_cannot_have_the_handshake_again(tmp_path: Path, certificates: Path) -> None:
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        assert client.server.gate.credentials is not None
        options = client.server.gate.credentials.context.options
    assert options & ssl.OP_NO_RENEGOTIATION


async def test_an_idle_connection_does_not_keep_a_buffer_of_the_size_of_its_last_page(
    tmp_path: Path, certificates: Path
) -> None:
    """OpenSSL's, which never shrinks: 14 MB of each connection for a page of 11."""
    scrapes = Scrapes()
    size = await scrapes.large()
    known = trusting(certificates)
    process = psutil.Process()

    async def idle() -> ssl.SSLSocket:
        raw = await asyncio.to_thread(socket.create_connection, client.address)
        sock = await asyncio.to_thread(known.wrap_socket, raw, server_hostname="127.0.0.1")
        sock.sendall(GET)
        came = 0
        while came < size:
            came += len(await asyncio.to_thread(sock.recv, 1 << 20))
        return sock

    async with serving(scrapes, web_config=web_file(tmp_path, certificates)) as client:
        kept = [await idle()]
        before = process.memory_info().rss
        kept += [await idle() for _ in range(10)]
        grown = process.memory_info().rss - before
        for sock in kept:
            sock.close()
    assert grown < 50_000_000


async def test_a_connection_goes_on_after_answers_without_a_body(
    tmp_path: Path, certificates: Path
) -> None:
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        reader, writer = await asyncio.open_connection(
            *client.address, ssl=trusting(certificates), server_hostname="127.0.0.1"
        )
        async with asyncio.timeout(10):
            for _ in range(3):
                writer.write(GET.replace(b"GET", b"HEAD"))
                assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            writer.write(GET)
            await reader.readuntil(b"x_total 1\n")
        writer.close()
