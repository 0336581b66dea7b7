"""Behind TLS: answers that nobody takes, and records that hold no request."""

import asyncio
import socket
import ssl
from pathlib import Path

import psutil
import pytest

from cephqos_exporter.web import connections
from cephqos_exporter.web.wire import Wire

from .test_web_server import Scrapes, serving, trusting, web_file

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


async def asking(address: tuple[str, int], tls: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection that has asked for a page and does not read it."""
    sock = socket.socket()
    # It takes no page whole, and more than a segment: less is asked for again ever later.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    await asyncio.to_thread(sock.connect, address)
    wrapped = await asyncio.to_thread(tls.wrap_socket, sock, server_hostname=address[0])
    wrapped.sendall(GET)
    return wrapped


def took(sock: ssl.SSLSocket) -> int:
    """How much comes of an answer, until it passes for whole."""
    came = 0
    sock.settimeout(10)
    try:
        while came <= 10_000_000 and (part := sock.recv(1 << 20)):
            came += len(part)
    except (OSError, TimeoutError):
        pass
    sock.close()
    return came


async def large(scrapes: Scrapes) -> None:
    """Let each page be the same one, of 11 MB, which no socket buffers take."""
    scrapes.samples = 500_000
    page = await scrapes.page(1)
    scrapes.page = lambda _: asyncio.sleep(0, page)  # type: ignore[method-assign,assignment]


async def test_who_does_not_take_the_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.5)
    scrapes = Scrapes()
    await large(scrapes)
    async with serving(scrapes, web_config=web_file(tmp_path, certificates)) as client:
        sock = await asking(client.address, trusting(certificates))
        await asyncio.sleep(3)
        assert await asyncio.to_thread(took, sock) < 10_000_000


async def test_answers_that_nobody_takes_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path
) -> None:
    monkeypatch.setattr(connections, "UNSENT_BYTES", 30_000_000)
    scrapes = Scrapes()
    await large(scrapes)
    known = trusting(certificates)
    async with serving(scrapes, web_config=web_file(tmp_path, certificates)) as client:
        idle = []
        for _ in range(5):
            idle.append(await asking(client.address, known))
            await asyncio.sleep(0.3)
        assert len((await client.get("/metrics", tls=known))[1]) > 10_000_000
        whole = [await asyncio.to_thread(took, sock) > 10_000_000 for sock in idle]
    assert whole.count(True) in (1, 2), "the last ones; those before were given up"
    assert not any(whole[:3])


async def test_an_idle_connection_does_not_keep_a_buffer_of_the_size_of_its_last_page(
    tmp_path: Path, certificates: Path
) -> None:
    """OpenSSL's, which never shrinks: 14 MB of each connection for a page of 11."""
    scrapes = Scrapes()
    await large(scrapes)
    known = trusting(certificates)
    size = len((await scrapes.page(1)).body(openmetrics=False))
    process = psutil.Process()

    async def idle() -> ssl.SSLSocket:
        sock = await asking(client.address, known)
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


async def test_records_that_hold_nearly_nothing_end_their_connection(
    tmp_path: Path, certificates: Path
) -> None:
    """Each takes CPU time, however little is in it; key updates hold nothing at all."""
    async with serving(Scrapes(), web_config=web_file(tmp_path, certificates)) as client:
        _, writer = await asyncio.open_connection(
            *client.address, ssl=trusting(certificates), server_hostname="127.0.0.1"
        )
        with pytest.raises(ConnectionError):
            for byte in GET[:-2] + b"x: " + b"y" * 4000:
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
                await writer.drain()
        writer.close()
        assert (await client.get("/metrics", tls=trusting(certificates)))[0] == 200


async def test_a_wire_reads_little_at_once_and_no_more_than_it_is_allowed() -> None:
    ours, theirs = socket.socketpair()
    with Wire(fileno=ours.detach()) as wire, theirs:
        wire.allow(20_000)
        theirs.sendall(bytes(30_000))
        assert 0 < wire.recv_into(bytearray(1 << 18)) < 20_000
        with pytest.raises(ConnectionAbortedError):
            wire.recv_into(bytearray(1 << 18))


async def test_a_wire_tells_when_so_much_was_sent_or_never_will_be() -> None:
    ours, theirs = socket.socketpair()
    with Wire(fileno=ours.detach()) as wire, theirs:
        waiting = asyncio.create_task(wire.sent_up_to(3))
        await asyncio.sleep(0)
        wire.send(b"ab")
        await asyncio.sleep(0)
        assert not waiting.done()
        wire.sendmsg([b"c", b"d"])
        await waiting
        await wire.sent_up_to(4)
        never = asyncio.create_task(wire.sent_up_to(100))
        await asyncio.sleep(0)
        wire.release()
        await never
    await wire.sent_up_to(100)  # it has ended
