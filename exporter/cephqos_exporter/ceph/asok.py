"""Asks Ceph daemons read-only questions over their admin sockets.

    answers = await ask_all("/run/ceph/ceph-osd.3.asok", ["perf dump"], deadline=loop.time() + 2)
    answers.parse()["perf dump"]

One connection carries one command (`exchange.py`). The daemon serves its socket with one thread and
a backlog of five. So a batch keeps two connections under way: one is being served, one waits. More
would not be faster, and could shut out other users of the socket.

This is the hot path: some 600 exchanges a scrape on a host with 60 OSDs. So it uses plain
non-blocking sockets with callbacks, which take a third of the CPU time that streams take.
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

# Silence after which a daemon is asked for its version: a busy daemon answers something earlier.
SILENCE_SECONDS: Final = 0.5

_IN_FLIGHT: Final = 2
_BACKLOG_RETRY_SECONDS: Final = 0.005


@dataclass(slots=True)
class Answers:
    """What a daemon answered: a reply or an error by command, and its pid.

    Replies are parsed one daemon at a time, by `parse`: as objects they are ten times their size,
    and those of all daemons of a host come nearly at once.
    """

    bodies: dict[str, bytes | bytearray] = field(default_factory=dict)
    errors: dict[str, DaemonError] = field(default_factory=dict)
    # Commands that were under way at the deadline, without those that waited behind them.
    hung: list[str] = field(default_factory=list)
    pid: int | None = None  # None: never connected, or in a PID namespace that we cannot see
    stopped: bool = False  # at the deadline it answered nothing any more, not even `version`

    def so_far(self, asked: Iterable[str], *, stopped: bool) -> "Answers":
        """A copy of the answers that came already; commands without one have TimedOut."""
        missing = [c for c in asked if c not in self.bodies and c not in self.errors]
        late = {prefix: TimedOut("not yet") for prefix in missing}
        return Answers(dict(self.bodies), self.errors | late, [], self.pid, stopped)

    def parse(self) -> dict[str, Any]:
        """The parsed replies; those that cannot be parsed become errors."""
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
        error = answers.errors.pop(prefix)
        error.pid = answers.pid
        raise error
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

    While nothing comes, `version` is asked on a third connection. The answer distinguishes a daemon
    with a command that hangs from one that has stopped.
    """

    __slots__ = (
        *("_answers", "_deadline", "_done", "_heard_at", "_held", "_highest", "_loop", "_path"),
        *("_no_descriptor_left", "_readiness", "_retry_timer", "_silence", "_silence_timer"),
        *("_under_way", "_unsent", "_version_exchange"),
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
        self._unsent = deque(requests)
        self._deadline = deadline
        self._held = Held(max_bytes)
        self._highest = highest_descriptor()
        self._readiness = Readiness.of(self._loop)
        self._under_way: dict[Exchange, None] = {}
        self._answers = Answers()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._retry_timer: asyncio.TimerHandle | None = None
        self._no_descriptor_left = False  # for the last connection that was tried
        self._heard_at = self._loop.time()  # when the daemon last sent anything
        # Seconds without a byte after which the daemon is asked for its version.
        self._silence = max(0.01, min(SILENCE_SECONDS, (deadline - self._heard_at) / 4))
        self._silence_timer: asyncio.TimerHandle | None = None
        self._version_exchange: Exchange | None = None

    @property
    def answers(self) -> Answers:
        """What came so far."""
        return self._answers

    @property
    def silent(self) -> bool:
        """Whether nothing came for a while, although commands are under way."""
        return bool(self._under_way) and self._loop.time() - self._heard_at > 2.5 * self._silence

    async def run(self) -> Answers:
        timer = self._loop.call_at(self._deadline, self._expire)
        if len(self._unsent) > 1:  # a single command is late either way
            self._silence_timer = self._loop.call_later(self._silence, self._check_silence)
        self._held.begin()
        try:
            self._fill()
            await self._done
        finally:
            self._held.end()
            timer.cancel()
            for handle in filter(None, (self._silence_timer, self._retry_timer)):
                handle.cancel()
            for exchange in (*self._under_way, *filter(None, [self._version_exchange])):
                self._close(exchange)
        return self._answers

    def _fill(self) -> None:
        self._retry_timer = None
        while self._unsent and len(self._under_way) < _IN_FLIGHT:
            if not self._start(*self._unsent[0]):
                break
        if not self._unsent and not self._under_way and not self._done.done():
            self._done.set_result(None)

    def _start(self, prefix: str, request: bytes) -> bool:
        """Open the next connection; False if the daemon or this process has no room for it now."""
        try:
            exchange = self._connect(prefix, request)
        except BlockingIOError as exc:
            if isinstance(exc, NoDescriptor):
                self._no_descriptor_left = True
            if not self._under_way:  # else the end of one of our connections calls `_fill`
                self._retry_timer = self._loop.call_later(_BACKLOG_RETRY_SECONDS, self._fill)
            return False
        except (OSError, DaemonError) as exc:
            self._unsent.popleft()
            error = exc if isinstance(exc, DaemonError) else translate(exc, self._path)
            self._answers.errors[prefix] = _detached(error)
            return True
        self._unsent.popleft()
        self._under_way[exchange] = None
        self._readiness.watch(exchange.sock.fileno(), partial(self._readable, exchange))
        return True

    def _connect(self, prefix: str, request: bytes) -> Exchange:
        exchange = Exchange(self._path, prefix, request, self._highest)
        self._no_descriptor_left = False
        if self._answers.pid is None:
            self._answers.pid = exchange.peer_pid()
        return exchange

    def _check_silence(self) -> None:
        """Ask for the version if nothing has come for a while."""
        self._silence_timer = self._loop.call_later(self._silence, self._check_silence)
        quiet = self._loop.time() - self._heard_at
        if self._version_exchange or not self._under_way or quiet < self._silence:
            return
        with contextlib.suppress(OSError, DaemonError):
            self._version_exchange = exchange = self._connect("", encode_request("version"))
            self._readiness.watch(exchange.sock.fileno(), partial(self._version_came, exchange))

    def _version_came(self, exchange: Exchange) -> None:
        try:
            if exchange.sock.recv(64):
                self._heard_at = self._loop.time()
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(exchange)
        self._version_exchange = None

    def _readable(self, exchange: Exchange) -> None:
        self._heard_at = self._loop.time()
        try:
            body = exchange.receive(self._held)
            if body is None:
                return
            self._answers.bodies[exchange.prefix] = body
        except DaemonError as exc:
            self._answers.errors[exchange.prefix] = _detached(exc)
        except OSError as exc:
            self._answers.errors[exchange.prefix] = _detached(translate(exc, self._path))
        del self._under_way[exchange]
        self._close(exchange)
        self._fill()

    def _expire(self) -> None:
        self._answers.stopped = self.silent
        for exchange in self._under_way:
            self._answers.errors[exchange.prefix] = TimedOut(exchange.came())
            self._answers.hung.append(exchange.prefix)
            self._close(exchange)
        for prefix, _ in self._unsent:
            self._answers.errors[prefix] = self._not_sent()
        if not self._under_way and self._unsent and not self._no_descriptor_left:
            self._answers.hung.append(self._unsent[0][0])  # the daemon takes no connections
        self._unsent.clear()
        self._under_way.clear()
        if not self._done.done():
            self._done.set_result(None)

    def _not_sent(self) -> DaemonError:
        if self._under_way:
            return TimedOut("not sent before the deadline")
        if self._no_descriptor_left:
            return DescriptorsMissing("no descriptor was left to ask with")
        return Busy("no room in the daemon's queue of connections")

    def _close(self, exchange: Exchange) -> None:
        self._readiness.forget(exchange.sock.fileno())
        exchange.sock.close()


def _detached(error: DaemonError) -> DaemonError:
    """The error without its tracebacks.

    Their frames refer to the Answers that the error is stored in. This cycle would keep a daemon's
    replies in memory until the next full garbage collection.
    """
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error
