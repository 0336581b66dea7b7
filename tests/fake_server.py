"""A small HTTP server on a free port, in the place of Prometheus, Grafana, Loki or an exporter."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(answers: Handler | Mapping[str, Handler]) -> AsyncIterator[str]:
    """Its URL. One handler takes every request; or they are by what they take: `GET /metrics`."""
    app = web.Application()
    by_name: Mapping[str, Handler] = (
        answers if isinstance(answers, Mapping) else {"* /{any:.*}": answers}
    )
    for what, handler in by_name.items():
        method, path = what.split(" ")
        app.router.add_route(method, path, handler)
    async with TestServer(app) as server:
        yield f"http://{server.host}:{server.port}"
