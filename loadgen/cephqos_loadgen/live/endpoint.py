"""Serves a run's own metrics to Prometheus."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from cephqos_base.errors import UsageError
from cephqos_exporter.web.addresses import AddressMissing, listen_on, split_address

# The roles of the exporter have the ports before this one. None of them is in Prometheus' list of
# ports that exporters use.
DEFAULT_LISTEN = "127.0.0.1:10133"
# Scrapes at a time, and for a client to take its answer.
MOST_AT_ONCE: Final = 8
ANSWER_SECONDS: Final = 30.0


@asynccontextmanager
async def serve(listen: str, collector: Collector, *, fall_back: bool) -> AsyncIterator[str]:
    """Serve /metrics; gives the URL. `fall_back`: if the port is taken, use a free one.

    prometheus_client's own server is not used, since it answers in another thread: the run may
    change its state at that moment.
    """
    registry = CollectorRegistry()
    registry.register(collector)

    under_way = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        """A page counts as under way until the client has taken it: it is in memory until then."""
        nonlocal under_way
        if under_way >= MOST_AT_ONCE:
            return web.Response(status=503, text="too many scrapes under way\n")
        encode, kind = choose_encoder(request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": kind})
        under_way += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await response.prepare(request)
                await response.write(encode(registry))
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        finally:
            under_way -= 1
        return response

    sock = bind(listen, fall_back)
    host = listen.rpartition(":")[0] or "localhost"
    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield f"http://{host}:{sock.getsockname()[1]}/metrics"
    finally:
        await runner.cleanup()


def bind(listen: str, fall_back: bool) -> socket.socket:
    """A socket that listens on this address; UsageError if it cannot."""
    try:
        host, _ = split_address(listen)
    except ValueError:
        expected = f"expected HOST:PORT, as in {DEFAULT_LISTEN}"
        raise UsageError(f"--listen {listen!r}: {expected}") from None
    free_port = f"[{host}]:0" if ":" in host else f"{host}:0"
    for address in (listen, free_port) if fall_back else (listen,):
        try:
            (sock,) = listen_on([address])
        except AddressMissing as missing:
            reason = getattr(missing.reason, "strerror", None) or missing.reason
            error = UsageError(f"--listen {listen}: {reason}")
        else:
            return sock
    raise error
