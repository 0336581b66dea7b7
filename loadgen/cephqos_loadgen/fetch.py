"""Gets a page of a server that we have started."""

import asyncio
import urllib.request


async def fetch(url: str, within: float = 5.0) -> bytes:
    """The body of a page; raises OSError, also for a status that is not a success."""

    def get() -> bytes:
        with urllib.request.urlopen(url, timeout=within) as reply:  # noqa: S310 - our own URL
            body: bytes = reply.read()
            return body

    return await asyncio.to_thread(get)
