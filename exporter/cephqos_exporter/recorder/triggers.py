"""What the exporter itself sees happen: a daemon stops answering, slow operations jump."""

from collections.abc import Iterator
from typing import Final

from cephqos_exporter.recorder.pieces import LOCAL, Reason
from cephqos_exporter.scrape.exposition import Page

# Reasons of cephqos_daemon_up of a daemon that has ended: it is stopped, or Ceph says that it died.
_ENDED: Final = frozenset({"refused", "gone"})
# In two pages in a row: in one alone, the exporter or the OSD may have been busy.
_SILENT_PAGES: Final = 2
# Of one OSD within a minute. Ceph calls an operation slow after 10 s: a healthy OSD has none.
SLOW_OPERATIONS: Final = 10
_SLOW_SECONDS: Final = 60.0
# Daemons that are remembered: more come and go only over years.
_MOST: Final = 10_000


class Triggers:
    """Looks at each page."""

    def __init__(self) -> None:
        self._silent: dict[str, int] = {}  # pages in a row; absent until it has answered once
        self._slow: dict[str, tuple[float, float]] = {}  # since when, and the count then

    def look(self, page: Page, now: float) -> list[Reason]:
        """What has happened; each daemon's silence is one reason."""
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
