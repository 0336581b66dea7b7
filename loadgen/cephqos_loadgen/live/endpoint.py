"""Serves a run's own metrics to Prometheus."""

import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from cephqos_base.errors import UsageError
from cephqos_exporter.exposition import OPENMETRICS_CONTENT_TYPE, TEXT_CONTENT_TYPE, Page
from cephqos_exporter.families import Family
from cephqos_exporter.web.addresses import AddressMissing, listen_on, split_address
from cephqos_exporter.web.connections import Connection, Connections
from cephqos_exporter.web.negotiation import wants_openmetrics

# Not among the ports that Prometheus' list assigns; the exporter has the one before it.
DEFAULT_LISTEN = "127.0.0.1:10131"


@asynccontextmanager
async def serve(
    listen: str, families: Callable[[], Iterable[Family]], *, fall_back: bool
) -> AsyncIterator[str]:
    """Serve /metrics; gives the URL. `fall_back`: a taken port is replaced by a free one."""

    async def answer(request: web.BaseRequest) -> web.Response:
        if isinstance(request.protocol, Connection):
            request.protocol.begin()
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET and HEAD\n", headers={"Allow": "GET"})
        if request.path != "/metrics":
            return web.Response(status=404, text="only /metrics\n")
        openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
        page = Page()
        page.add_families(families())
        body = page.body(openmetrics=openmetrics)
        kind = OPENMETRICS_CONTENT_TYPE if openmetrics else TEXT_CONTENT_TYPE
        return web.Response(body=body, headers={"Content-Type": kind})

    sock = _bind(listen, fall_back)
    host = listen.rpartition(":")[0] or "localhost"
    # With the bounds of the exporter's own connections: what reaches this port may be anybody.
    runner = web.ServerRunner(Connections(answer, dict))
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield f"http://{host}:{sock.getsockname()[1]}/metrics"
    finally:
        await runner.cleanup()


def _bind(listen: str, fall_back: bool) -> socket.socket:
    try:
        host, _ = split_address(listen)
    except ValueError:
        expected = f"expected HOST:PORT, as in {DEFAULT_LISTEN}"
        raise UsageError(f"--listen {listen!r}: {expected}") from None
    free = f"[{host}]:0" if ":" in host else f"{host}:0"
    for address in (listen, free) if fall_back else (listen,):
        try:
            (sock,) = listen_on([address])
        except AddressMissing as missing:
            reason = getattr(missing.reason, "strerror", None) or missing.reason
            error = UsageError(f"--listen {listen}: {reason}")
        else:
            return sock
    raise error
