"""Events that the exporter itself sees: a daemon stops answering, many operations are slow."""

from collections.abc import Iterator
from typing import Final

from cephqos_exporter.flight_recorder.pieces import LOCAL, Reason
from cephqos_exporter.scrape.exposition import Page

# Label `reason` of cephqos_daemon_up for a daemon that has ended. That is no event here: it was
# stopped, or Ceph reports that it died.
_ENDED: Final = frozenset({"refused", "gone"})
# Pages in a row without an answer. In a single one, the exporter or the OSD may have been busy.
_SILENT_PAGES: Final = 2
# Slow operations of one OSD in a minute. Slow is more than 10 s for Ceph: a healthy OSD has none.
SLOW_OPERATIONS: Final = 10
_SLOW_SECONDS: Final = 60.0
# Daemons that are remembered. Only in years can there have been more.
_MOST: Final = 10_000


class Triggers:
    """Looks at each page for events."""

    def __init__(self) -> None:
        # Pages in a row without an answer, by daemon; absent until it has answered once.
        self._silent: dict[str, int] = {}
        # By daemon: the start of the minute that is counted, and the count of slow ones then.
        self._slow: dict[str, tuple[float, float]] = {}

    def look(self, page: Page, now: float) -> list[Reason]:
        """The events of this page. While a daemon stays silent, that is one event."""
        if len(self._silent) + len(self._slow) > _MOST:
            self._silent.clear()
            self._slow.clear()
        return [*self._silences(page, now), *self._jumps(page, now)]

    def _silences(self, page: Page, now: float) -> Iterator[Reason]:
        for series, value in _samples(page, "cephqos_daemon_up"):
            daemon, _, reason = series.partition(',reason="')
            if value:
                self._silent[daemon] = 0
            elif daemon in self._silent and reason.partition('"')[0] not in _ENDED:
                self._silent[daemon] += 1
                if self._silent[daemon] == _SILENT_PAGES:
                    yield _reason("a daemon does not answer", daemon, now)

    def _jumps(self, page: Page, now: float) -> Iterator[Reason]:
        for daemon, value in _samples(page, "cephqos_ops_slow_total"):
            since, count = self._slow.get(daemon, (now, value))
            if value - count >= SLOW_OPERATIONS:
                yield _reason("many slow operations", daemon, now)
            over = not 0 <= now - since < _SLOW_SECONDS  # or the clock was set back
            if value < count or value - count >= SLOW_OPERATIONS or over:
                since, count = now, value
            self._slow[daemon] = since, count


def _samples(page: Page, family: str) -> Iterator[tuple[str, float]]:
    for line in page.lines(family):
        series, _, value = line.rpartition(" ")
        yield series, float(value)


def _reason(what: str, daemon: str, now: float) -> Reason:
    name = daemon.partition('ceph_daemon="')[2].partition('"')[0]
    return Reason(f"{what}: {name}", f"{LOCAL}{what}:{name}", f"{now:.3f}")
