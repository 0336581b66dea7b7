"""The scrape: every daemon asked once, concurrently; every failure isolated, every request on time.

Steps: find sockets, fetch all commands of the collectors from each daemon, run the collectors of a
daemon as soon as it has answered, put the page together. A failure of one daemon or one collector
costs only that daemon's samples of that collector.

Requests at the same time share the round of each daemon (`rounds.py`), not the whole scrape. Each
request has its own deadline, and its page has the daemons that answered by then.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cephqos_exporter.ceph.discovery import Socket
from cephqos_exporter.daemon import Collector, Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.not_understood import NotUnderstoodTotals, What
from cephqos_exporter.scrape.collect import DaemonCollectors
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.fetch import DaemonFetcher
from cephqos_exporter.scrape.part import Part
from cephqos_exporter.scrape.rendering import Renderer, render
from cephqos_exporter.scrape.rounds import (
    DaemonRounds,
    PageSource,
    Rounds,
    SourceRounds,
    Speakers,
    Waiting,
    wait_for,
)
from cephqos_exporter.scrape.validity import Seen

log = logging.getLogger(__name__)


class Reporter(Protocol):
    """Makes the exporter's metrics about a scrape from the parts of its page."""

    def families(self, parts: Sequence[Part], seconds: float) -> Iterable[Family]: ...


class Scraper:
    """Holds the daemons of this host and answers scrapes.

    `patience`: seconds that a daemon may take before it is left out, even if the scrape waits for
    less. `max_series`: of one daemon; above it, whole collectors are left out. `look` gets the
    replies of each daemon.
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
        look: Callable[[DaemonView], object] | None = None,
    ) -> None:
        self._look = look
        self._host = host
        self._find = find
        self._collectors = collectors
        self._told: set[tuple[str, What]] = set()  # not understood, and logged already
        self._sources = [
            SourceRounds(source, NotUnderstoodTotals(self._told)) for source in sources
        ]
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
        """The page, with all that answered within `timeout` seconds."""
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
        parts = [self._part(*one) for one in zip(everyone, waiting, strict=True)]
        parts.append(self._of_the_host())
        page = Page()
        for part in parts:
            for rendered in part.rendered:
                page.add(rendered)
        page.add(self._own.render(self._report(parts, loop.time() - started), Seen()))
        return page

    def _report(self, parts: Sequence[Part], seconds: float) -> Iterable[Family]:
        """The exporter's own figures; a page with some of them is better than none."""
        try:
            yield from self._reporter.families(parts, seconds)
        except OSError as exc:
            log.warning("some of the exporter's own figures are missing: %s", exc)

    def start(self) -> None:
        """Start the background work of the sources."""
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
            tracked.forget()
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
            daemons = self._find()
        except OSError as exc:  # such as too few descriptors: go on with what is known
            log.warning("cannot look for admin sockets: %s", exc)
            return
        for socket in set(self._tracked).difference(daemons):
            tracked = self._tracked.pop(socket)
            tracked.forget()
            self._speakers.drop(tracked)
            closing = asyncio.create_task(tracked.close(), name="close")
            self._forgotten.add(closing)
            closing.add_done_callback(self._forgotten.discard)
        for socket in daemons:
            if socket not in self._tracked:
                fetcher = DaemonFetcher(socket, self._host)
                collectors = DaemonCollectors(
                    self._collectors,
                    max_series=self._max_series,
                    drop_kept=fetcher.drop_kept,
                    not_understood=NotUnderstoodTotals(self._told),
                    look=self._look,
                )
                self._tracked[socket] = DaemonRounds(
                    fetcher, collectors, self._speakers, lambda: self._tracked.values()
                )
        self._tracked = {socket: self._tracked[socket] for socket in daemons}

    def _part(self, rounds: Rounds, waited: Waiting) -> Part:
        """The part of a daemon or a source: the whole, or what there is so far."""
        try:
            part = waited.part() or rounds.so_far(waited)
        except Exception:
            log.exception("the round of %s failed", rounds.name)
            part = rounds.failed()
        if isinstance(rounds, DaemonRounds):  # now that its neighbours have answered
            part = rounds.named(part)
        return part

    def _of_the_host(self) -> Part:
        part = Part()
        for collector in self._collectors:
            started = time.perf_counter()
            part.success[collector.name] = False
            try:
                rendered = render(collector.finish())
            except Exception:
                log.exception("collector %s failed on the host's figures", collector.name)
            else:
                part.success[collector.name] = not rendered.left_out
                part.rendered.append(rendered)
            part.seconds[collector.name] = time.perf_counter() - started
        return part
