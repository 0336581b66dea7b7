"""Collectors for tests of the scrape loop, and how a test runs it and reads its page."""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.ceph.discovery import find_sockets
from cephqos_exporter.daemon import Collector, Command, Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.scrape.own_metrics import OwnMetrics
from cephqos_exporter.scrape.rounds import PageSource
from cephqos_exporter.scrape.scraper import Scraper

FSID = "b57be7fd-f103-4eb6-a252-ba6e212f166b"
REPLIES = {
    "config get": f'{{"fsid":"{FSID}"}}'.encode(),
    "version": b'{"version":"18.2.7"}',
    "status": b'{"num_pgs":9}',
    "perf schema": b'{"osd":{}}',
}


def four_daemons(directory: Path) -> ReplayedHost:
    """A host with four daemons that answer."""
    host = ReplayedHost(directory)
    for _ in range(4):
        host.add(RecordedDaemon(REPLIES))
    return host


class StatusCollector:
    """Reads one reply; remembers what the loop did with it."""

    name = "status"

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.collected = 0

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        return (Command("status"),)

    def collect(self, view: DaemonView) -> Iterable[Family]:
        self.collected += 1
        family = Family("cephqos_test_pgs", "gauge", "Placement groups.")
        family.add(view.labels, view.reply("status")["num_pgs"])
        return [family]

    def finish(self) -> Iterable[Family]:
        return ()

    def forget(self, daemon: Daemon) -> None:
        self.forgotten.append(daemon.name)


class SchemaCollector(StatusCollector):
    """Needs a reply that is fetched once per daemon start."""

    name = "schema"

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        return (Command("perf schema", ttl=float("inf")),)

    def collect(self, view: DaemonView) -> Iterable[Family]:
        view.reply("perf schema")
        return ()


class RaisingCollector(StatusCollector):
    """Fails in every way a collector can."""

    name = "raising"

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        self._fail("commands")
        return super().commands(daemon)

    def collect(self, view: DaemonView) -> Iterable[Family]:
        family = Family("cephqos_test_raising", "gauge", "Never whole.")
        family.add(view.labels, 1)
        yield family
        self._fail("collect")
        if self._where == "value":
            family = Family("cephqos_test_text", "gauge", "No number.")
            family.add(view.labels, view.reply("status"))
            yield family

    def finish(self) -> Iterable[Family]:
        self._fail("finish")
        return ()

    def forget(self, daemon: Daemon) -> None:
        self._fail("forget")

    def _fail(self, where: str) -> None:
        if where == self._where:
            raise RuntimeError(where)


@asynccontextmanager
async def scraping(
    host: ReplayedHost,
    collectors: Sequence[Collector],
    sources: Sequence[PageSource] = (),
    *,
    patience: float = 0.05,
    max_series: int = 20_000,
) -> AsyncIterator[Scraper]:
    scraper = Scraper(
        host=Host(),
        find=lambda: find_sockets([str(host.directory)], ("osd",)),
        collectors=collectors,
        sources=sources,
        reporter=OwnMetrics(process=False),
        patience=patience,
        max_series=max_series,
    )
    async with host:
        try:
            yield scraper
        finally:
            await scraper.close()


async def text(scraper: Scraper, seconds: float = 2.0) -> str:
    return (await scraper.page(seconds)).body(openmetrics=False).decode()


def names(page: str, metric: str, value: str = "1") -> list[str]:
    return re.findall(rf'^{metric}{{ceph_daemon="([^"]+)"[^}}]*}} {value}$', page, re.MULTILINE)


def up(page: str) -> list[str]:
    return names(page, "cephqos_daemon_up")
