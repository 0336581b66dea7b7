"""Asks Ceph daemons read-only questions over their admin sockets.

One connection carries one command: the request is JSON ended by a NUL byte, the answer a 4-byte
big-endian length and that many bytes. The daemon serves its socket with one thread and a backlog
of five, so a batch keeps two connections under way: one being served, one waiting its turn. More
would gain nothing and could shut out other users of the socket.

This is the hot path (some 600 exchanges a scrape on a host with 60 OSDs), hence plain non-blocking
sockets with callbacks instead of streams: a third of the CPU time.
"""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.ceph.commands import encode_request
from cephqos_exporter.ceph.replies import decode_reply
from cephqos_exporter.errors import (
    Busy,
    ClosedEarly,
    ConnectionRefused,
    DaemonError,
    DescriptorsMissing,
    Malformed,
    PermissionMissing,
    SocketGone,
    TimedOut,
    TooLarge,
)

# The largest replies seen are 112 kB schemas; a queue dump of a badly overloaded OSD can be some
# megabytes. What announces more is not a Ceph daemon's answer.
MAX_REPLY_BYTES: Final = 32 * 1024 * 1024
# All replies that wait to be read, over all daemons of the host.
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024

# What a daemon that says nothing is watched for: long enough for a busy one to say something.
SIGN_SECONDS: Final = 0.5

# Left to those who scrape, to /proc and to the log.
RESERVED_DESCRIPTORS: Final = 128

_IN_FLIGHT: Final = 2
_MANY_REPLIES: Final = 100
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
    stopped: bool = False  # it answered nothing any more, not even `version`

    def so_far(self, asked: Iterable[str], *, stopped: bool) -> "Answers":
        """A copy of what there is already; what was asked and did not come yet is late."""
        missing = [p for p in asked if p not in self.bodies and p not in self.errors]
        late = {prefix: TimedOut("not yet") for prefix in missing}
        return Answers(dict(self.bodies), self.errors | late, [], self.pid, stopped)

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
    answers = await Batch(path, [request], deadline, max_bytes).run()
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
    return await Batch(path, requests, deadline, max_bytes).run()


class _Exchange:
    """One connection's state."""

    __slots__ = ("body", "length", "prefix", "sock")

    def __init__(self, prefix: str, sock: socket.socket) -> None:
        self.prefix = prefix
        self.sock = sock
        self.length = -1  # not announced yet
        self.body: bytearray | None = None  # what came so far, when it did not come at once


class _Waiting:
    """Bytes of replies that came and were not read yet, over all daemons.

    A daemon that has no more than its share is never refused, so that one with much costs itself.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.daemons = 0

    def is_too_much(self, held: int) -> bool:
        return self.bytes > MAX_WAITING_BYTES and held > MAX_WAITING_BYTES / self.daemons


_waiting = _Waiting()


class Batch:
    """Commands to one daemon, two connections at a time, one timer and one future for all.

    While nothing comes, `version` is asked on a third connection: a daemon that stopped is not to
    be taken for one with a command that hangs.
    """

    __slots__ = (
        "_answers",
        "_deadline",
        "_done",
        "_heard",
        "_held",
        "_highest",
        "_loop",
        "_max",
        "_open",
        "_path",
        "_pause",
        "_retry",
        "_sign",
        "_starved",
        "_todo",
        "_watch",
    )

    def __init__(
        self,
        path: str,
        requests: list[tuple[str, bytes]],
        deadline: float,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._todo = deque(requests)
        self._deadline = deadline
        self._max = max_bytes
        self._held = 0  # bytes that came
        self._highest = _highest_descriptor()
        self._open: dict[_Exchange, None] = {}
        self._answers = Answers()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._retry: asyncio.TimerHandle | None = None
        self._starved = False  # no descriptor was left for it
        self._heard = self._loop.time()
        self._pause = max(0.01, min(SIGN_SECONDS, (deadline - self._heard) / 4))
        self._sign: _Exchange | None = None
        self._watch: asyncio.TimerHandle | None = None

    @property
    def answers(self) -> Answers:
        """What came so far."""
        return self._answers

    @property
    def silent(self) -> bool:
        """Whether nothing has come lately, although something is waited for."""
        return bool(self._open) and self._loop.time() - self._heard > 2.5 * self._pause

    async def run(self) -> Answers:
        timer = self._loop.call_at(self._deadline, self._expire)
        if len(self._todo) > 1:  # else there is nothing that could still answer
            self._watch = self._loop.call_later(self._pause, self._look)
        _waiting.daemons += 1
        try:
            self._fill()
            await self._done
        finally:
            _waiting.daemons -= 1
            _waiting.bytes -= self._held
            timer.cancel()
            for handle in filter(None, (self._watch, self._retry)):
                handle.cancel()
            for exchange in (*self._open, *filter(None, [self._sign])):
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
        """Open the next connection; False if there is no room just now, there or here."""
        try:
            sock = self._connect(request)
        except BlockingIOError:
            self._wait_for_room()
            return False
        except (OSError, DaemonError) as exc:
            self._todo.popleft()
            error = exc if isinstance(exc, DaemonError) else _translate(exc, self._path)
            self._answers.errors[prefix] = _detached(error)
            return True
        self._todo.popleft()
        exchange = _Exchange(prefix, sock)
        self._open[exchange] = None
        self._loop.add_reader(sock.fileno(), self._readable, exchange)
        return True

    def _connect(self, request: bytes) -> socket.socket:
        """A connection with the request on its way; BlockingIOError if there is no room."""
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as exc:
            if exc.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._starved = True
            raise BlockingIOError from exc
        try:
            if sock.fileno() > self._highest:  # the rest is for those who scrape
                self._starved = True
                raise BlockingIOError
            sock.connect(self._path)
            if sock.send(request) != len(request):
                raise ClosedEarly("the socket took only a part of the request")
            if self._answers.pid is None:
                self._answers.pid = _peer_pid(sock)
        except BaseException:
            sock.close()
            raise
        self._starved = False
        return sock

    def _wait_for_room(self) -> None:
        if not self._open:  # else the end of one of ours makes us try again
            self._retry = self._loop.call_later(_BACKLOG_RETRY_SECONDS, self._fill)

    def _look(self) -> None:
        """See whether the daemon still answers anything, once nothing has come for a while."""
        self._watch = self._loop.call_later(self._pause, self._look)
        if self._sign or not self._open or self._loop.time() - self._heard < self._pause:
            return
        with contextlib.suppress(OSError, DaemonError):
            self._sign = _Exchange("", self._connect(encode_request("version")))
            self._loop.add_reader(self._sign.sock.fileno(), self._sign_came, self._sign)

    def _sign_came(self, exchange: _Exchange) -> None:
        with contextlib.suppress(OSError):
            if exchange.sock.recv(64):
                self._heard = self._loop.time()
        self._close(exchange)
        self._sign = None

    def _readable(self, exchange: _Exchange) -> None:
        self._heard = self._loop.time()
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
        self._held += count
        _waiting.bytes += count
        if self._held > self._max + _HEADER.size * _MANY_REPLIES:
            raise TooLarge(f"{self._held} bytes in one scrape; the cap is {self._max}")
        if _waiting.is_too_much(self._held):
            raise TooLarge(f"{_waiting.bytes} bytes wait; the cap is {MAX_WAITING_BYTES}")
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
        self._answers.stopped = self.silent
        for exchange in self._open:
            self._answers.errors[exchange.prefix] = TimedOut(_early(exchange))
            self._answers.hung.append(exchange.prefix)
            self._close(exchange)
        for prefix, _ in self._todo:
            self._answers.errors[prefix] = self._not_sent()
        if not self._open and self._todo and not self._starved:
            self._answers.hung.append(self._todo[0][0])  # it does not even take connections
        self._todo.clear()
        self._open.clear()
        if not self._done.done():
            self._done.set_result(None)

    def _not_sent(self) -> DaemonError:
        if self._open:
            return TimedOut("not sent before the deadline")
        if self._starved:
            return DescriptorsMissing("no descriptor was left to ask with")
        return Busy("no room in the daemon's queue of connections")

    def _close(self, exchange: _Exchange) -> None:
        self._loop.remove_reader(exchange.sock.fileno())
        exchange.sock.close()


def _highest_descriptor() -> int:
    """New descriptors are the lowest ones that are free: above this, few are left."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(RESERVED_DESCRIPTORS, soft // 3)


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
