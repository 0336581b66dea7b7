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

# The largest replies seen are 112 kB schemas; a queue dump of a badly overloaded OSD can be some
# megabytes. What announces more is not a Ceph daemon's answer.
MAX_REPLY_BYTES: Final = 32 * 1024 * 1024
# All replies that wait to be read, over all daemons of the host.
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024

# Left to those who scrape, to /proc and to the log.
RESERVED_DESCRIPTORS: Final = 128

_MANY_REPLIES: Final = 100
# To read a piece takes 15 µs, whatever is in it. A daemon writes all it has: 200 kB at once.
_MANY_PIECES: Final = 1000
_SMALL_PIECE: Final = 4096
_HEADER: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("3i")

# One buffer for all sockets, as all of this runs on one event loop thread.
_SHARED: Final = bytearray(256 * 1024)
_SHARED_VIEW: Final = memoryview(_SHARED)


class NoDescriptor(BlockingIOError):
    """There is none left to connect with; the rest is for those who scrape."""


class Held:
    """Bytes that came for one batch and were not parsed yet; counts for all batches too.

    A daemon that has no more than its share is never refused, so that one with much costs itself.
    """

    __slots__ = ("bytes", "most")

    all_bytes = 0
    batches = 0

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0

    def begin(self) -> None:
        """Its batch is under way: until `end` it has a share of what may wait."""
        Held.batches += 1

    def add(self, count: int) -> None:
        """TooLarge if it is too much, for this batch or for the host."""
        self.bytes += count
        Held.all_bytes += count
        if self.bytes > self.most + _HEADER.size * _MANY_REPLIES:
            raise TooLarge(f"{self.bytes} bytes in one scrape; the cap is {self.most}")
        share = MAX_WAITING_BYTES / Held.batches
        if Held.all_bytes > MAX_WAITING_BYTES and self.bytes > share:
            raise TooLarge(f"{Held.all_bytes} bytes wait; the cap is {MAX_WAITING_BYTES}")

    def end(self) -> None:
        Held.batches -= 1
        Held.all_bytes -= self.bytes


class Exchange:
    """A connection with its request on the way, and what came of the reply."""

    __slots__ = ("_body", "_length", "_pieces", "prefix", "sock")

    def __init__(self, path: str, prefix: str, request: bytes, highest: int) -> None:
        """BlockingIOError if there is no room now, there or here (above `highest`)."""
        self.prefix = prefix
        self._length = -1  # not announced yet
        self._body: bytearray | None = None  # what came so far, when it did not come at once
        self._pieces = 0  # in which it came
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
        """The whole body, or None if more is to come."""
        try:
            count = self.sock.recv_into(_SHARED)
        except (BlockingIOError, InterruptedError):
            return None
        if not count:
            raise ClosedEarly(self.came())
        held.add(count)
        if self._length < 0 and self._body is None and count >= _HEADER.size:
            chunk = self._announced(_SHARED_VIEW[:count], held.most)
            if len(chunk) == self._length:
                return bytes(chunk)
        else:
            chunk = _SHARED_VIEW[:count]
        if self._body is None:
            self._body = bytearray()
        self._body += chunk
        self._pieces += 1
        if self._pieces > _MANY_PIECES + len(self._body) // _SMALL_PIECE:
            raise Malformed(f"{len(self._body)} bytes came in {self._pieces} pieces")
        if self._length < 0 and len(self._body) >= _HEADER.size:
            self._body = bytearray(self._announced(memoryview(self._body), held.most))
        return self._whole(self._body)

    def came(self) -> str:
        """How much of the reply came."""
        if self._length < 0:
            return "no answer came"
        came = len(self._body) if self._body is not None else 0
        return f"{came} of {self._length} bytes came"

    def _announced(self, data: memoryview, most: int) -> memoryview:
        (self._length,) = _HEADER.unpack_from(data)
        if self._length > most:
            raise TooLarge(f"announced {self._length} bytes; the cap is {most}")
        return data[_HEADER.size :]

    def _whole(self, body: bytearray) -> bytearray | None:
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
    """New descriptors are the lowest ones that are free: above this, few are left."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(RESERVED_DESCRIPTORS, soft // 3)


def translate(exc: OSError, path: str) -> DaemonError:
    """An operating system error as ours; the caller stores it, so the cause is set by hand."""
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
