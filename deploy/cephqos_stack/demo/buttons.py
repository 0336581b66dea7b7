"""A page with a button for each fault, for a browser on the same host.

It can only be asked from itself: another host's name, or another page's form, is refused. It has
no script, and nothing else may show it in a frame.
"""

import contextlib
import html
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from aiohttp import web

from cephqos_base.errors import UsageError
from cephqos_exporter.web.addresses import AddressMissing, listen_on, split_address
from cephqos_stack.demo.provoke import PROVOCATIONS, Provoker

_LINES: Final = 12  # of what happened
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}
_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta http-equiv="refresh" content="3"><title>cephqos: provoke a fault</title>
<style>body{{font:16px sans-serif;margin:2em}}button{{margin:.2em;padding:.5em}}
.on{{background:#e8b339}}</style>
<h1>Provoke a fault</h1><p>{state}</p><form method="post">{buttons}</form>
<h2>What happened</h2><pre>{happened}</pre><h2>Score card</h2><pre>{card}</pre></html>
"""


def page(provoker: Provoker, told: Sequence[str]) -> str:
    """The page as it is now."""
    going_on = provoker.going_on
    state = provoker.closed or f"{going_on or 'Nothing'} goes on. The same button ends it."
    shown = []
    for each in PROVOCATIONS:
        on = ' class="on"' if each.name == going_on else ""
        shown.append(f'<button name="name" value="{each.name}"{on}>{each.name}</button>')
    happened, card = (html.escape("\n".join(it)) for it in (told[-_LINES:], provoker.card))
    return _PAGE.format(
        state=html.escape(state), buttons="".join(shown), happened=happened, card=card
    )


@contextlib.asynccontextmanager
async def buttons(
    listen: str, provoker: Provoker, told: Callable[[], Sequence[str]]
) -> AsyncIterator[str]:
    """Serve the page there; gives its address."""
    sock = _listens(listen)
    port = sock.getsockname()[1]
    own = {f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}

    @web.middleware
    async def guard(request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        # The name in Host: a foreign name may have been pointed at this address.
        asked = f"http://{request.host}" in own
        if not asked or (request.method != "GET" and request.headers.get("Origin") not in own):
            raise web.HTTPForbidden(text="only this page itself may ask here\n")
        reply: web.StreamResponse = await handler(request)
        reply.headers.update(_HEADERS)
        return reply

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=page(provoker, told()), content_type="text/html")

    async def press(request: web.Request) -> web.Response:
        name = (await request.post()).get("name")
        if name not in {each.name for each in PROVOCATIONS}:
            raise web.HTTPBadRequest(text="no such fault\n")
        provoker.press(str(name))
        return web.Response(status=303, headers={"Location": "/"})

    app = web.Application(middlewares=[guard], client_max_size=1000)
    app.router.add_get("/", show)
    app.router.add_post("/", press)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield f"http://{listen.rpartition(':')[0]}:{port}/"
    finally:
        await runner.cleanup()


def _listens(listen: str) -> socket.socket:
    expected = "expected a free port of loopback, such as 127.0.0.1:10134"
    try:
        host, _ = split_address(listen)
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(listen)
        (sock,) = listen_on([listen])
    except (ValueError, AddressMissing):
        raise UsageError(f"--buttons {listen!r}: {expected}") from None
    return sock
