"""Asks Ceph daemons read-only questions over their admin sockets.

One connection carries one command: the request is JSON ended by a NUL byte, the answer a 4-byte
big-endian length and that many bytes. The daemon serves its socket with one thread and a backlog
of five, so a batch keeps two connections under way: one being served, one waiting its turn. More
would gain nothing and could shut out other users of the socket.

This is the hot path (some 600 exchanges a scrape on a host with 60 OSDs), hence plain non-blocking
sockets with callbacks instead of streams: a third of the CPU time.
"""

import asyncio
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import orjson

from cephqos_exporter.errors import (
    Busy,
    ClosedEarly,
    CommandFailed,
    CommandRefused,
    ConnectionRefused,
    DaemonError,
    Malformed,
    PermissionMissing,
    SocketGone,
    TimedOut,
    TooLarge,
    UnknownCommand,
)

# Whoever can connect to an admin socket can also reconfigure the daemon. This list is what keeps
# the exporter from it: nothing else is ever written to a socket.
READ_ONLY_COMMANDS: Final = frozenset(
    {
        "config diff",
        "config get",
        "config show",
        "counter dump",
        "counter schema",
        "dump_blocked_ops_count",
        "dump_historic_ops",
        "dump_historic_slow_ops",
        "dump_mempools",
        "dump_metrics",
        "dump_op_pq_state",
        "dump_ops_in_flight",
        "dump_recovery_reservations",
        "dump_scrub_reservations",
        "dump_scrubs",
        "list_devices",
        "ops",
        "perf dump",
        "perf histogram dump",
        "perf histogram schema",
        "perf schema",
        "status",
        "version",
    }
)

# The largest replies seen are 112 kB schemas; a queue dump of a badly overloaded OSD can be some
# megabytes. What announces more is not a Ceph daemon's answer.
MAX_REPLY_BYTES: Final = 32 * 1024 * 1024

_IN_FLIGHT: Final = 2
_HEADER: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("3i")
_BACKLOG_RETRY_SECONDS: Final = 0.005

# One buffer for all sockets, as all of this runs on one event loop thread.
_SHARED: Final = bytearray(256 * 1024)
_SHARED_VIEW: Final = memoryview(_SHARED)


@dataclass(slots=True)
class Answers:
    """What a daemon answered: replies, errors for the rest, and who it is.

    Replies are parsed when they are wanted: as objects they are ten times their size, and those of
    all daemons of a host come nearly at once.
    """

    bodies: dict[str, bytes | bytearray] = field(default_factory=dict)
    errors: dict[str, DaemonError] = field(default_factory=dict)
    # Commands that were under way at the deadline: those that hang, not those that queued behind.
    hung: list[str] = field(default_factory=list)
    pid: int | None = None  # None: never connected, or in a PID namespace that we cannot see

    def parse(self) -> dict[str, Any]:
        """The replies; what does not parse is moved to the errors."""
        replies = {}
        for prefix, body in self.bodies.items():
            try:
                replies[prefix] = decode_reply(body)
            except DaemonError as exc:
                self.errors[prefix] = _detached(exc)
        self.bodies.clear()
        return replies


@cache
def encode_request(prefix: str, arguments: tuple[tuple[str, str], ...] = ()) -> bytes:
    """The bytes of a command, or CommandRefused if it is not on the read-only list."""
    if prefix not in READ_ONLY_COMMANDS:
        raise CommandRefused(f"{prefix!r} is not on the list of read-only commands")
    return orjson.dumps({"prefix": prefix, "format": "json", **dict(arguments)}) + b"\0"


def decode_reply(body: bytes | bytearray) -> Any:
    """Parse a reply, or raise what the daemon's error text says."""
    if not body:
        raise Malformed("empty reply")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        text = bytes(body[:300]).decode("utf-8", "replace").strip()
        if not text.startswith("ERROR: ("):
            raise Malformed(f"not JSON: {exc}") from exc
        message = " ".join(text.split())
        # Releases word it differently; all of them use EINVAL and say that they do not know it.
        if "unknown command" in message or "unrecognized command" in message:
            raise UnknownCommand(message) from exc
        raise CommandFailed(message) from exc


@dataclass(frozen=True, slots=True)
class Answer:
    """One command's parsed reply, and the pid of the daemon that gave it (see Answers)."""

    value: Any
    pid: int | None


async def ask(
    path: str,
    prefix: str,
    arguments: Mapping[str, str] | None = None,
    *,
    timeout: float,  # noqa: ASYNC109 - the batch owns one timer for all of its exchanges
    max_bytes: int = MAX_REPLY_BYTES,
) -> Answer:
    """Ask one command; raises a DaemonError if there is no whole answer in time."""
    deadline = asyncio.get_running_loop().time() + timeout
    request = (prefix, encode_request(prefix, tuple((arguments or {}).items())))
    answers = await _Batch(path, [request], deadline, max_bytes).run()
    replies = answers.parse()
    if prefix in answers.errors:
        raise answers.errors.pop(prefix)
    return Answer(replies[prefix], answers.pid)


async def ask_all(
    path: str, prefixes: Iterable[str], *, deadline: float, max_bytes: int = MAX_REPLY_BYTES
) -> Answers:
    """Every command's body or error, by `deadline` (of the event loop's clock).

    Raises nothing but CommandRefused (before anything is sent) and cancellation.
    """
    requests = [(prefix, encode_request(prefix)) for prefix in prefixes]
    return await _Batch(path, requests, deadline, max_bytes).run()


class _Exchange:
    """One connection's state."""

    __slots__ = ("body", "length", "prefix", "sock")

    def __init__(self, prefix: str, sock: socket.socket) -> None:
        self.prefix = prefix
        self.sock = sock
        self.length = -1  # not announced yet
        self.body: bytearray | None = None  # what came so far, when it did not come at once


class _Batch:
    """Commands to one daemon, two connections at a time, one timer and one future for all."""

    __slots__ = (
        "_answers",
        "_deadline",
        "_done",
        "_loop",
        "_max",
        "_open",
        "_path",
        "_retry",
        "_todo",
    )

    def __init__(
        self, path: str, requests: list[tuple[str, bytes]], deadline: float, max_bytes: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._todo = deque(requests)
        self._deadline = deadline
        self._max = max_bytes
        self._open: dict[_Exchange, None] = {}
        self._answers = Answers()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._retry: asyncio.TimerHandle | None = None

    async def run(self) -> Answers:
        timer = self._loop.call_at(self._deadline, self._expire)
        try:
            self._fill()
            await self._done
        finally:
            timer.cancel()
            if self._retry:
                self._retry.cancel()
            for exchange in self._open:
                self._close(exchange)
        return self._answers

    def _fill(self) -> None:
        self._retry = None
        while self._todo and len(self._open) < _IN_FLIGHT:
            if not self._start(*self._todo[0]):
                break
        if not self._todo and not self._open and not self._done.done():
            self._done.set_result(None)

    def _start(self, prefix: str, request: bytes) -> bool:
        """Open the next connection; False if the daemon's backlog has no room just now."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.connect(self._path)
            if sock.send(request) != len(request):
                raise ClosedEarly("the socket took only a part of the request")
        except BlockingIOError:
            sock.close()
            self._wait_for_room()
            return False
        except (OSError, DaemonError) as exc:
            sock.close()
            self._todo.popleft()
            error = exc if isinstance(exc, DaemonError) else _translate(exc, self._path)
            self._answers.errors[prefix] = _detached(error)
            return True
        if self._answers.pid is None:
            self._answers.pid = _peer_pid(sock)
        self._todo.popleft()
        exchange = _Exchange(prefix, sock)
        self._open[exchange] = None
        self._loop.add_reader(sock.fileno(), self._readable, exchange)
        return True

    def _wait_for_room(self) -> None:
        if not self._open:  # else the end of one of ours makes us try again
            self._retry = self._loop.call_later(_BACKLOG_RETRY_SECONDS, self._fill)

    def _readable(self, exchange: _Exchange) -> None:
        try:
            body = self._receive(exchange)
            if body is None:
                return
            self._answers.bodies[exchange.prefix] = body
        except DaemonError as exc:
            self._answers.errors[exchange.prefix] = _detached(exc)
        except OSError as exc:
            self._answers.errors[exchange.prefix] = _detached(_translate(exc, self._path))
        del self._open[exchange]
        self._close(exchange)
        self._fill()

    def _receive(self, exchange: _Exchange) -> bytes | bytearray | None:
        """The whole body, or None if more is to come."""
        try:
            count = exchange.sock.recv_into(_SHARED)
        except (BlockingIOError, InterruptedError):
            return None
        if not count:
            raise ClosedEarly(_early(exchange))
        if exchange.length < 0 and exchange.body is None and count >= _HEADER.size:
            chunk = self._announced(exchange, _SHARED_VIEW[:count])
            if len(chunk) == exchange.length:
                return bytes(chunk)
        else:
            chunk = _SHARED_VIEW[:count]
        if exchange.body is None:
            exchange.body = bytearray()
        exchange.body += chunk
        if exchange.length < 0 and len(exchange.body) >= _HEADER.size:
            exchange.body = bytearray(self._announced(exchange, memoryview(exchange.body)))
        return self._whole(exchange, exchange.body)

    def _announced(self, exchange: _Exchange, data: memoryview) -> memoryview:
        (exchange.length,) = _HEADER.unpack_from(data)
        if exchange.length > self._max:
            raise TooLarge(f"announced {exchange.length} bytes; the cap is {self._max}")
        return data[_HEADER.size :]

    def _whole(self, exchange: _Exchange, body: bytearray) -> bytearray | None:
        if exchange.length < 0 or len(body) < exchange.length:
            return None
        if len(body) > exchange.length:
            raise Malformed(f"{len(body)} bytes where {exchange.length} were announced")
        return body

    def _expire(self) -> None:
        for exchange in self._open:
            self._answers.errors[exchange.prefix] = TimedOut(_early(exchange))
            self._answers.hung.append(exchange.prefix)
            self._close(exchange)
        for prefix, _ in self._todo:
            self._answers.errors[prefix] = (
                TimedOut("not sent before the deadline")
                if self._open
                else Busy("no room in the daemon's queue of connections")
            )
        if not self._open and self._todo:
            self._answers.hung.append(self._todo[0][0])  # it does not even take connections
        self._todo.clear()
        self._open.clear()
        if not self._done.done():
            self._done.set_result(None)

    def _close(self, exchange: _Exchange) -> None:
        self._loop.remove_reader(exchange.sock.fileno())
        exchange.sock.close()


def _detached(error: DaemonError) -> DaemonError:
    """The error without its tracebacks.

    Their frames hold what the error is stored in: a cycle that would keep a daemon's replies in
    memory until the next full garbage collection.
    """
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def _early(exchange: _Exchange) -> str:
    if exchange.length < 0:
        return "no answer came"
    came = len(exchange.body) if exchange.body is not None else 0
    return f"{came} of {exchange.length} bytes came"


def _peer_pid(sock: socket.socket) -> int | None:
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(raw)[0]
    return pid or None  # 0: the daemon lives in a PID namespace unrelated to ours


def _translate(exc: OSError, path: str) -> DaemonError:
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
