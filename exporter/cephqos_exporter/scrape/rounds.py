"""Rounds: a daemon is asked and its collectors run, once for all requests that arrive in that time.

A request joins the round that is under way, or starts one. Its deadline counts from the start of
the round. So a request waits for a daemon that hangs at most until its own deadline. Requests that
arrive later do not wait, and the deadline of one request does not shorten another.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from cephqos_exporter.daemon import Daemon, DaemonView
from cephqos_exporter.daemon_errors import SourceUnavailable, TimedOut
from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText
from cephqos_exporter.not_understood import NotUnderstood, NotUnderstoodTotals
from cephqos_exporter.scrape.collect import DaemonCollectors
from cephqos_exporter.scrape.fetch import DaemonFetcher
from cephqos_exporter.scrape.part import Part
from cephqos_exporter.scrape.rendering import render

log = logging.getLogger(__name__)

# If a round ends at a request's deadline, the request waits a moment longer for its samples.
_GRACE_SECONDS: Final = 0.1
# A request that joined later than this takes no replies of an unfinished round: they may be old.
# The host's figures of the daemon are read for it, as they are most needed when it hangs.
_FRESH_SECONDS: Final = 1.0
# Above this CPU time, one daemon's replies cost too much to read: seventy times the usual.
COSTLY_SECONDS: Final = 0.25
# A daemon that costs too much twice in a row is left out for this many times its CPU time.
_REST: Final = 20.0
_COSTLY: Final = "costly"


@dataclass(slots=True)
class Waiting:
    """A request's place in a round."""

    task: "asyncio.Task[Part]"
    until: float
    fresh: bool  # whether it came when the round began

    def part(self) -> Part | None:
        """The whole part of the page, or None if the round goes on."""
        done = self.task.done() and not self.task.cancelled()
        return self.task.result() if done else None


async def wait_for(waiting: Sequence[Waiting], hurry: "asyncio.Future[None]") -> None:
    """Wait for each as long as it may take; end at once when `hurry` is done."""
    loop = asyncio.get_running_loop()
    pending = {one.task: one.until for one in waiting if not one.task.done()}
    while pending and not hurry.done():
        left = min(pending.values()) - loop.time()
        # One wait for all: to wake up for each would take time with the square of their number.
        everyone = asyncio.ensure_future(asyncio.wait(pending, timeout=max(0.0, left)))
        awaited: list[asyncio.Future[Any]] = [everyone, hurry]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            everyone.cancel()
        now = loop.time()
        pending = {task: at for task, at in pending.items() if at > now and not task.done()}


class Rounds(ABC):
    """The rounds of one daemon or source, one at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._task: asyncio.Task[Part] | None = None
        self._started = 0.0

    def join(self, seconds: float, patience: float) -> Waiting:
        """Join the round under way, or start one, for at most `seconds` since its start."""
        now = asyncio.get_running_loop().time()
        if self._task is None or self._task.done():
            self._started = now
            deadline = now + max(seconds, patience)
            self._task = asyncio.create_task(self.round(deadline), name=f"round of {self.name}")
            self._task.add_done_callback(self._over)
        until = self._started + seconds + _GRACE_SECONDS
        return Waiting(self._task, until, now - self._started < _FRESH_SECONDS)

    def _over(self, task: "asyncio.Task[Part]") -> None:
        """Keep the result of the round for the requests that wait for it."""
        if self._task is task:
            self._task = None

    @abstractmethod
    async def round(self, deadline: float) -> Part:
        """Ask and collect, by `deadline`."""

    @abstractmethod
    def so_far(self, waited: Waiting) -> Part:
        """The part so far, for a request that cannot wait longer."""

    @abstractmethod
    def failed(self) -> Part:
        """The part of a round that failed because of a defect of the exporter."""

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Speakers:
    """Decides which socket's samples count if a daemon has two, one of them stale."""

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

    One thread reads for all daemons, so replies that take a second delay all others. It takes two
    costly rounds in a row: one may contain the garbage collection of other daemons' data.
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
        collectors: DaemonCollectors,
        speakers: Speakers,
        all_rounds: "Callable[[], Iterable[DaemonRounds]]",
    ) -> None:
        super().__init__(fetcher.daemon.name)
        self.up = True  # as of the last round; assumed before the first
        self._fetcher = fetcher
        self._collectors = collectors
        self._collected: Daemon | None = None  # what the collectors were last given
        self._speakers = speakers
        self._all_rounds = all_rounds  # of the host
        self._budget = Budget()

    @property
    def daemon(self) -> Daemon:
        return self._fetcher.daemon

    @property
    def identified(self) -> bool:
        return self._fetcher.identified

    @property
    def labels(self) -> LabelText:
        return self._fetcher.labels

    async def round(self, deadline: float) -> Part:
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

    async def _round(self, deadline: float) -> Part:
        down = await self._fetcher.identify(deadline)
        if down:
            self.up = False
            self._take_cluster_of_neighbours()
            if not self._fetcher.known_by_others:
                return self._down(down)
        if not self._speakers.speaks(self):
            return Part()
        view = await self._fetcher.fetch(self._collectors.commands(self.daemon), deadline)
        self.up = not view.down
        if not self._speakers.still_speaks(self):
            return Part()  # another socket of the daemon took over
        return self._collect(view)

    def _collect(self, view: DaemonView) -> Part:
        if self._collected is not None and view.daemon != self._collected:
            self._collectors.forget(self._collected)  # it was seen without its process
        self._collected = view.daemon
        began = time.thread_time()
        part = self._collectors.part(view, self._took())
        self._budget.spent += time.thread_time() - began
        return part

    def so_far(self, waited: Waiting) -> Part:
        view = self._fetcher.so_far(fresh=waited.fresh)
        if view is None or not self._speakers.still_speaks(self):
            return self._down(TimedOut.reason)
        return self._collect(view)

    def failed(self) -> Part:
        part = self._down("error")
        if not part.nameless:
            part.success = self._collectors.all_failed()
        return part

    async def close(self) -> None:
        await super().close()
        await self._fetcher.close()

    def forget(self) -> None:
        """Drop what collectors know of the daemon."""
        self._collectors.forget(self.daemon)

    def named(self, part: Part) -> Part:
        """The part with the cluster of a daemon that never answered, now that others have."""
        if not part.nameless:
            return part
        self._take_cluster_of_neighbours()
        return replace(part, labels=self.labels)

    def _take_cluster_of_neighbours(self) -> None:
        """Until the daemon says its cluster, take that of the others in its directory."""
        directory = self.daemon.socket.parent
        daemons = (rounds.daemon for rounds in self._all_rounds() if rounds.identified)
        clusters = {it.cluster for it in daemons if it.socket.parent == directory}
        self._fetcher.suppose(clusters - {""})

    def _took(self) -> float:
        return asyncio.get_running_loop().time() - self._started

    def _down(self, reason: str) -> Part:
        nameless = not self._fetcher.identified
        return Part(labels=self.labels, down=reason, nameless=nameless, took=self._took())


class PageSource(Protocol):
    """Something about the cluster rather than a daemon of this host (`--role cluster`).

    `start` is called once, before the first scrape. `collect` is called once per scrape, beside the
    daemons, and cancelled at the deadline (of the event loop's clock); what it raises costs its own
    samples only.
    """

    name: str
    not_understood: NotUnderstood

    def start(self) -> None: ...

    async def collect(self, deadline: float) -> Iterable[Family]: ...

    async def close(self) -> None: ...


class SourceRounds(Rounds):
    """The rounds of a cluster source."""

    def __init__(self, source: PageSource, not_understood: NotUnderstoodTotals) -> None:
        super().__init__(source.name)
        self.source = source
        self._not_understood = not_understood

    async def round(self, deadline: float) -> Part:
        source = self.source
        part = self.failed()
        started = time.perf_counter()
        try:
            async with asyncio.timeout_at(deadline):
                rendered = render(await source.collect(deadline))
        except SourceUnavailable as exc:
            part.rendered = [render(exc.families)]
        except TimeoutError:
            log.warning("cluster source %s gave nothing before the deadline", source.name)
        except Exception:
            log.exception("cluster source %s failed", source.name)
        else:
            part.success[source.name] = not rendered.left_out
            part.rendered = [rendered]
        part.seconds[source.name] = time.perf_counter() - started
        self._not_understood.take(source.name, source.name, source.not_understood)
        return part

    def so_far(self, waited: Waiting) -> Part:
        return self.failed()

    def failed(self) -> Part:
        return Part(success={self.name: False}, not_understood=self._not_understood)
