"""A body that is written piece by piece, each when the one before is on its way.

Behind TLS a whole page would be encrypted at once, and OpenSSL keeps a buffer of that size for as
long as the connection lives: 500 idle connections of a host with 60 OSDs would hold 2 GB.
"""

from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

PIECE_BYTES: Final = 64 << 10


class Pieces(Payload):
    """A page's bytes."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body
        self._size = len(body)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for start in range(0, len(self._body), PIECE_BYTES):
            await writer.write(self._body[start : start + PIECE_BYTES])
            await writer.drain()
