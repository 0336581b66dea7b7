"""Rounds: one daemon asked, its collectors run, for all requests that come meanwhile.

A request joins the round that is under way, or starts one, and waits for it no longer than it may
since the round began. So a daemon that hangs costs each request its own deadline once, and costs
those that come while it hangs nothing; how long one of them is ready to wait costs no other.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cephqos_exporter.ceph.pids import process_start
from cephqos_exporter.daemon import Collector, Command, DaemonView, Host, ReplyMissing
from cephqos_exporter.daemon_errors import ConnectionRefused, SocketGone, TimedOut, UnknownCommand
from cephqos_exporter.fetch import DaemonFetcher, Fetched
from cephqos_exporter.labels import LabelText, render_labels
from cephqos_exporter.rendering import Rendered, Renderer
from cephqos_exporter.report import DaemonReport, RoundOutcome
from cephqos_exporter.validity import Seen

log = logging.getLogger(__name__)

# Asked where no collector asks anything at this scrape, so that "up" is seen and not assumed.
_ALIVE = Command("version")

# A round that ends at a request's deadline is waited for a moment longer, for its samples.
_GRACE_SECONDS: Final = 0.1
# A request that joined later than this does not take over what a round has so far: it may be old.
_FRESH_SECONDS: Final = 1.0
# Bytes that a series takes on a page, at most, on average: labels can be long.
_BYTES_PER_SERIES: Final = 512
# A collector that fails on a daemon starts again with it, so often at most.
_ANEW_SECONDS: Final = 30.0
# CPU time to read one daemon's replies that is too much: seventy times the usual.
COSTLY_SECONDS: Final = 0.25
# A daemon that costs so much twice in a row rests so many times as long.
_REST: Final = 20.0
_COSTLY: Final = "costly"
# Reasons that say that nobody listens at the socket.
_DEAD: Final = frozenset({ConnectionRefused.reason, SocketGone.reason})


@dataclass(slots=True)
class Waiting:
    """A request's place in a round."""

    task: "asyncio.Task[RoundOutcome]"
    until: float
    fresh: bool  # whether it came when the round began

    def outcome(self) -> RoundOutcome | None:
        """The whole outcome, or None if the round goes on."""
        done = self.task.done() and not self.task.cancelled()
        return self.task.result() if done else None


async def wait_for(waiting: Sequence[Waiting], hurry: "asyncio.Future[None]") -> None:
    """Wait for each as long as it may take; end at once when `hurry` is done."""
    loop = asyncio.get_running_loop()
    pending = {one.task: one.until for one in waiting if not one.task.done()}
    while pending and not hurry.done():
        left = min(pending.values()) - loop.time()
        # One wait for all of them: to be woken by each would cost the square of their number.
        everyone = asyncio.ensure_future(asyncio.wait(pending, timeout=max(0.0, left)))
        awaited: list[asyncio.Future[Any]] = [everyone, hurry]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            everyone.cancel()
        now = loop.time()
        pending = {task: at for task, at in pending.items() if at > now and not task.done()}


class Rounds:
    """The rounds of one daemon or source, one at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._task: asyncio.Task[RoundOutcome] | None = None
        self._started = 0.0

    def join(self, seconds: float, patience: float) -> Waiting:
        """Take part in the round under way, or start one, for at most `seconds` since it began."""
        now = asyncio.get_running_loop().time()
        if self._task is None or self._task.done():
            self._started = now
            deadline = now + max(seconds, patience)
            self._task = asyncio.create_task(self.round(deadline), name=f"round of {self.name}")
            self._task.add_done_callback(self._over)
        until = self._started + seconds + _GRACE_SECONDS
        return Waiting(self._task, until, now - self._started < _FRESH_SECONDS)

    def _over(self, task: "asyncio.Task[RoundOutcome]") -> None:
        """Leave the outcome to those who wait for it: it has the daemon's part of a page."""
        if self._task is task:
            self._task = None

    async def round(self, deadline: float) -> RoundOutcome:
        raise NotImplementedError

    def so_far(self, waited: Waiting) -> RoundOutcome:
        """What the round under way has for a request that can wait no longer."""
        raise NotImplementedError

    def failed(self) -> RoundOutcome:
        """What stands for a round that ended in a defect of ours."""
        raise NotImplementedError

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Speakers:
    """Whose samples count where two sockets speak for one daemon, one of them left behind."""

    def __init__(self) -> None:
        self._by_labels: dict[LabelText, DaemonRounds] = {}

    def speaks(self, rounds: "DaemonRounds") -> bool:
        speaker = self._by_labels.setdefault(rounds.labels, rounds)
        if speaker is not rounds and not speaker.up:
            speaker = self._by_labels[rounds.labels] = rounds
        return speaker is rounds

    def still_speaks(self, rounds: "DaemonRounds") -> bool:
        return self._by_labels.get(rounds.labels) is rounds

    def drop(self, rounds: "DaemonRounds") -> None:
        if self.still_speaks(rounds):
            del self._by_labels[rounds.labels]


class Budget:
    """What reading a daemon's replies costs, and how long it is left out if that is too much.

    One thread reads for all daemons: who makes it work for a second holds up all others. Twice in a
    row, as garbage of others may be collected in one daemon's time.
    """

    def __init__(self) -> None:
        self.spent = 0.0  # CPU seconds in this round
        self.rests_until = 0.0
        self._costly_before = False

    def settle(self, now: float) -> None:
        """End a round."""
        costly = self.spent > COSTLY_SECONDS
        if costly and self._costly_before:
            self.rests_until = now + self.spent * _REST
        self._costly_before = costly
        self.spent = 0.0


class DaemonRounds(Rounds):
    """The rounds of one admin socket, from its appearance to the daemon's restart or end."""

    def __init__(
        self,
        fetcher: DaemonFetcher,
        *,
        host: Host,
        collectors: Sequence[Collector],
        speakers: Speakers,
        max_series: int,
    ) -> None:
        self.daemon = self._unidentified = fetcher.unidentified
        super().__init__(self.daemon.name)
        self.labels = render_labels(self.daemon.labels)
        self.up = True  # as of the last round; no doubt before the first
        self._fetcher = fetcher
        self._host = host
        self._collectors = collectors
        self._speakers = speakers
        self._max_series = max_series
        self._renderers = {collector.name: Renderer() for collector in collectors}
        self._failing: set[str] = set()  # collectors, as of the last round
        self._retry_at: dict[str, float] = {}  # collectors -> when they may start again
        self._budget = Budget()

    async def round(self, deadline: float) -> RoundOutcome:
        loop = asyncio.get_running_loop()
        if loop.time() < self._budget.rests_until:
            return self._down(_COSTLY)
        try:
            return await self._round(deadline)
        finally:
            self._settle(loop.time())

    def _settle(self, now: float) -> None:
        self._budget.spent += self._fetcher.take_spent()
        spent = self._budget.spent
        self._budget.settle(now)
        if now < self._budget.rests_until:
            seconds = self._budget.rests_until - now
            text = "reading the replies of %s took %.2f s of CPU: it is left out for %.0f s"
            log.warning(text, self.daemon.name, spent, seconds)

    async def _round(self, deadline: float) -> RoundOutcome:
        reason = await self._fetcher.identify(deadline)
        if self._fetcher.daemon is None:
            return self._down(reason)
        if self._fetcher.daemon is not self.daemon:
            if self.daemon is not self._unidentified:  # it was seen without its process
                for collector in self._collectors:
                    self._forget(collector)
            self.daemon = self._fetcher.daemon
            self.labels = render_labels(self.daemon.labels)
        if not self._speakers.speaks(self):
            return RoundOutcome()
        fetched = await self._fetcher.fetch(self._commands(), deadline)
        self.up = fetched.up
        if not self._speakers.still_speaks(self):
            return RoundOutcome()  # another socket of the daemon took over meanwhile
        return self._collect(fetched)

    def so_far(self, waited: Waiting) -> RoundOutcome:
        fetched = self._fetcher.so_far() if waited.fresh else None
        if self._fetcher.daemon is None or not self._speakers.still_speaks(self):
            return self._down(TimedOut.reason)
        if fetched is None:
            return RoundOutcome(fared=self._fared(False, TimedOut.reason))
        return self._collect(fetched)

    def failed(self) -> RoundOutcome:
        outcome = self._down("error")
        if outcome.fared is not None:
            outcome.fared.success = {collector.name: False for collector in self._collectors}
        return outcome

    async def close(self) -> None:
        await super().close()
        await self._fetcher.close()

    def named_by(self, others: "Iterable[DaemonRounds]", fared: DaemonReport) -> DaemonReport:
        """The report of a daemon that never answered, in the cluster of all of its directory."""
        daemon = self.daemon
        if not daemon.cluster:
            clusters = {
                other.daemon.cluster
                for other in others
                if other.daemon.cluster and other.daemon.socket.parent == daemon.socket.parent
            }
            if len(clusters) == 1:
                daemon = replace(daemon, cluster=clusters.pop())
        return replace(fared, labels=render_labels(daemon.labels))

    def _fared(self, up: bool, reason: str) -> DaemonReport:
        took = asyncio.get_running_loop().time() - self._started
        return DaemonReport(self.labels, up, reason, took)

    def _down(self, reason: str) -> RoundOutcome:
        fared = self._fared(False, reason)
        if self._fetcher.daemon is None:
            return RoundOutcome(nameless=fared)
        return RoundOutcome(fared=fared)

    def _commands(self) -> Collection[Command]:
        """What the collectors want to know of the daemon in this round."""
        found: list[Command] = []
        for collector in self._collectors:
            try:
                found += collector.commands(self.daemon)
            except Exception:
                log.exception("collector %s: no commands for %s", collector.name, self.daemon.name)
        if all(command.ttl for command in found):
            found.append(_ALIVE)
        return found

    def _collect(self, fetched: Fetched) -> RoundOutcome:
        """Run the collectors on what came: each one's failure is its own."""
        fared = self._fared(fetched.up, fetched.reason)
        outcome = RoundOutcome(fared=fared)
        view = DaemonView(
            daemon=self.daemon,
            labels=self.labels,
            replies=fetched.replies,
            errors=fetched.errors,
            time=time.time(),
            host=self._host,
        )
        page = _DaemonPage(self._max_series)
        began = time.thread_time()
        if fetched.reason in _DEAD or not (fetched.up or self._lives()):
            # Its process number is another's by now, or may be.
            fared.success = {collector.name: False for collector in self._collectors}
            return outcome
        for collector in self._collectors:
            started = time.perf_counter()
            try:
                families = collector.collect(view)
                left_out = page.add(self._renderers[collector.name].render(families, page.seen))
            except ReplyMissing as exc:
                # A command that this release does not have: the collector is not for this daemon.
                if exc.reason != UnknownCommand.reason:
                    fared.success[collector.name] = False
                    log.debug("collector %s: %s: %s", collector.name, view.daemon.name, exc)
            except Exception:
                fared.success[collector.name] = False
                self._log_failure(collector)
                self._begin_anew(collector)
            else:
                fared.success[collector.name] = not left_out
                self._failing.discard(collector.name)
                if left_out:
                    self._begin_anew(collector)
            outcome.seconds[collector.name] = time.perf_counter() - started
        self._budget.spent += time.thread_time() - began
        outcome.parts, fared.left_out = page.parts, page.left_out
        return outcome

    def _lives(self) -> bool:
        """Whether a daemon that does not answer is the process that did."""
        pid, start = self.daemon.pid, self.daemon.start
        return pid is None or process_start(self._host, pid) == start

    def _begin_anew(self, collector: Collector) -> None:
        """Drop what a collector and the fetcher know of the daemon: one bad reply may be in it.

        Not at every scrape for as long as it fails, as what is dropped is asked for again.
        """
        now = asyncio.get_running_loop().time()
        if now < self._retry_at.get(collector.name, 0.0):
            return
        self._retry_at[collector.name] = now + _ANEW_SECONDS
        self._fetcher.drop_kept()
        self._forget(collector)

    def _forget(self, collector: Collector) -> None:
        try:
            collector.forget(self.daemon)
        except Exception:
            log.exception("collector %s could not forget %s", collector.name, self.daemon.name)

    def _log_failure(self, collector: Collector) -> None:
        """With its traceback the first time, not at every scrape for as long as it lasts."""
        level = logging.DEBUG if collector.name in self._failing else logging.ERROR
        self._failing.add(collector.name)
        text = "collector %s failed on %s"
        log.log(level, text, collector.name, self.daemon.name, exc_info=True)


class _DaemonPage:
    """One daemon's part of a page, of bounded size, each series once."""

    def __init__(self, max_series: int) -> None:
        self.parts: list[Rendered] = []
        self.left_out: dict[str, int] = {}
        self.seen = Seen()
        self._series_left = max_series
        self._bytes_left = max_series * _BYTES_PER_SERIES

    def add(self, rendered: Rendered) -> int:
        """Add what a collector gave; how many samples had to be left out."""
        left_out = rendered.left_out
        if left_out:
            self._count("invalid", left_out)
        if rendered.samples > self._series_left or rendered.size > self._bytes_left:
            self._count("limit", rendered.samples)
            return left_out + rendered.samples
        self._series_left -= rendered.samples
        self._bytes_left -= rendered.size
        self.parts.append(rendered)
        return left_out

    def _count(self, reason: str, samples: int) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + samples
