"""One request of each address in each pass of the event loop.

Scrapes go on in the same loop: without this, all that has come on all connections is answered in
one pass, 51,200 requests on 512 connections, and a scrape takes some thirty passes.
"""

import asyncio
from collections import deque


class Pace:
    """The requests that are to be answered, by network."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def turn(self, network: str) -> None:
        """Wait until it is this request's turn: at once, where its network has had none."""
        loop = asyncio.get_running_loop()
        queue = self._waiting.get(network)
        if queue is None:
            self._waiting[network] = deque()
            loop.call_soon(self._next, network)
            return
        future: asyncio.Future[None] = loop.create_future()
        queue.append(future)
        await future

    def _next(self, network: str) -> None:
        queue = self._waiting[network]
        while queue:
            future = queue.popleft()
            if not future.done():  # else its connection has ended
                future.set_result(None)
                asyncio.get_running_loop().call_soon(self._next, network)
                return
        del self._waiting[network]
