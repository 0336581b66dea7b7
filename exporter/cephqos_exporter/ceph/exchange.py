"""One connection to an admin socket: one request, one reply of bounded size.

The request is JSON ended by a NUL byte, the reply a 4-byte big-endian length and that many bytes.
"""

import errno
import os
import resource
import socket
import struct
from typing import Final

from cephqos_exporter.daemon_errors import (
    ClosedEarly,
    ConnectionRefused,
    DaemonError,
    Malformed,
    PermissionMissing,
    SocketGone,
    TooLarge,
)

# The largest usual replies are schemas of 112 kB. A queue dump of a badly overloaded OSD can have
# some megabytes. What announces more than this is no Ceph daemon.
MAX_REPLY_BYTES: Final = 32 * 1024 * 1024
# All replies that wait to be read, over all daemons of the host.
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024

# File descriptors that are left for connections of scrapers, for /proc and for the log.
RESERVED_DESCRIPTORS: Final = 128

# Caps are for bodies. Headers of this many replies are allowed besides.
_HEADERS_ON_TOP: Final = 100
# A reply may come in 1000 pieces, and in one more for each 4 kB. A daemon writes up to 200 kB at
# once. To read a piece takes 15 µs even if it is one byte: more pieces would delay other daemons.
_MANY_PIECES: Final = 1000
_SMALL_PIECE_BYTES: Final = 4096
_HEADER: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("3i")

# One buffer for all sockets, as all of this runs on one event loop thread.
_SHARED: Final = bytearray(256 * 1024)
_SHARED_VIEW: Final = memoryview(_SHARED)


class NoDescriptor(BlockingIOError):
    """No file descriptor is left to connect with; RESERVED_DESCRIPTORS are for others."""


class Held:
    """Counts the bytes of replies that came and are not parsed yet: of one batch, and of all.

    A batch is what one daemon is asked in one scrape. If all batches together have too much, only
    those with more than an equal share are refused: those of daemons with long replies.
    """

    __slots__ = ("bytes", "max_bytes")

    # Of the whole process: set on the class.
    all_bytes = 0
    batches = 0  # under way

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0

    def begin(self) -> None:
        """The batch is under way until `end`."""
        Held.batches += 1

    def add(self, count: int) -> None:
        """TooLarge if this batch has more than its cap, or all have more than the host's."""
        self.bytes += count
        Held.all_bytes += count
        if self.bytes > self.max_bytes + _HEADER.size * _HEADERS_ON_TOP:
            raise TooLarge(f"{self.bytes} bytes in one scrape; the cap is {self.max_bytes}")
        share = MAX_WAITING_BYTES / Held.batches
        if Held.all_bytes > MAX_WAITING_BYTES and self.bytes > share:
            raise TooLarge(f"{Held.all_bytes} bytes wait; the cap is {MAX_WAITING_BYTES}")

    def end(self) -> None:
        Held.batches -= 1
        Held.all_bytes -= self.bytes


class Exchange:
    """A connection whose request was sent, and as much of the reply as has come."""

    __slots__ = ("_body", "_length", "_pieces", "prefix", "sock")

    def __init__(self, path: str, prefix: str, request: bytes, highest: int) -> None:
        """Connect and send. BlockingIOError: the daemon's backlog is full, or (NoDescriptor) this
        process has no descriptor up to `highest` left."""
        self.prefix = prefix
        self._length = -1  # of the body; -1: the header did not come yet
        self._body: bytearray | None = None  # so far, if the reply did not come in one piece
        self._pieces = 0
        self.sock = _socket()
        try:
            if self.sock.fileno() > highest:
                raise NoDescriptor
            self.sock.connect(path)
            if self.sock.send(request) != len(request):
                raise ClosedEarly("the socket took only a part of the request")
        except BaseException:
            self.sock.close()
            raise

    def peer_pid(self) -> int | None:
        """The pid of the daemon; None if it lives in a PID namespace unrelated to ours."""
        raw = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid: int = _CREDENTIALS.unpack(raw)[0]
        return pid or None

    def receive(self, held: Held) -> bytes | bytearray | None:
        """Read what came. The body if all of it is there, or None."""
        try:
            count = self.sock.recv_into(_SHARED)
        except (BlockingIOError, InterruptedError):
            return None
        if not count:
            raise ClosedEarly(self.came())
        held.add(count)
        piece = _SHARED_VIEW[:count]
        if self._length < 0 and self._body is None and count >= _HEADER.size:
            piece = self._without_header(piece, held.max_bytes)
            if len(piece) == self._length:  # the usual case: all at once, copied only once
                return bytes(piece)
        if self._body is None:
            self._body = bytearray()
        self._body += piece
        self._pieces += 1
        if self._pieces > _MANY_PIECES + len(self._body) // _SMALL_PIECE_BYTES:
            raise Malformed(f"{len(self._body)} bytes came in {self._pieces} pieces")
        if self._length < 0 and len(self._body) >= _HEADER.size:  # the header came in pieces
            self._body = bytearray(self._without_header(memoryview(self._body), held.max_bytes))
        return self._if_complete(self._body)

    def came(self) -> str:
        """How much of the reply came."""
        if self._length < 0:
            return "no answer came"
        came = len(self._body) if self._body is not None else 0
        return f"{came} of {self._length} bytes came"

    def _without_header(self, data: memoryview, max_bytes: int) -> memoryview:
        (self._length,) = _HEADER.unpack_from(data)
        if self._length > max_bytes:
            raise TooLarge(f"announced {self._length} bytes; the cap is {max_bytes}")
        return data[_HEADER.size :]

    def _if_complete(self, body: bytearray) -> bytearray | None:
        if self._length < 0 or len(body) < self._length:
            return None
        if len(body) > self._length:
            raise Malformed(f"{len(body)} bytes where {self._length} were announced")
        return body


def _socket() -> socket.socket:
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):
            raise NoDescriptor from exc
        raise


def highest_descriptor() -> int:
    """The highest descriptor for a daemon's connection. As the kernel gives the lowest free one, a
    higher one means that only the reserved ones are left."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(RESERVED_DESCRIPTORS, soft // 3)


def translate(exc: OSError, path: str) -> DaemonError:
    """An OSError as a DaemonError. The caller stores it and raises it later, so the cause is set
    here."""
    kinds: dict[type[OSError], type[DaemonError]] = {
        FileNotFoundError: SocketGone,
        NotADirectoryError: SocketGone,
        PermissionError: PermissionMissing,
        ConnectionRefusedError: ConnectionRefused,
        ConnectionResetError: ClosedEarly,
        BrokenPipeError: ClosedEarly,
    }
    text = f"{path}: {os.strerror(exc.errno) if exc.errno else exc}"
    if isinstance(exc, PermissionError):
        text += " (it takes the daemon's user, or CAP_DAC_OVERRIDE)"
    error = kinds.get(type(exc), DaemonError)(text)
    error.__cause__ = exc
    return error
