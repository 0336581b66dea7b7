"""Notices daemons that stop answering an exporter which itself goes on.

An OSD answers nothing on its admin socket while it benchmarks its store, or hangs. The exporter
leaves it out then, and says so.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from cephqos_loadgen.results.repeat import Gap

_UP: Final = "cephqos_daemon_up{"
_DAEMON: Final = re.compile(r'ceph_daemon="([^"]*)"')
_REASON: Final = re.compile(r'reason="([^"]*)"')
# It has ended: nothing of it is missing.
_ENDED: Final = ("refused", "gone")

Note = Callable[..., None]


class DaemonWatch:
    """Gaps in the answers of daemons, by name."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._answered: dict[str, float] = {}
        self._silent: dict[str, str] = {}  # why
        self.gaps: dict[str, list[Gap]] = {}

    def look(self, values: Mapping[str, float], now: float, least: float) -> None:
        """Take what a page says; a gap is one of more than `least` seconds."""
        for series, up in values.items():
            if series.startswith(_UP):
                name, reason = _label(_DAEMON, series), _label(_REASON, series)
                if up:
                    self._came(name, now, least)
                elif reason in _ENDED:
                    self._came(name, now, least)  # it may have hung before it died
                    del self._answered[name]
                else:
                    self._answered.setdefault(name, now)
                    self._silent[name] = reason

    def finish(self, now: float, least: float) -> None:
        """Those that are silent to the end."""
        for name in sorted(self._silent):
            self._came(name, now, least)

    def _came(self, name: str, now: float, least: float) -> None:
        seconds = now - self._answered.get(name, now)
        why = self._silent.pop(name, None)
        if why is not None and seconds > least:
            self.gaps.setdefault(name, []).append(Gap(self._answered[name], seconds, why))
            self._note("recording_gap", source=name, seconds=seconds, reason=why)
        self._answered[name] = now


def _label(pattern: re.Pattern[str], series: str) -> str:
    match = pattern.search(series)
    return match[1] if match else ""
