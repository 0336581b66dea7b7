"""The scrape: every daemon asked once, concurrently; every failure isolated, every request on time.

Flow: sockets found, the union of the collectors' commands fetched from each daemon, the pure
collectors run as soon as their daemon has answered (while others still compute), the page put
together. What one daemon or one collector does wrong costs that daemon's samples of that collector.

What is shared by requests that come at once is the round of one daemon (`rounds.py`), not the whole
scrape: each request waits for as long as it may, and what has answered by then is its page.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cephqos_exporter.ceph.discovery import Socket
from cephqos_exporter.daemon import Collector, Daemon, Host
from cephqos_exporter.daemon_errors import SourceUnavailable
from cephqos_exporter.exposition import Page
from cephqos_exporter.families import Family
from cephqos_exporter.fetch import DaemonFetcher
from cephqos_exporter.rendering import Rendered, Renderer, render
from cephqos_exporter.report import DaemonReport, RoundOutcome, ScrapeReport
from cephqos_exporter.rounds import DaemonRounds, Rounds, Speakers, Waiting, wait_for
from cephqos_exporter.validity import Seen

log = logging.getLogger(__name__)


class PageSource(Protocol):
    """Something about the cluster rather than a daemon of this host (`--role cluster`).

    `start` is called once, before the first scrape. `collect` is called once per scrape, beside the
    daemons, and cancelled at the deadline (of the event loop's clock); what it raises costs its own
    samples only.
    """

    name: str

    def start(self) -> None: ...

    async def collect(self, deadline: float) -> Iterable[Family]: ...

    async def close(self) -> None: ...


class Reporter(Protocol):
    """Turns a report into the exporter's own families."""

    def families(self, report: ScrapeReport) -> Iterable[Family]: ...


class Scraper:
    """Holds the daemons of this host and answers scrapes.

    `patience`: seconds that a daemon may take before it is left out, even if nobody waits for it
    that long. `max_series`: of one daemon; what is beyond is left out, by whole collectors.
    """

    def __init__(
        self,
        *,
        host: Host,
        find: Callable[[], Sequence[Socket]],
        collectors: Sequence[Collector],
        sources: Sequence[PageSource] = (),
        reporter: Reporter,
        patience: float,
        max_series: int,
    ) -> None:
        self._host = host
        self._find = find
        self._collectors = collectors
        self._sources = [_SourceRounds(source) for source in sources]
        self._reporter = reporter
        self._own = Renderer()  # of what it says
        self._patience = patience
        self._max_series = max_series
        self._speakers = Speakers()
        self._tracked: dict[Socket, DaemonRounds] = {}
        self._forgotten: set[asyncio.Task[None]] = set()
        self._hurry: asyncio.Future[None] | None = None
        self._pages = 0  # under way
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def daemons(self) -> list[Daemon]:
        """The daemons seen by the last scrape."""
        return [tracked.daemon for tracked in self._tracked.values()]

    async def page(self, timeout: float) -> Page:  # noqa: ASYNC109 - of this request, not of a round
        """The page of what has answered within `timeout` seconds."""
        self._pages += 1
        self._idle.clear()
        try:
            return await self._page(timeout)
        finally:
            self._pages -= 1
            if not self._pages:
                self._idle.set()

    async def _page(self, timeout: float) -> Page:  # noqa: ASYNC109
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._refresh()
        everyone: list[Rounds] = [*self._tracked.values(), *self._sources]
        waiting = [rounds.join(timeout, self._patience) for rounds in everyone]
        await wait_for(waiting, self._end_of_patience())
        report = ScrapeReport()
        page = Page()
        nameless: list[tuple[DaemonRounds, DaemonReport]] = []
        for rounds, waited in zip(everyone, waiting, strict=True):
            outcome = self._add(rounds, waited, page, report)
            if isinstance(rounds, DaemonRounds) and outcome.nameless is not None:
                nameless.append((rounds, outcome.nameless))
        for tracked, fared in nameless:  # now that their neighbours have answered
            report.add(tracked.named_by(self._tracked.values(), fared))
        self._finish(page, report)
        report.seconds = loop.time() - started
        self._report(page, report)
        return page

    def start(self) -> None:
        """Let the sources begin with what they do between scrapes."""
        for rounds in self._sources:
            rounds.source.start()

    def hurry(self) -> None:
        """Let the scrapes under way end now, with what has answered."""
        future = self._end_of_patience()
        if not future.done():
            future.set_result(None)

    async def close(self) -> None:
        """Let the scrapes under way end, then the rounds and probes, and drop all state."""
        await self._idle.wait()
        for tracked in self._tracked.values():
            self._forget(tracked.daemon)
        everyone: list[Rounds] = [*self._tracked.values(), *self._sources]
        await asyncio.gather(*self._forgotten, *(rounds.close() for rounds in everyone))
        await asyncio.gather(*(rounds.source.close() for rounds in self._sources))
        self._tracked.clear()

    def _end_of_patience(self) -> "asyncio.Future[None]":
        if self._hurry is None:
            self._hurry = asyncio.get_running_loop().create_future()
        return self._hurry

    def _refresh(self) -> None:
        """Take up sockets that appeared; forget daemons that went or restarted."""
        try:
            found = self._find()
        except OSError as exc:  # such as too few descriptors: go on with what is known
            log.warning("cannot look for admin sockets: %s", exc)
            return
        for socket in set(self._tracked).difference(found):
            tracked = self._tracked.pop(socket)
            self._forget(tracked.daemon)
            self._speakers.drop(tracked)
            closing = asyncio.create_task(tracked.close(), name="close")
            self._forgotten.add(closing)
            closing.add_done_callback(self._forgotten.discard)
        for socket in found:
            if socket not in self._tracked:
                self._tracked[socket] = DaemonRounds(
                    DaemonFetcher(socket, self._host),
                    host=self._host,
                    collectors=self._collectors,
                    speakers=self._speakers,
                    max_series=self._max_series,
                )
        self._tracked = {socket: self._tracked[socket] for socket in found}

    def _forget(self, daemon: Daemon) -> None:
        for collector in self._collectors:
            try:
                collector.forget(daemon)
            except Exception:
                log.exception("collector %s could not forget %s", collector.name, daemon.name)

    def _add(
        self, rounds: Rounds, waited: Waiting, page: Page, report: ScrapeReport
    ) -> RoundOutcome:
        """Put what a daemon or a source gave on the page, in whole or so far."""
        try:
            outcome = waited.outcome() or rounds.so_far(waited)
        except Exception:
            log.exception("the round of %s failed", rounds.name)
            outcome = rounds.failed()
        for part in outcome.parts:
            page.add(part)
        report.take(outcome)
        return outcome

    def _finish(self, page: Page, report: ScrapeReport) -> None:
        for collector in self._collectors:
            started = time.perf_counter()
            report.finish[collector.name] = False
            with contextlib.suppress(Exception):
                rendered = self._finish_one(collector)
                report.finish[collector.name] = not rendered.left_out
                page.add(rendered)
            report.spend(collector.name, time.perf_counter() - started)

    def _finish_one(self, collector: Collector) -> Rendered:
        try:
            return render(collector.finish())
        except Exception:
            log.exception("collector %s failed on the host's figures", collector.name)
            raise

    def _report(self, page: Page, report: ScrapeReport) -> None:
        """The exporter's own figures; a page without them is better than none."""
        families: list[Family] = []
        try:
            for family in self._reporter.families(report):
                families.append(family)  # one by one: those before an error stay
        except OSError as exc:
            log.warning("some of the exporter's own figures are missing: %s", exc)
        page.add(self._own.render(families, Seen()))


class _SourceRounds(Rounds):
    """The rounds of a cluster source."""

    def __init__(self, source: PageSource) -> None:
        super().__init__(source.name)
        self.source = source

    async def round(self, deadline: float) -> RoundOutcome:
        source = self.source
        outcome = self.failed()
        started = time.perf_counter()
        try:
            async with asyncio.timeout_at(deadline):
                rendered = render(await source.collect(deadline))
        except SourceUnavailable as exc:
            outcome.parts = [render(exc.families)]
        except TimeoutError:
            log.warning("cluster source %s gave nothing before the deadline", source.name)
        except Exception:
            log.exception("cluster source %s failed", source.name)
        else:
            outcome.sources[source.name] = not rendered.left_out
            outcome.parts = [rendered]
        outcome.seconds[source.name] = time.perf_counter() - started
        return outcome

    def so_far(self, waited: Waiting) -> RoundOutcome:
        return self.failed()

    def failed(self) -> RoundOutcome:
        return RoundOutcome(sources={self.name: False})
