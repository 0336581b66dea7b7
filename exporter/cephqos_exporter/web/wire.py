"""The socket beneath TLS, which counts what asyncio does not tell.

A page that nobody takes waits in asyncio's own transport beneath TLS, whatever its size, and is
taken for sent. And a client may send TLS records without end that hold no byte of a request: 256
KiB of key updates take 0.16 s of CPU, and are answered with as many bytes.
"""

import asyncio
import socket
from typing import Any, Final

# A handshake: OpenSSL takes 100 kB of certificates from a client.
_HANDSHAKE_BYTES: Final = 256 << 10
# At once: what comes behind a handshake is not counted before it is read.
_READ_BYTES: Final = 16 << 10


class Wire(socket.socket):
    """A connected socket that counts, and gives up a connection on which too much comes."""

    sent = 0
    _left = _HANDSHAKE_BYTES
    _awaited: "tuple[int, asyncio.Future[None]] | None" = None

    def allow(self, count: int) -> None:
        """Take so many bytes until this is called again."""
        self._left = count

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        count = super().recv_into(buffer, min(nbytes or len(buffer), _READ_BYTES), flags)
        self._left -= count
        if self._left < 0:
            raise ConnectionAbortedError("too many bytes without a request")
        return count

    def send(self, data: Any, flags: int = 0) -> int:
        return self._count(super().send(data, flags))

    def sendmsg(self, buffers: Any, *more: Any) -> int:
        return self._count(super().sendmsg(buffers, *more))

    def _count(self, count: int) -> int:
        self.sent += count
        if self._awaited is not None and self.sent >= self._awaited[0]:
            self.release()
        return count

    async def sent_up_to(self, count: int) -> None:
        """Wait until so many bytes were sent since the connection began, or it ends."""
        if self.sent < count and self.fileno() >= 0:
            future = asyncio.get_running_loop().create_future()
            self._awaited = count, future
            await future

    def release(self) -> None:
        """Let go who waits: it was sent, or never will be."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None and not awaited[1].done():
            awaited[1].set_result(None)
