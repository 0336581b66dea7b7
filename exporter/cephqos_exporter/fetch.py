"""Keeps one daemon's connection state between scrapes: identity, cached replies, health.

A daemon that did not answer by the deadline is left alone by the scrapes that follow, and probed in
the background over a single connection that waits, so that it costs them neither time nor
connections. It is asked again once it has answered a probe promptly.
"""

import asyncio
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.discovery import Socket, fsid_in_path, identify
from cephqos_exporter.errors import (
    Busy,
    CommandFailed,
    DaemonError,
    TimedOut,
    UnknownCommand,
)
from cephqos_exporter.model import Command, Daemon, Host

log = logging.getLogger(__name__)

# A probe waits this long on one connection before it tries another one: each that is given up
# stays in the daemon's backlog until it wakes, so few are better than many.
PROBE_PATIENCE_SECONDS: Final = 60.0
# A daemon that needs longer than this for `version` would still hold up a scrape.
PROMPT_SECONDS: Final = 0.5
_PROBE_PAUSE_SECONDS: Final = 1.0
# A daemon that starts opens its socket before it has registered all of its commands, so that one it
# does not know is asked again: not for ever absent because a scrape came early.
UNKNOWN_SECONDS: Final = 15.0


class SharedReplies:
    """Makes daemons of one version share one copy of a reply that never changes.

    A parsed schema takes about a megabyte; sixty daemons would hold sixty of them.
    """

    _KEPT = 8  # versions side by side during an upgrade, and then some

    def __init__(self) -> None:
        self._known: dict[str, list[Any]] = {}

    def same(self, prefix: str, value: Any) -> Any:
        known = self._known.setdefault(prefix, [])
        for candidate in known:
            if candidate == value:
                return candidate
        known.append(value)
        del known[: -self._KEPT]
        return value


@dataclass(slots=True)
class Fetched:
    """What a scrape got from one daemon."""

    replies: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    up: bool = False
    reason: str = ""  # why it is not up
    asked: int = 0


@dataclass(slots=True)
class _Kept:
    value: Any
    time: float
    share: float  # of the time to live


def _lifetimes(commands: Iterable[Command]) -> dict[str, tuple[float, float]]:
    """Each command once: the freshness that the strictest wants, and the longest to keep it for."""
    found: dict[str, tuple[float, float]] = {}
    for command in commands:
        least, most = found.get(command.prefix, (math.inf, 0.0))
        found[command.prefix] = (min(least, command.ttl), max(most, command.ttl))
    return found


class DaemonFetcher:
    """One admin socket, from its appearance to the daemon's restart or end."""

    def __init__(self, socket: Socket, host: Host, shared: SharedReplies) -> None:
        self.socket = socket
        self._host = host
        self._shared = shared
        self._path = str(socket.path)
        self.daemon: Daemon | None = None  # known once it has answered
        self._kept: dict[str, _Kept] = {}
        self._unknown: dict[str, float] = {}  # commands it does not have -> when to ask again
        self._hung: set[str] = set()
        self._silent = False  # hangs altogether, not in one command
        self._told = ""  # why it could not be identified, as last logged
        self._probe: asyncio.Task[None] | None = None
        # Replies that are kept must not all expire in the same scrape: a daemon's share of the
        # time to live is between a half and all of it, the first time.
        self._share = 0.5 + (crc32(self._path.encode()) % 1024) / 2048

    @property
    def unidentified(self) -> Daemon:
        """The daemon as far as its socket's path tells."""
        path = self.socket.path
        return Daemon(self.socket.kind, self.socket.id, fsid_in_path(path), path)

    @property
    def probing(self) -> bool:
        return self._probe is not None and not self._probe.done()

    async def identify(self, deadline: float, *, fair: bool = True) -> str:
        """Learn which daemon this is, once; the reason if it does not say."""
        if self.daemon is not None:
            return ""
        if self._silent:
            return TimedOut.reason
        try:
            self.daemon = await identify(self.socket, self._host, deadline=deadline)
        except DaemonError as exc:
            if exc.reason != self._told:  # not at every scrape
                self._told = exc.reason
                log.warning("cannot ask which daemon this is: %s: %s", self.socket.path.name, exc)
            if isinstance(exc, TimedOut | Busy):
                self._missed(silent=True, hung=(), fair=fair)
            return exc.reason
        return ""

    async def fetch(
        self, commands: Iterable[Command], deadline: float, *, fair: bool = True
    ) -> Fetched:
        """Every command's reply, from the daemon or from what is still good, by `deadline`.

        Missing a deadline that is not `fair` does not make the daemon one that hangs.
        """
        result = Fetched()
        ask: dict[str, float] = {}
        now = asyncio.get_running_loop().time()
        for prefix, (least, most) in _lifetimes(commands).items():
            kept = self._kept.get(prefix)
            if kept is not None and now - kept.time < least * kept.share:
                result.replies[prefix] = kept.value
            elif now < self._unknown.get(prefix, 0.0):
                result.errors[prefix] = UnknownCommand.reason
            elif self._silent or prefix in self._hung:
                result.errors[prefix] = TimedOut.reason
            else:
                ask[prefix] = most
        if not ask:
            result.up = not self._silent
            result.reason = TimedOut.reason if self._silent else ""
            return result
        result.asked = len(ask)
        answers = await asok.ask_all(self._path, ask, deadline=deadline)
        self._digest(answers, ask, result)
        if answers.hung:
            self._missed(silent=not result.up, hung=answers.hung, fair=fair)
        return result

    def _digest(self, answers: asok.Answers, ttls: dict[str, float], result: Fetched) -> None:
        now = asyncio.get_running_loop().time()
        replies = answers.parse()
        for prefix, value in replies.items():
            ttl = ttls[prefix]
            if ttl == math.inf:
                value = self._shared.same(prefix, value)
            if ttl > 0:
                share = 1.0 if prefix in self._kept else self._share
                self._kept[prefix] = _Kept(value, now, share)
            result.replies[prefix] = value
        answered = bool(replies)
        for prefix, error in answers.errors.items():
            result.errors[prefix] = error.reason
            self._kept.pop(prefix, None)
            if isinstance(error, UnknownCommand):
                self._unknown[prefix] = now + UNKNOWN_SECONDS
            answered = answered or isinstance(error, UnknownCommand | CommandFailed)
            log.debug("%s: %s: %s", self._path, prefix, error)
        result.up = answered
        if not answered:
            result.reason = next(iter(answers.errors.values())).reason

    def _missed(self, *, silent: bool, hung: Iterable[str], fair: bool) -> None:
        """A deadline passed: the daemon is marked, or looked at if the deadline was too short."""
        if fair:
            self._silent = silent
            self._hung.update(hung)
        if not self.probing:
            look = self._probe_until_well() if fair else self._look_at(frozenset(hung))
            self._probe = asyncio.create_task(look, name=f"probe {self._path}")

    async def _look_at(self, suspects: frozenset[str]) -> None:
        """Mark the daemon, or commands of it, only if they are not prompt in the background."""
        if not await self._is_prompt("version"):
            self._silent = True
        for prefix in sorted(suspects):
            if not self._silent and not await self._is_prompt(prefix):
                self._hung.add(prefix)
        if self._silent or self._hung:
            await self._probe_until_well()

    async def _is_prompt(self, prefix: str) -> bool:
        try:
            await asok.ask(self._path, prefix, timeout=PROMPT_SECONDS)
        except (TimedOut, Busy):
            return False
        except DaemonError as exc:
            log.debug("look at %s: %s: %s", self._path, prefix, exc)
        return True

    async def _probe_until_well(self) -> None:
        log.warning("%s does not answer; probing it in the background", self._path)
        await self._until_prompt("version")
        self._silent = False
        # It may be one command that hangs while the others work (each on its own thread or fiber).
        for prefix in sorted(self._hung):
            await self._until_prompt(prefix)
            self._hung.discard(prefix)
        log.info("%s answers again", self._path)

    async def _until_prompt(self, prefix: str) -> None:
        """Ask until asking would cost a scrape no time: a quick error is as good as a reply."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await asok.ask(self._path, prefix, timeout=PROBE_PATIENCE_SECONDS)
            except DaemonError as exc:
                log.debug("probe of %s: %s: %s", self._path, prefix, exc)
            if loop.time() - started < PROMPT_SECONDS:
                return
            await asyncio.sleep(_PROBE_PAUSE_SECONDS)

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)
