"""The scrape: every daemon asked once, concurrently, under one deadline; every failure isolated.

Flow: sockets found, the union of the collectors' commands fetched from each daemon, the pure
collectors run as soon as their daemon has answered (while others still compute), the page put
together. What one daemon or one collector does wrong costs that daemon's samples of that collector.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from cephqos_exporter.ceph.discovery import Socket
from cephqos_exporter.errors import SourceUnavailable, UnknownCommand
from cephqos_exporter.exposition import Chunk, Page, render
from cephqos_exporter.fetch import DaemonFetcher, Fetched, SharedReplies
from cephqos_exporter.model import (
    Collector,
    Command,
    Daemon,
    DaemonView,
    Family,
    Host,
    LabelText,
    ReplyMissing,
    render_labels,
)

log = logging.getLogger(__name__)

# Asked where no collector asks anything at this scrape, so that "up" is seen and not assumed.
_ALIVE = Command("version")


class ClusterSource(Protocol):
    """Something about the cluster rather than a daemon of this host (`--role cluster`).

    `start` is called once, before the first scrape. `collect` is called once per scrape, beside the
    daemons, and cancelled at the deadline (of the event loop's clock); what it raises costs its own
    samples only.
    """

    name: str

    def start(self) -> None: ...

    async def collect(self, deadline: float) -> Iterable[Family]: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class DaemonReport:
    """How one daemon fared in a scrape."""

    labels: LabelText
    up: bool
    reason: str
    seconds: float
    success: dict[str, bool] = field(default_factory=dict)  # by collector; absent: not for it


@dataclass(slots=True)
class ScrapeReport:
    """How a scrape went; the `own` families are made from it."""

    fair: bool = True  # whether there was time enough to judge daemons by it
    daemons: dict[LabelText, DaemonReport] = field(default_factory=dict)
    # Those that never told their cluster; what they are called is settled last.
    nameless: list[tuple[Daemon, DaemonReport]] = field(default_factory=list)
    collector_seconds: dict[str, float] = field(default_factory=dict)
    sources: dict[str, bool] = field(default_factory=dict)
    finish: dict[str, bool] = field(default_factory=dict)
    seconds: float = 0.0
    samples: int = 0

    def add(self, report: DaemonReport) -> None:
        """Note how a daemon fared; what answered wins over a stale socket of the same name."""
        other = self.daemons.get(report.labels)
        if other is None or (report.up and not other.up):
            self.daemons[report.labels] = report

    def spend(self, collector: str, seconds: float) -> None:
        self.collector_seconds[collector] = self.collector_seconds.get(collector, 0.0) + seconds


class Reporter(Protocol):
    """Turns a report into the exporter's own families."""

    def families(self, report: ScrapeReport) -> Iterable[Family]: ...


@dataclass(slots=True)
class _Tracked:
    """A daemon between scrapes."""

    fetcher: DaemonFetcher
    daemon: Daemon
    labels: LabelText
    up: bool = True  # as of the last scrape; no doubt before the first
    failing: set[str] = field(default_factory=set)  # collectors, as of the last scrape


class Scraper:
    """Holds the daemons of this host and answers scrapes."""

    def __init__(
        self,
        *,
        host: Host,
        find: Callable[[], Sequence[Socket]],
        collectors: Sequence[Collector],
        sources: Sequence[ClusterSource] = (),
        reporter: Reporter,
    ) -> None:
        self._host = host
        self._find = find
        self._collectors = collectors
        self._sources = sources
        self._reporter = reporter
        self._shared = SharedReplies()
        self._tracked: dict[Socket, _Tracked] = {}
        # Whose samples count where two sockets speak for one daemon, one of them left behind.
        self._speakers: dict[LabelText, _Tracked] = {}
        self._running: asyncio.Task[Page] | None = None
        self._running_fair = True

    @property
    def daemons(self) -> list[Daemon]:
        """The daemons seen by the last scrape."""
        return [tracked.daemon for tracked in self._tracked.values()]

    async def page(self, timeout: float, fair: bool = True) -> Page:  # noqa: ASYNC109 - handed on
        """The page of a scrape of at most `timeout` seconds; joins one that is under way.

        Daemons are not judged by a deadline that was not `fair`, nor is a fair scrape served what
        an unfair one had the time to find.
        """
        while fair and not self._running_fair and self._running and not self._running.done():
            await asyncio.wait([self._running])
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._scrape(timeout, fair), name="scrape")
            self._running_fair = fair
        running = self._running
        try:
            return await asyncio.shield(running)
        finally:
            if self._running is running and running.done():
                self._running = None  # a page is megabytes: not to be kept until the next

    def start(self) -> None:
        """Let the sources begin with what they do between scrapes."""
        for source in self._sources:
            source.start()

    async def close(self) -> None:
        """End the probes and drop all state, once the scrape under way has ended."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        for tracked in self._tracked.values():
            self._forget(tracked.daemon)
        closing: list[Awaitable[None]] = [t.fetcher.close() for t in self._tracked.values()]
        await asyncio.gather(*closing, *(source.close() for source in self._sources))
        self._tracked.clear()

    async def _scrape(self, timeout: float, fair: bool) -> Page:  # noqa: ASYNC109
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + timeout
        report = ScrapeReport(fair=fair)
        await self._refresh()
        sources = [asyncio.create_task(self._ask(s, deadline, report)) for s in self._sources]
        daemons = [self._daemon(tracked, deadline, report) for tracked in self._tracked.values()]
        parts = await asyncio.gather(*daemons, *sources)
        for daemon, fared in report.nameless:  # now that their neighbours have answered
            fared.labels = render_labels(self._guess(daemon).labels)
            report.add(fared)
        page = Page()
        for chunks in parts:
            page.add(chunks)
        page.add(self._finish(report))
        report.seconds = loop.time() - started
        page.add_families(self._reporter.families(report))
        return page

    async def _refresh(self) -> None:
        """Take up sockets that appeared; forget daemons that went or restarted."""
        found = self._find()
        for socket in set(self._tracked).difference(found):
            tracked = self._tracked.pop(socket)
            self._forget(tracked.daemon)
            if self._speakers.get(tracked.labels) is tracked:
                del self._speakers[tracked.labels]
            await tracked.fetcher.close()
        for socket in found:
            if socket not in self._tracked:
                fetcher = DaemonFetcher(socket, self._host, self._shared)
                daemon = fetcher.unidentified
                self._tracked[socket] = _Tracked(fetcher, daemon, render_labels(daemon.labels))
        self._tracked = {socket: self._tracked[socket] for socket in found}

    def _forget(self, daemon: Daemon) -> None:
        for collector in self._collectors:
            try:
                collector.forget(daemon)
            except Exception:
                log.exception("collector %s could not forget %s", collector.name, daemon.name)

    async def _daemon(
        self, tracked: _Tracked, deadline: float, report: ScrapeReport
    ) -> list[Chunk]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        reason = await tracked.fetcher.identify(deadline, fair=report.fair)
        if tracked.fetcher.daemon is None:
            fared = DaemonReport(tracked.labels, False, reason, loop.time() - started)
            report.nameless.append((tracked.daemon, fared))
            return []
        daemon = self._known(tracked, tracked.fetcher.daemon)
        if daemon is None:
            return []
        commands = self._commands(daemon)
        fetched = await tracked.fetcher.fetch(commands, deadline, fair=report.fair)
        fared = DaemonReport(tracked.labels, fetched.up, fetched.reason, loop.time() - started)
        tracked.up = fetched.up
        if self._speakers[tracked.labels] is not tracked:
            return []  # another socket of the daemon took over meanwhile
        report.add(fared)
        return self._collect(tracked, fetched, fared, report)

    def _known(self, tracked: _Tracked, daemon: Daemon) -> Daemon | None:
        """Take the daemon's identity over; None if another socket speaks for it already."""
        if daemon is not tracked.daemon:
            tracked.daemon = daemon
            tracked.labels = render_labels(daemon.labels)
        speaker = self._speakers.setdefault(tracked.labels, tracked)
        if speaker is not tracked and not speaker.up:
            speaker = self._speakers[tracked.labels] = tracked
        return daemon if speaker is tracked else None

    def _guess(self, daemon: Daemon) -> Daemon:
        """A daemon that never answered, in the cluster of all others of its directory."""
        if daemon.cluster:
            return daemon
        clusters = {
            other.daemon.cluster
            for other in self._tracked.values()
            if other.daemon.cluster and other.daemon.socket.parent == daemon.socket.parent
        }
        return replace(daemon, cluster=clusters.pop()) if len(clusters) == 1 else daemon

    def _commands(self, daemon: Daemon) -> list[Command]:
        """What the collectors want to know of a daemon at this scrape."""
        found: list[Command] = []
        for collector in self._collectors:
            try:
                found += collector.commands(daemon)
            except Exception:
                log.exception("collector %s: no commands for %s", collector.name, daemon.name)
        if all(command.ttl for command in found):
            found.append(_ALIVE)
        return found

    def _collect(
        self, tracked: _Tracked, fetched: Fetched, fared: DaemonReport, report: ScrapeReport
    ) -> list[Chunk]:
        view = DaemonView(
            daemon=tracked.daemon,
            labels=tracked.labels,
            replies=fetched.replies,
            errors=fetched.errors,
            time=time.time(),
            host=self._host,
        )
        parts: list[Chunk] = []
        for collector in self._collectors:
            started = time.perf_counter()
            try:
                chunks, samples = render(collector.collect(view))
            except ReplyMissing as exc:
                # A command that this release does not have: the collector is not for this daemon.
                if exc.reason != UnknownCommand.reason:
                    fared.success[collector.name] = False
                    log.debug("collector %s: %s: %s", collector.name, view.daemon.name, exc)
            except Exception:
                fared.success[collector.name] = False
                self._log_failure(collector, tracked)
            else:
                fared.success[collector.name] = True
                tracked.failing.discard(collector.name)
                parts += chunks
                report.samples += samples
            report.spend(collector.name, time.perf_counter() - started)
        return parts

    async def _ask(
        self, source: ClusterSource, deadline: float, report: ScrapeReport
    ) -> list[Chunk]:
        started = time.perf_counter()
        chunks: list[Chunk] = []
        report.sources[source.name] = False
        try:
            async with asyncio.timeout_at(deadline):
                chunks, samples = render(await source.collect(deadline))
        except SourceUnavailable as exc:
            chunks, samples = render(exc.families)
            report.samples += samples
        except TimeoutError:
            log.warning("cluster source %s gave nothing before the deadline", source.name)
        except Exception:
            log.exception("cluster source %s failed", source.name)
        else:
            report.sources[source.name] = True
            report.samples += samples
        report.spend(source.name, time.perf_counter() - started)
        return chunks

    def _finish(self, report: ScrapeReport) -> list[Chunk]:
        parts: list[Chunk] = []
        for collector in self._collectors:
            started = time.perf_counter()
            report.finish[collector.name] = False
            with contextlib.suppress(Exception):
                chunks, samples = self._finish_one(collector)
                report.finish[collector.name] = True
                parts += chunks
                report.samples += samples
            report.spend(collector.name, time.perf_counter() - started)
        return parts

    def _log_failure(self, collector: Collector, tracked: _Tracked) -> None:
        """With its traceback the first time, not at every scrape for as long as it lasts."""
        level = logging.DEBUG if collector.name in tracked.failing else logging.ERROR
        tracked.failing.add(collector.name)
        text = "collector %s failed on %s"
        log.log(level, text, collector.name, tracked.daemon.name, exc_info=True)

    def _finish_one(self, collector: Collector) -> tuple[list[Chunk], int]:
        try:
            return render(collector.finish())
        except Exception:
            log.exception("collector %s failed on the host's figures", collector.name)
            raise
