"""Runs the collectors on a daemon's replies. Their results are the daemon's part of a page."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from cephqos_exporter.ceph.pids import process_start
from cephqos_exporter.daemon import Collector, Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.daemon_errors import ConnectionRefused, Malformed, SocketGone, UnknownCommand
from cephqos_exporter.not_understood import MISREAD, NotUnderstoodTotals
from cephqos_exporter.scrape.part import Part
from cephqos_exporter.scrape.rendering import Rendered, Renderer
from cephqos_exporter.scrape.validity import Seen

log = logging.getLogger(__name__)

# Sent if no collector needs a reply in this scrape: "up" must be seen, not assumed.
_ALIVE = Command("version")

# Upper bound of the average size of a series on a page: labels can be long.
_BYTES_PER_SERIES: Final = 512
# Minimum time between two fresh starts of a collector that fails on a daemon.
_ANEW_SECONDS: Final = 30.0
# Reasons that say that the socket has no listener.
_DEAD: Final = frozenset({ConnectionRefused.reason, SocketGone.reason})


class _Missing(NamedTuple):
    """What ReplyMissing says. The exception would keep the frames, and so all replies, alive."""

    reason: str
    text: str


class DaemonCollectors:
    """The collectors of one daemon. The failure of one does not affect the others.

    After `drop_kept`, the daemon is asked for everything again. `look` gets all replies too.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        *,
        max_series: int,
        drop_kept: Callable[[], None],
        not_understood: NotUnderstoodTotals,
        look: Callable[[DaemonView], object] | None = None,
    ) -> None:
        self._collectors = collectors
        self._look = look
        self._not_understood = not_understood
        self._max_series = max_series
        self._drop_kept = drop_kept
        self._rendered = [(collector, Renderer()) for collector in collectors]
        self._failing: set[str] = set()  # as of the last scrape
        self._retry_at: dict[str, float] = {}  # when they may start again

    def commands(self, daemon: Daemon) -> Collection[Command]:
        """All commands that they need in this scrape."""
        wanted: list[Command] = []
        for collector in self._collectors:
            try:
                wanted += collector.commands(daemon)
            except Exception:
                log.exception("collector %s: no commands for %s", collector.name, daemon.name)
        if all(command.ttl for command in wanted):
            wanted.append(_ALIVE)
        return wanted

    def part(self, view: DaemonView, took: float) -> Part:
        """The daemon's part of a page, of bounded size, each series once."""
        part = Part(labels=view.labels, down=view.down, took=took)
        part.not_understood = self._not_understood
        if view.down in _DEAD or (view.down and not _lives(view)):
            # Another process may have its process number by now.
            part.success = self.all_failed()
            return part
        seen = Seen()
        started = time.perf_counter()
        for collector, renderer in self._rendered:
            self._collect(collector, renderer, view, part, seen)
            if view.not_understood.found:
                self._not_understood.take(collector.name, view.daemon.name, view.not_understood)
            ended = time.perf_counter()
            part.seconds[collector.name] = ended - started
            started = ended
        if self._look is not None:
            with contextlib.suppress(*MISREAD):  # collectors say what they do not understand
                self._look(view)
        return part

    def all_failed(self) -> dict[str, bool]:
        return {collector.name: False for collector in self._collectors}

    def forget(self, daemon: Daemon) -> None:
        for collector in self._collectors:
            _forget(collector, daemon)

    def _collect(
        self, collector: Collector, renderer: Renderer, view: DaemonView, part: Part, seen: Seen
    ) -> None:
        name = collector.name
        try:
            rendered, missing = _render(collector, renderer, view, seen)
        except Exception as exc:
            part.success[name] = False
            if isinstance(exc, MISREAD):
                view.not_understood.add("reply", repr(exc))
            # An error only the first time, not at every scrape while it lasts.
            level = logging.DEBUG if name in self._failing else logging.ERROR
            self._failing.add(name)
            log.log(level, "collector %s failed on %s", name, view.daemon.name, exc_info=True)
            self._begin_anew(collector, view.daemon)
        else:
            if missing is not None and missing.reason == UnknownCommand.reason:
                return  # its release has no such command: the collector is not for this daemon
            whole = self._take(part, rendered)
            part.success[name] = whole and missing is None
            if missing is not None:
                log.debug("collector %s: %s: %s", name, view.daemon.name, missing.text)
                if missing.reason == Malformed.reason:
                    view.not_understood.add("reply", missing.text)
                return
            self._failing.discard(name)
            if not whole:
                self._begin_anew(collector, view.daemon)

    def _take(self, part: Part, rendered: Rendered) -> bool:
        """Add a collector's samples if there is room. True if all of them are on the page."""
        if not rendered.lines and not rendered.left_out:
            return True
        if rendered.left_out:
            _count(part, "invalid", rendered.left_out)
        samples = part.samples + rendered.samples
        size = part.size + rendered.size
        if samples > self._max_series or size > self._max_series * _BYTES_PER_SERIES:
            _count(part, "limit", rendered.samples)
            return False
        part.rendered.append(rendered)
        part.samples, part.size = samples, size
        return not rendered.left_out

    def _begin_anew(self, collector: Collector, daemon: Daemon) -> None:
        """Drop all that a collector and the fetcher keep of the daemon: it may contain a bad reply.

        Not at every scrape, because the daemon is then asked for everything again.
        """
        now = asyncio.get_running_loop().time()
        if now < self._retry_at.get(collector.name, 0.0):
            return
        self._retry_at[collector.name] = now + _ANEW_SECONDS
        self._drop_kept()
        _forget(collector, daemon)


def _render(
    collector: Collector, renderer: Renderer, view: DaemonView, seen: Seen
) -> tuple[Rendered, _Missing | None]:
    """What it gives, or has without the reply that did not come."""
    try:
        return renderer.render(collector.collect(view), seen), None
    except ReplyMissing as exc:
        return renderer.render(exc.families, seen), _Missing(exc.reason, str(exc))


def _count(part: Part, reason: str, samples: int) -> None:
    part.left_out[reason] = part.left_out.get(reason, 0) + samples


def _forget(collector: Collector, daemon: Daemon) -> None:
    try:
        collector.forget(daemon)
    except Exception:
        log.exception("collector %s could not forget %s", collector.name, daemon.name)


def _lives(view: DaemonView) -> bool:
    """Whether the process of a daemon that does not answer is still the one that answered."""
    pid, start = view.daemon.pid, view.daemon.start
    return pid is None or process_start(view.host, pid) == start
