"""One-second samples of exporters' metrics, written as columns."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from cephqos_loadgen.record.columns import ColumnWriter
from cephqos_loadgen.results.repeat import MetricsRecording

INTERVAL = 1.0
_TIMEOUT = 5.0


class PageReader:
    """Takes text-format pages; remembers what it has seen of a family's type and help."""

    def __init__(self, describe: Callable[[str, str, str], None]) -> None:
        self._describe = describe
        self._help: dict[str, str] = {}
        self._known: set[str] = set()

    def read(self, page: str) -> dict[str, float]:
        """The samples of a page by `name{labels}`. Lines of the exporter carry no timestamps."""
        found: dict[str, float] = {}
        for line in page.split("\n"):
            if not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                if series:
                    found[series] = float(value)
            elif line not in self._known:
                self._known.add(line)
                self._head(line)
        return found

    def _head(self, line: str) -> None:
        parts = line.split(" ", 3)
        if len(parts) == 4 and parts[1] == "HELP":
            self._help[parts[2]] = parts[3]
        elif len(parts) == 4 and parts[1] == "TYPE":
            self._describe(parts[2], parts[3], self._help.get(parts[2], ""))


class MetricsRecorder:
    """Scrapes all sources each second; a source that fails costs its own samples only."""

    def __init__(self, sources: Mapping[str, str], path: Path) -> None:
        self._sources = sources
        self._writer = ColumnWriter(path)
        self._readers = {name: PageReader(self._writer.describe) for name in sources}
        self.scrapes = 0
        self.failures: dict[str, int] = dict.fromkeys(sources, 0)
        self.last_error = ""

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            due = loop.time()
            while True:
                await self._sample(session)
                due = max(due + INTERVAL, loop.time())
                await asyncio.sleep(due - loop.time())

    async def _sample(self, session: aiohttp.ClientSession) -> None:
        now = time.time()
        pages = await asyncio.gather(*(self._get(session, name) for name in self._sources))
        values: dict[str, float] = {}
        for name, page in zip(self._sources, pages, strict=True):
            if page:
                values |= self._readers[name].read(page)
        self.scrapes += 1
        self._writer.add(now, values)

    async def _get(self, session: aiohttp.ClientSession, name: str) -> str:
        try:
            async with session.get(self._sources[name]) as response:
                response.raise_for_status()
                return await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.failures[name] += 1
            self.last_error = f"{name}: {type(error).__name__} {error}"
            return ""

    async def finish(self) -> None:
        """One sample more, of what came after the last."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            await self._sample(session)

    def close(self) -> None:
        self._writer.close()

    def summary(self) -> MetricsRecording:
        return MetricsRecording(
            self.scrapes, self._writer.samples, dict(self.failures), self.last_error
        )
