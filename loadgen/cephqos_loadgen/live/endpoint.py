"""Serves a run's own metrics to Prometheus."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from cephqos_base.errors import UsageError
from cephqos_exporter.exposition import OPENMETRICS_CONTENT_TYPE, TEXT_CONTENT_TYPE, Page
from cephqos_exporter.model import Family

# Not among the ports that Prometheus' list assigns; the exporter has the one before it.
DEFAULT_LISTEN = "127.0.0.1:10131"
_OPENMETRICS = "application/openmetrics-text"


@asynccontextmanager
async def serve(
    listen: str, families: Callable[[], Iterable[Family]], *, fall_back: bool
) -> AsyncIterator[str]:
    """Serve /metrics; gives the URL. `fall_back`: a taken port is replaced by a free one."""
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise UsageError(f"--listen {listen!r}: expected HOST:PORT, as in {DEFAULT_LISTEN}")

    async def metrics(request: web.Request) -> web.Response:
        openmetrics = _OPENMETRICS in request.headers.get("Accept", "")
        page = Page()
        page.add_families(families())
        body = page.body(openmetrics=openmetrics)
        kind = OPENMETRICS_CONTENT_TYPE if openmetrics else TEXT_CONTENT_TYPE
        return web.Response(body=body, headers={"Content-Type": kind})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        bound = await _bind(runner, host.strip("[]"), int(port), fall_back)
        yield f"http://{host}:{bound}/metrics"
    finally:
        await runner.cleanup()


async def _bind(runner: web.AppRunner, host: str, port: int, fall_back: bool) -> int:
    for attempt in (port, 0) if fall_back else (port,):
        site = web.TCPSite(runner, host, attempt)
        try:
            await site.start()
        except OSError as error:
            if attempt == 0 or not fall_back:
                raise UsageError(f"--listen {host}:{port}: {error.strerror}") from None
            continue
        return int(runner.addresses[-1][1])
    raise AssertionError("unreachable")
