"""Keeps one daemon's connection state between scrapes: identity, cached replies, health.

If a daemon did not answer by the deadline, the next scrapes do not ask it, so they lose no time. It
is probed in the background over one connection that waits. After a prompt answer to a probe,
scrapes ask it again.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zlib import crc32

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.commands import encode_request
from cephqos_exporter.ceph.discovery import Socket, fsid_in_path, identify, identify_process
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host
from cephqos_exporter.daemon_errors import (
    Busy,
    DaemonError,
    ErrorReply,
    TimedOut,
    UnknownCommand,
)
from cephqos_exporter.labels import render_labels

log = logging.getLogger(__name__)

# A probe waits this long on one connection before it opens another one. A connection that is given
# up stays in the daemon's backlog until the daemon wakes, so there should be few.
PROBE_PATIENCE_SECONDS: Final = 60.0
# A daemon that needs longer than this for `version` would still hold up a scrape.
PROMPT_SECONDS: Final = 0.5
_PROBE_PAUSE_SECONDS: Final = 1.0
# A daemon opens its socket before it has registered all of its commands. So a command that it does
# not know is tried again, at the next scrape at first: an early one must not make it absent.
UNKNOWN_SECONDS: Final = 3.0
# A daemon logs a line for each unknown command, so the time between tries doubles, up to this.
UNKNOWN_SECONDS_AT_MOST: Final = 21_600.0
_ASK_NOW: Final = (0.0, 0.0)  # of a command that is known, see DaemonFetcher._unknown
# A process that could not be identified or read is looked for again after this time.
PROCESS_SECONDS: Final = 60.0
# Most bytes of one daemon's replies that are kept between scrapes; 10 kB is usual.
KEPT_BYTES: Final = 2 << 20


@dataclass(slots=True)
class _Kept:
    """A reply that is used again until `share` of the command's time to live is over."""

    value: Any
    time: float
    share: float
    body: bytes | bytearray  # as it came: the same bytes are not parsed again


class _UnderWay(NamedTuple):
    """A fetch that waits for replies."""

    batch: asok.Batch
    ask: dict[str, float]  # the commands that were sent, and their longest time to live
    replies: dict[str, Any]  # kept ones of the other commands
    errors: dict[str, str]


@lru_cache(256)  # most daemons are asked the same at most scrapes
def _lifetimes(commands: tuple[Command, ...]) -> Mapping[str, tuple[float, float]]:
    """Each command once, with the shortest time to live that is asked for, and the longest."""
    lifetimes: dict[str, tuple[float, float]] = {}
    for command in commands:
        least, most = lifetimes.get(command.prefix, (math.inf, 0.0))
        lifetimes[command.prefix] = (min(least, command.ttl), max(most, command.ttl))
    return lifetimes


class DaemonFetcher:
    """One admin socket, from its appearance to the daemon's restart or end."""

    def __init__(self, socket: Socket, host: Host) -> None:
        self.socket = socket
        self._host = host
        self._path = str(socket.path)
        self.identified = False  # it has said who it is
        path = socket.path  # its name until then
        self._set_daemon(Daemon(socket.kind, socket.id, fsid_in_path(path), path))
        self._cluster_in_path = self.daemon.cluster
        self._look_at = 0.0  # when to look for its process, if that is not known
        self._kept: dict[str, _Kept] = {}
        # Commands it does not have -> when to ask again, and how long it is until then.
        self._unknown: dict[str, tuple[float, float]] = {}
        self._hung: set[str] = set()
        self._silent = False  # hangs altogether, not in one command
        self._told = ""  # why it could not be identified, as last logged
        self._probe: asyncio.Task[None] | None = None
        self._under_way: _UnderWay | None = None
        self._spent = 0.0  # CPU seconds
        # Kept replies of all daemons must not expire in the same scrape. So the first time to live
        # is between a half and all of it, by daemon.
        self._share = 0.5 + (crc32(os.fsencode(self._path)) % 1024) / 2048

    def _set_daemon(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.labels = render_labels(daemon.labels)

    def suppose(self, clusters: Collection[str]) -> None:
        """Until the daemon says its cluster, take the one that its neighbours are in."""
        if not self.identified and not self._cluster_in_path:
            cluster = next(iter(clusters)) if len(clusters) == 1 else ""
            if cluster != self.daemon.cluster:
                self._set_daemon(replace(self.daemon, cluster=cluster))

    @property
    def known_by_others(self) -> bool:
        """It never said who it is, and hangs; but its neighbours say the cluster, and its socket or
        the host the process. So there are the host's figures of it."""
        known = bool(self.daemon.cluster) and self.daemon.pid is not None
        return not self.identified and self._silent and known

    @property
    def probing(self) -> bool:
        return self._probe is not None and not self._probe.done()

    async def identify(self, deadline: float) -> str:
        """Ask once which daemon this is. Returns the reason if it does not say."""
        if self.identified or self._silent:
            await self._find_process()
            return "" if self.identified else TimedOut.reason
        self._look_at = asyncio.get_running_loop().time() + PROCESS_SECONDS
        try:
            self._set_daemon(await identify(self.socket, self._host, deadline=deadline))
        except DaemonError as exc:
            if exc.reason != self._told:  # not at every scrape
                self._told = exc.reason
                log.warning("cannot ask which daemon this is: %s: %s", self.socket.path.name, exc)
            if isinstance(exc, TimedOut | Busy):
                self._missed(silent=True, hung=())
                # It is most needed to know what the host shows of it.
                found = await identify_process(self.daemon, self.socket, self._host, exc.pid)
                self._set_daemon(found)
            return exc.reason
        self.identified = True
        return ""

    async def _find_process(self) -> None:
        now = asyncio.get_running_loop().time()
        if self.daemon.pid is None and now >= self._look_at:
            self._look_at = now + PROCESS_SECONDS
            self._set_daemon(await identify_process(self.daemon, self.socket, self._host))

    async def fetch(self, commands: Iterable[Command], deadline: float) -> DaemonView:
        """Every command's reply by `deadline`, from the daemon or kept from an earlier scrape."""
        replies: dict[str, Any] = {}
        errors: dict[str, str] = {}
        ask: dict[str, float] = {}
        now = asyncio.get_running_loop().time()
        for prefix, (least, most) in _lifetimes(tuple(commands)).items():
            kept = self._kept.get(prefix)
            if kept is not None and now - kept.time < least * kept.share:
                replies[prefix] = kept.value
            elif now < self._unknown.get(prefix, _ASK_NOW)[0]:
                errors[prefix] = UnknownCommand.reason
            elif self._silent or prefix in self._hung:
                errors[prefix] = TimedOut.reason
            else:
                ask[prefix] = most
        if not ask:
            return self._view(replies, errors, TimedOut.reason if self._silent else "")
        requests = [(prefix, encode_request(prefix)) for prefix in ask]
        batch = asok.Batch(self._path, requests, deadline)
        self._under_way = _UnderWay(batch, ask, replies, errors)
        try:
            answers = await batch.run()
        finally:
            self._under_way = None
        view = self._read(answers, ask, replies, errors)
        if answers.hung:
            self._missed(silent=bool(view.down), hung=answers.hung)
        return view

    def so_far(self, *, fresh: bool) -> DaemonView | None:
        """The replies so far, while `fetch` waits for the rest; None if it does not wait.

        Unless `fresh`, what came of them is too old, and only kept replies are given.
        """
        if self._under_way is None:
            return None
        batch, ask, replies, errors = self._under_way
        came = batch.answers if fresh else asok.Answers()
        answers = came.so_far(ask, stopped=batch.silent or not fresh)
        return self._read(answers, ask, dict(replies), dict(errors))

    def take_spent(self) -> float:
        """CPU seconds spent on reading replies since the last call."""
        spent, self._spent = self._spent, 0.0
        return spent

    def _read(
        self,
        answers: asok.Answers,
        ttls: Mapping[str, float],
        replies: dict[str, Any],
        errors: dict[str, str],
    ) -> DaemonView:
        """The daemon's answers together with the kept replies."""
        began = time.thread_time()
        now = asyncio.get_running_loop().time()
        bodies = dict(answers.bodies)
        parsed = self._unchanged(answers.bodies) | answers.parse()
        for prefix, value in parsed.items():
            if ttls[prefix] > 0:
                self._keep(prefix, value, now, bodies[prefix])
            replies[prefix] = value
        answered = bool(parsed)
        for prefix, error in answers.errors.items():
            errors[prefix] = error.reason
            self._kept.pop(prefix, None)
            if isinstance(error, UnknownCommand):
                _, waited = self._unknown.get(prefix, _ASK_NOW)
                wait = min(max(UNKNOWN_SECONDS, 2 * waited), UNKNOWN_SECONDS_AT_MOST)
                self._unknown[prefix] = now + wait, wait
            answered = answered or isinstance(error, UnknownCommand | ErrorReply)
            log.debug("%s: %s: %s", self._path, prefix, error)
        down = ""
        if answers.stopped:
            down = TimedOut.reason
        elif not answered:
            down = next(iter(answers.errors.values())).reason
        self._spent += time.thread_time() - began
        return self._view(replies, errors, down)

    def _view(self, replies: dict[str, Any], errors: dict[str, str], down: str) -> DaemonView:
        now = time.time()
        return DaemonView(self.daemon, self.labels, replies, errors, now, self._host, down)

    def _unchanged(self, bodies: dict[str, bytes | bytearray]) -> dict[str, Any]:
        """Remove the bodies that are the same as the kept ones, and return the kept values."""
        kept = {prefix: self._kept[prefix] for prefix in bodies if prefix in self._kept}
        same = {
            prefix: reply.value for prefix, reply in kept.items() if reply.body == bodies[prefix]
        }
        for prefix in same:
            del bodies[prefix]
        return same

    def _keep(self, prefix: str, value: Any, now: float, body: bytes | bytearray) -> None:
        """Keep a reply, unless it is too large to keep."""
        before = self._kept.pop(prefix, None)
        if len(body) + sum(len(kept.body) for kept in self._kept.values()) <= KEPT_BYTES:
            share = self._share if before is None else 1.0
            self._kept[prefix] = _Kept(value, now, share, body)

    def drop_kept(self) -> None:
        """Ask for everything again."""
        self._kept.clear()

    def _missed(self, *, silent: bool, hung: Iterable[str]) -> None:
        """A deadline passed: the daemon, or some of its commands, are left out until well."""
        self._silent = silent
        self._hung.update(hung)
        if not self.probing:
            self._probe = asyncio.create_task(
                self._probe_until_well(), name=f"probe of {self.socket.id}"
            )

    async def _probe_until_well(self) -> None:
        log.warning("%s does not answer; probing it in the background", self._path)
        # One command may hang while the others work (each has its own thread or fiber), and later
        # the whole daemon may hang.
        while self._silent or self._hung:
            prefix = "version" if self._silent else min(self._hung)
            await self._until_prompt(prefix)
            if self._silent:
                self._silent = prefix != "version"
            else:
                self._hung.discard(prefix)
        log.info("%s answers again", self._path)

    async def _until_prompt(self, prefix: str) -> None:
        """Ask until an answer comes fast enough for a scrape. A quick error is good, too."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            # The reply is not parsed: only in a scrape is the cost of that limited.
            deadline = started + PROBE_PATIENCE_SECONDS
            answers = await asok.ask_all(self._path, [prefix], deadline=deadline)
            for error in answers.errors.values():
                log.debug("probe of %s: %s: %s", self._path, prefix, error)
            if loop.time() - started < PROMPT_SECONDS:
                return
            await asyncio.sleep(_PROBE_PAUSE_SECONDS)

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)
