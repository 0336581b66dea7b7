"""One-second samples of exporters' metrics, written as columns."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_loadgen.results.findings import reasons_of
from cephqos_loadgen.results.repeat import Gap, MetricsRecording
from cephqos_loadgen.run_recording.columns import MOST_SERIES, ColumnWriter
from cephqos_loadgen.run_recording.daemon_watch import DaemonWatch, Note

INTERVAL = 1.0
_TIMEOUT = 5.0
# Sent to the exporter: after this time it leaves out an OSD that hangs, and shows the others.
_WITHIN = 3.0
_WITHIN_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
# A tick waits this long for slow sources. What comes later goes into the tick in which it comes.
_TICK_SECONDS = 0.8
# Without an answer for longer than this, metrics are missing: that is a gap.
_GAP_SECONDS = 2.5
# The reason of a gap without a failure: the exporter may have waited for an OSD.
_LATE = "its answer came late"
# A repeat fails when metrics of a source, or of a daemon, are missing for more than these seconds
# and this share of it. A benchmark of its store silences an OSD for a while.
_MISSING_SHARE = 0.1
_DAEMON_SHARE = 0.5
_MISSING_SECONDS = 10.0

# Of a page: a series each, and two for each family.
MOST_LINES: Final = 2 * MOST_SERIES
_STARTED = "process_start_time_seconds"
_OF_A_CLUSTER = re.compile(r'[{,]cluster="([^"]+)"')


class PageReader:
    """Reads the pages of one exporter; a family's HELP and TYPE are handed to `describe` once."""

    def __init__(self, describe: Callable[[str, str, str], None]) -> None:
        self._describe = describe  # gets family, type and help
        self._help: dict[str, str] = {}
        self._comments_read: set[str] = set()

    def read(self, page: str) -> dict[str, float]:
        """The samples of a page by `name{labels}`; ValueError if it is no page of metrics. Lines of
        the exporter carry no timestamps."""
        lines = page.count("\n")
        if lines > MOST_LINES:
            raise ValueError(f"a page of {lines:,} lines, expected at most {MOST_LINES:,}")
        samples: dict[str, float] = {}
        for line in page.split("\n"):
            if not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                if series:
                    samples[series] = float(value)
                elif value:
                    raise ValueError(f"a line is no sample: {value[:60]!r}")
            elif line not in self._comments_read:
                self._comments_read.add(line)
                self._read_comment(line)
        return samples

    def _read_comment(self, line: str) -> None:
        parts = line.split(" ", 3)
        if len(parts) == 4 and parts[1] == "HELP":
            self._help[parts[2]] = parts[3]
        elif len(parts) == 4 and parts[1] == "TYPE":
            self._describe(parts[2], parts[3], self._help.get(parts[2], ""))


@dataclass(slots=True)
class _Source:
    """One exporter that is scraped."""

    name: str
    server: HttpServer
    reader: PageReader
    last_answer: float  # its time
    pending: asyncio.Task[str] | None = None  # a request without an answer yet
    failures: int = 0
    last_failure: str = ""  # since the last answer
    gaps: list[Gap] = field(default_factory=list)
    started: float | None = None  # when the process that answers was
    restarts: int = 0


class MetricsRecorder:
    """Scrapes all sources each second. One that fails or hangs costs its own samples only.

    A gap in a source's samples is an event, and is in the summary. Of a host that has OSDs of
    several clusters, those of `cluster` (the fsid) are recorded.
    """

    def __init__(
        self, sources: Mapping[str, Address], cluster: str, path: Path, note: Note
    ) -> None:
        self._cluster = cluster
        self._writer = ColumnWriter(path)
        self._note = note
        # A clock that is set during the run must neither make gaps nor hide them.
        self._epoch = time.time() - time.monotonic()
        now = self._now()
        self._sources = [
            _Source(
                name,
                HttpServer(address, within=_TIMEOUT),
                PageReader(self._writer.describe),
                now,
            )
            for name, address in sources.items()
        ]
        # Which source had a series first: equal series of another one get its name as a label.
        self._owners: dict[str, str] = {}
        self._daemons = DaemonWatch(note)
        self.scrapes = 0
        self.last_error = ""
        self._began: float | None = None
        self._seconds = 0.0

    def _now(self) -> float:
        """Seconds since the epoch, by the clock as it stood when recording began."""
        return self._epoch + time.monotonic()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        for source in self._sources:
            source.last_answer = self._now()
        async with self._connected():
            try:
                due = loop.time()
                while True:
                    await self._tick(_TICK_SECONDS)
                    due = max(due + INTERVAL, loop.time())
                    await asyncio.sleep(due - loop.time())
            finally:
                await self._cancel()

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as opened:
            for source in self._sources:
                await opened.enter_async_context(source.server)
            yield

    async def _tick(self, within: float) -> None:
        """Ask every source that has no request pending, and write what comes in time."""
        time_of_sample, now = time.time(), self._now()
        for source in self._sources:
            if source.pending is None:
                source.pending = asyncio.create_task(self._get(source, max(within, _WITHIN)))
        waiting = [source.pending for source in self._sources if source.pending]
        if waiting:
            await asyncio.wait(waiting, timeout=within)
        values: dict[str, float] = {}
        for source in self._sources:
            if source.pending and source.pending.done():
                page, source.pending = source.pending.result(), None
                if samples := self._samples(source, page):
                    self._answered(source, now)
                    self._count_restart(source, samples.get(_STARTED))
                    self._daemons.look(samples, now, _GAP_SECONDS)
                    values |= self._told_apart(source.name, samples)
        self.scrapes += 1
        if self._began is not None:
            self._seconds = round(asyncio.get_running_loop().time() - self._began, 3)
        self._writer.add(time_of_sample, values)

    def _samples(self, source: _Source, page: str) -> dict[str, float]:
        """The samples of a page, of this cluster; none if it is no page of metrics, as of a proxy
        that answers instead, or if it is of another cluster."""
        try:
            samples = source.reader.read(page)
        except ValueError as error:
            self._failed(source, f"this is no page of metrics: {error}")
            return {}
        if page.count('cluster="') == page.count(f'cluster="{self._cluster}"'):
            return samples
        clusters = {series: cluster_of(series) for series in samples}
        named = set(clusters.values()) - {""}
        if named and self._cluster not in named:
            self._failed(source, f"it shows the cluster {min(named)}, not {self._cluster}")
            return {}
        return {s: v for s, v in samples.items() if clusters[s] in ("", self._cluster)}

    def _failed(self, source: _Source, reason: str) -> None:
        source.failures += 1
        source.last_failure = reason
        self.last_error = f"{source.name}: {reason}"

    def _told_apart(self, name: str, samples: Mapping[str, float]) -> dict[str, float]:
        """A source's samples. A series that another source had first gets this one's name."""
        told_apart = {}
        for series, value in samples.items():
            is_first = self._owners.setdefault(series, name) == name
            told_apart[series if is_first else labelled(series, name)] = value
        return told_apart

    def _answered(self, source: _Source, now: float) -> None:
        seconds = now - source.last_answer
        if seconds > _GAP_SECONDS:
            reason = source.last_failure or _LATE
            source.gaps.append(Gap(source.last_answer, seconds, reason))
            self._note("recording_gap", source=source.name, seconds=seconds, reason=reason)
        source.last_answer, source.last_failure = now, ""

    def _count_restart(self, source: _Source, started: float | None) -> None:
        """An exporter that was restarted counts what it counts itself from zero again. One that is
        back before it was missed leaves no gap, but another start time."""
        if None not in (source.started, started) and source.started != started:
            source.restarts += 1
            self._note("exporter_replaced", source=source.name)
        source.started = started

    async def _get(self, source: _Source, within: float) -> str:
        try:
            page = await source.server.get(headers={_WITHIN_HEADER: f"{within:g}"})
            return page.decode(errors="replace")
        except NoAnswer as error:
            self._failed(source, str(error))
            return ""

    async def _cancel(self) -> None:
        pending = [source.pending for source in self._sources if source.pending]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for source in self._sources:
            source.pending = None

    async def finish(self) -> None:
        """Write one sample more, of answers that came late; then add gaps that last to the end."""
        async with self._connected():
            await self._tick(_TIMEOUT)
            await self._cancel()
        now = self._now()
        for source in self._sources:
            if now - source.last_answer > _GAP_SECONDS:
                self._answered(source, now)
        self._daemons.finish(now, _GAP_SECONDS)

    def close(self) -> None:
        self._writer.close()

    def summary(self) -> MetricsRecording:
        return MetricsRecording(
            self.scrapes,
            self._writer.samples,
            {source.name: source.failures for source in self._sources},
            self.last_error,
            {source.name: tuple(source.gaps) for source in self._sources if source.gaps},
            {name: tuple(gaps) for name, gaps in self._daemons.gaps.items()},
            self._seconds,
            {source.name: source.restarts for source in self._sources if source.restarts},
        )


def cluster_of(series: str) -> str:
    """The fsid among the labels of a series; empty where there is none, as of a host's disk."""
    match = _OF_A_CLUSTER.search(series)
    return match[1] if match else ""


def labelled(series: str, source: str) -> str:
    """The series with the name of its exporter, where another one has the same."""
    label = f'exporter="{source}"'
    name, _, labels = series.removesuffix("}").partition("{")
    return f"{name}{{{labels},{label}}}" if labels else f"{name}{{{label}}}"


def too_much_missing(recording: MetricsRecording) -> str:
    """Why the metrics of a repeat cannot be used, or nothing."""
    seconds = recording.seconds or 0.0
    sources = [(source, gaps, _MISSING_SHARE) for source, gaps in recording.gaps.items()]
    sources += [(daemon, gaps, _DAEMON_SHARE) for daemon, gaps in recording.daemon_gaps.items()]
    for source, gaps, share in sources:
        missing = sum(gap.seconds for gap in gaps)
        if missing > max(_MISSING_SECONDS, share * seconds):
            reasons = reasons_of(gaps) or recording.last_error or "no answer"
            return (
                f"recording failed: {source} gave no metrics for {missing:.0f} of {seconds:.0f} s"
                f" ({reasons})"
            )
    return ""
