"""TLS handshakes that never end hold descriptors too: they are counted and have a deadline."""

import asyncio
import os
import socket
import ssl
from pathlib import Path

import pytest
from tests.exporter_process import exporter

from cephqos_base.errors import ConfigError
from cephqos_exporter.web import connections, handshakes
from cephqos_exporter.web.addresses import listen_on
from cephqos_exporter.web.config import RateLimit, TlsConfig
from cephqos_exporter.web.connections import Connections
from cephqos_exporter.web.handshakes import Handshake, Listener
from cephqos_exporter.web.tls import Credentials
from cephqos_exporter.web.wire import Wire

from .test_web_server import MUTUAL, Scrapes, serving, trusting, web_file


async def ends(reader: asyncio.StreamReader) -> bool:
    """Whether the other side closes the connection within five seconds."""
    try:
        async with asyncio.timeout(5):
            return await reader.read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def wires() -> tuple[Wire, socket.socket]:
    ours, theirs = socket.socketpair()
    return Wire(fileno=ours.detach()), theirs


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


async def test_a_flood_of_handshakes_closes_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 20)
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        flood = [await asyncio.open_connection(*client.address) for _ in range(100)]
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200
        closed = [await ends(reader) for reader, _ in flood[:70]]
        assert all(closed)
        for _, writer in flood:
            writer.close()


def test_three_hundred_handshakes_at_256_descriptors_end_no_scrape(
    tmp_path: Path, certificates: Path
) -> None:
    path = web_file(tmp_path, certificates)
    flags = (f"--discovery.sockets={tmp_path}", f"--web.config.file={path}")
    with exporter(*flags, limit=256) as running:
        host, port = running.address.rsplit(":", 1)
        held = [socket.create_connection((host, int(port)), timeout=10) for _ in range(300)]
        try:
            with (
                socket.create_connection((host, int(port)), timeout=10) as raw,
                trusting(certificates).wrap_socket(raw, server_hostname=host) as sock,
            ):
                sock.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert sock.recv(4096).startswith(b"HTTP/1.1 200")
        finally:
            for sock_ in held:
                sock_.close()


async def test_handshakes_of_one_address_have_a_rate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    """Each takes CPU time of the one thread that answers scrapes too."""
    monkeypatch.setattr(connections, "HANDSHAKES", RateLimit(interval=3600.0, burst=3))
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        known = trusting(certificates)
        assert (await client.get("/metrics", tls=known))[0] == 200
        flood = [await asyncio.open_connection(*client.address) for _ in range(20)]
        assert all([await ends(reader) for reader, _ in flood[2:]])
        # Who keeps a connection needs no other, and other addresses have a rate of their own.
        assert (await client.get("/metrics", tls=known))[0] == 200
        monkeypatch.setattr(handshakes, "network_of", lambda _: "elsewhere")
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200
        for _, writer in flood:
            writer.close()


async def test_who_is_welcome_does_not_wait_behind_those_who_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    """They are turned away in one pass of the event loop, and not one in each."""
    asked = 0

    def welcomes(self: Connections, network: str) -> bool:
        nonlocal asked
        asked += 1
        return asked > 50

    monkeypatch.setattr(Connections, "welcomes", welcomes)
    (given,) = listen_on(["127.0.0.1:0"])
    watch = Connections(None, dict)  # type: ignore[arg-type]
    with Listener.of(given, watch) as listener:
        crowd = [socket.create_connection(listener.getsockname()) for _ in range(51)]
        accepted, address = listener.accept()
        assert address == crowd[-1].getsockname()
        for sock in (accepted, *crowd):
            sock.close()
        assert [handshake.over for handshake in watch._handshakes.values()] == [True]


async def test_what_failed_is_not_counted_any_more(certificates: Path) -> None:
    async def nobody(_: object) -> None:
        raise AssertionError

    watch = Connections(nobody, dict)  # type: ignore[arg-type]
    watch.most = 3
    ours, theirs = zip(*(wires() for _ in range(6)), strict=True)
    for sock in ours[:3]:
        watch.accepted(Handshake(watch, sock, "10.0.0.1"))
        sock.close()  # as asyncio does when the handshake has failed
    alive = [Handshake(watch, sock, "10.0.0.2") for sock in ours[3:]]
    for handshake in alive:
        watch.accepted(handshake)
    for sock in theirs[3:]:
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)  # none was closed
    for handshake in alive:
        handshake.cut_off("the test is over")
    for sock in (*ours, *theirs):
        sock.close()


async def test_who_was_let_in_is_closed_last(tmp_path: Path) -> None:
    """A flood from many networks: each has as many connections as Prometheus."""
    config = tmp_path / "web.yml"
    config.write_text("rate_limit: {interval: 1h, burst: 2}")
    async with serving(Scrapes(), web_config=config) as client:
        assert (await client.get("/metrics"))[0] == 200
        server = client.server._runner
        assert server is not None and isinstance(server.server, Connections)
        server.server.most = 3
        pairs = [wires() for _ in range(10)]
        for i, (ours, _) in enumerate(pairs):
            server.server.accepted(Handshake(server.server, ours, f"10.0.0.{i}"))
        kept = [one for one in server.server._everyone if one.let_in]
        assert len(kept) == 1
        assert (await client.get("/metrics"))[0] == 200
        for pair in pairs:
            for sock in pair:
                sock.close()


async def test_connections_that_come_at_once_share_what_takes_long_to_make(
    tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever connects costs that, before a byte is sent: 30 ms with all public CAs."""
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates, MUTUAL)) as client:
        credentials = client.server._credentials
        assert credentials is not None
        monkeypatch.setattr(credentials, "_fresh_until", 0.0)
        first = credentials.context()
        assert all(credentials.context() is first for _ in range(100))
        monkeypatch.setattr(credentials, "_fresh_until", 0.0)
        assert credentials.context() is not first
        monkeypatch.setattr(credentials, "_fresh_until", 0.0)
        monkeypatch.setattr(os, "memfd_create", _none_left)
        assert credentials.context()
    with pytest.raises(ConfigError):
        Credentials(TlsConfig(cert_file=str(certificates / "server.crt")), tmp_path)


def _none_left(_: str) -> int:
    raise OSError(24, "Too many open files")


async def test_a_client_cannot_have_the_handshake_again(tmp_path: Path, certificates: Path) -> None:
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        assert client.server._credentials is not None
        options = client.server._credentials.context().options
    assert options & ssl.OP_NO_RENEGOTIATION
    assert options & ssl.OP_NO_TICKET
