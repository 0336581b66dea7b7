"""Asks Ceph daemons read-only questions over their admin sockets.

One connection carries one command (`exchange.py`). The daemon serves its socket with one thread and
a backlog of five, so a batch keeps two connections under way: one being served, one waiting its
turn. More would gain nothing and could shut out other users of the socket.

This is the hot path (some 600 exchanges a scrape on a host with 60 OSDs), hence plain non-blocking
sockets with callbacks instead of streams: a third of the CPU time.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from cephqos_exporter.ceph.commands import encode_request
from cephqos_exporter.ceph.exchange import (
    MAX_REPLY_BYTES,
    Exchange,
    Held,
    NoDescriptor,
    highest_descriptor,
    translate,
)
from cephqos_exporter.ceph.readiness import Readiness
from cephqos_exporter.ceph.replies import decode_reply
from cephqos_exporter.daemon_errors import Busy, DaemonError, DescriptorsMissing, TimedOut

# What a daemon that says nothing is watched for: long enough for a busy one to say something.
SIGN_SECONDS: Final = 0.5

_IN_FLIGHT: Final = 2
_BACKLOG_RETRY_SECONDS: Final = 0.005


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
        "_open",
        "_path",
        "_pause",
        "_readiness",
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
        self._held = Held(max_bytes)
        self._highest = highest_descriptor()
        self._readiness = Readiness.of(self._loop)
        self._open: dict[Exchange, None] = {}
        self._answers = Answers()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._retry: asyncio.TimerHandle | None = None
        self._starved = False  # no descriptor was left for it
        self._heard = self._loop.time()
        self._pause = max(0.01, min(SIGN_SECONDS, (deadline - self._heard) / 4))
        self._sign: Exchange | None = None
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
        self._held.begin()
        try:
            self._fill()
            await self._done
        finally:
            self._held.end()
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
            exchange = self._connect(prefix, request)
        except BlockingIOError as exc:
            self._starved = self._starved or isinstance(exc, NoDescriptor)
            self._wait_for_room()
            return False
        except (OSError, DaemonError) as exc:
            self._todo.popleft()
            error = exc if isinstance(exc, DaemonError) else translate(exc, self._path)
            self._answers.errors[prefix] = _detached(error)
            return True
        self._todo.popleft()
        self._open[exchange] = None
        self._readiness.watch(exchange.sock.fileno(), partial(self._readable, exchange))
        return True

    def _connect(self, prefix: str, request: bytes) -> Exchange:
        exchange = Exchange(self._path, prefix, request, self._highest)
        self._starved = False
        if self._answers.pid is None:
            self._answers.pid = exchange.peer_pid()
        return exchange

    def _wait_for_room(self) -> None:
        if not self._open:  # else the end of one of ours makes us try again
            self._retry = self._loop.call_later(_BACKLOG_RETRY_SECONDS, self._fill)

    def _look(self) -> None:
        """See whether the daemon still answers anything, once nothing has come for a while."""
        self._watch = self._loop.call_later(self._pause, self._look)
        if self._sign or not self._open or self._loop.time() - self._heard < self._pause:
            return
        with contextlib.suppress(OSError, DaemonError):
            self._sign = sign = self._connect("", encode_request("version"))
            self._readiness.watch(sign.sock.fileno(), partial(self._sign_came, sign))

    def _sign_came(self, exchange: Exchange) -> None:
        try:
            if exchange.sock.recv(64):
                self._heard = self._loop.time()
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(exchange)
        self._sign = None

    def _readable(self, exchange: Exchange) -> None:
        self._heard = self._loop.time()
        try:
            body = exchange.receive(self._held)
            if body is None:
                return
            self._answers.bodies[exchange.prefix] = body
        except DaemonError as exc:
            self._answers.errors[exchange.prefix] = _detached(exc)
        except OSError as exc:
            self._answers.errors[exchange.prefix] = _detached(translate(exc, self._path))
        del self._open[exchange]
        self._close(exchange)
        self._fill()

    def _expire(self) -> None:
        self._answers.stopped = self.silent
        for exchange in self._open:
            self._answers.errors[exchange.prefix] = TimedOut(exchange.came())
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

    def _close(self, exchange: Exchange) -> None:
        self._readiness.forget(exchange.sock.fileno())
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
