"""The exporter as a collector of a prometheus_client registry, in a process of one's own.

from prometheus_client import REGISTRY, start_http_server
from cephqos_exporter.embedding import ExporterCollector

REGISTRY.register(ExporterCollector({"discovery.sockets": "/run/ceph"}))
start_http_server(10130)
"""

import asyncio
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from prometheus_client import Metric
from prometheus_client.registry import Collector

from cephqos_exporter import core_options
from cephqos_exporter.app import build_scraper
from cephqos_exporter.checks import check
from cephqos_exporter.cli import read_settings
from cephqos_exporter.families import FamilyType
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.scraper import Scraper

log = logging.getLogger(__name__)

# After a scrape's deadline, until its event loop counts as stuck.
_GRACE_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 10.0

_LABEL: Final = re.compile(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


class ExporterCollector(Collector):
    """The metrics of this host, without those of the process, which belongs to the caller.

    `options`: flags of `cephqos-exporter` without dashes; ConfigError if they are not allowed.
    Scrapes run on an event loop in a thread of their own. So `collect` may be called from any
    thread, and from several at once: they share what is asked of the daemons. It returns by
    `scrape.timeout`, less the offset, with what has answered by then, and raises nothing for a
    daemon or a collector that fails, as an exception would end the page of all others.
    """

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        without_process = {core_options.DISABLE_OWN_METRICS.name: "true"}
        self._settings = read_settings({**(options or {}), **without_process}, {})
        check(self._settings)
        offset = self._settings[core_options.TIMEOUT_OFFSET]
        timeout = self._settings[core_options.TIMEOUT]
        self._seconds = max(timeout - offset, timeout / 2)
        self._lock = threading.Lock()
        self._thread: _ScrapeThread | None = None

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that no daemon is asked when the collector is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        thread = self._running()
        page = asyncio.run_coroutine_threadsafe(thread.scraper.page(self._seconds), thread.loop)
        try:
            return metrics_of(page.result(self._seconds + _GRACE_SECONDS))
        except TimeoutError:
            page.cancel()
            log.error("nothing was scraped within %g s: the event loop is stuck", self._seconds)
            return ()

    def close(self) -> None:
        """End the thread and its background work; the next `collect` starts it again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            thread.end()

    def _running(self) -> "_ScrapeThread":
        """The thread. The first scrape starts it, and starts it again in a forked process."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _ScrapeThread(build_scraper(self._settings))
                self._thread.start()
            return self._thread


class _ScrapeThread(threading.Thread):
    """An event loop with a scraper on it."""

    def __init__(self, scraper: Scraper) -> None:
        super().__init__(name="cephqos-exporter", daemon=True)
        self.scraper = scraper
        self.loop = asyncio.new_event_loop()

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self.scraper.start)
        self.loop.run_forever()
        self.loop.close()

    def end(self) -> None:
        """Let scrapes under way end with what they have."""
        self.loop.call_soon_threadsafe(self.scraper.hurry)
        closing = asyncio.run_coroutine_threadsafe(self.scraper.close(), self.loop)
        try:
            closing.result(_CLOSE_SECONDS)
        except TimeoutError:
            log.error("ending a scrape without what did not end within %g s", _CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join(_CLOSE_SECONDS)


def metrics_of(page: Page) -> Iterator[Metric]:
    """A page as prometheus_client's metrics."""
    for family in page.families():
        yield _metric(*family)


def _metric(name: str, kind: FamilyType, text: str, lines: Iterable[str]) -> Metric:
    metric = Metric(name, text, kind)
    for line in "".join(lines).split("\n")[:-1]:
        series, _, number = line.rpartition(" ")
        sample, _, labels = series.partition("{")
        metric.add_sample(sample, dict(_labels(labels)), float(number))
    return metric


@lru_cache(maxsize=1 << 16)
def _labels(text: str) -> dict[str, str]:
    return {
        name: _ESCAPED.sub(lambda it: "\n" if it[1] == "n" else it[1], value)
        for name, value in _LABEL.findall(text)
    }
