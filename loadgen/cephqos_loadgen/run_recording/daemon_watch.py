"""Notices daemons that stop answering an exporter which itself goes on.

An OSD answers nothing on its admin socket while it benchmarks its store, or hangs. The exporter
then has no metrics of it, and shows `cephqos_daemon_up{ceph_daemon="osd.3",reason="timeout"} 0`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from cephqos_loadgen.results.repeat import Gap

_UP: Final = "cephqos_daemon_up{"
_DAEMON: Final = re.compile(r'ceph_daemon="([^"]*)"')
_REASON: Final = re.compile(r'reason="([^"]*)"')
# Reasons of a daemon that has ended: none of its metrics are missing.
_ENDED: Final = ("refused", "gone")

# Notes an event: its kind, and details by name.
Note = Callable[..., None]


class DaemonWatch:
    """Gaps in the answers of daemons, by name. A gap is longer than `least_gap` seconds."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._last_answer: dict[str, float] = {}  # time; when it is not known, of the first page
        self._silent_reasons: dict[str, str] = {}  # of daemons that do not answer now
        self.gaps: dict[str, list[Gap]] = {}

    def look(self, values: Mapping[str, float], now: float, least_gap: float) -> None:
        """Take the samples of one page of an exporter."""
        for series, up in values.items():
            if series.startswith(_UP):
                name, reason = _label(_DAEMON, series), _label(_REASON, series)
                if up:
                    self._end_silence(name, now, least_gap)
                elif reason in _ENDED:
                    self._end_silence(name, now, least_gap)  # it may have hung before it died
                    del self._last_answer[name]
                else:
                    self._last_answer.setdefault(name, now)
                    self._silent_reasons[name] = reason

    def finish(self, now: float, least_gap: float) -> None:
        """Add the gaps of daemons that are silent to the end."""
        for name in sorted(self._silent_reasons):
            self._end_silence(name, now, least_gap)

    def _end_silence(self, name: str, now: float, least_gap: float) -> None:
        """Add a gap, if the daemon was silent for long enough."""
        seconds = now - self._last_answer.get(name, now)
        reason = self._silent_reasons.pop(name, None)
        if reason is not None and seconds > least_gap:
            self.gaps.setdefault(name, []).append(Gap(self._last_answer[name], seconds, reason))
            self._note("recording_gap", source=name, seconds=seconds, reason=reason)
        self._last_answer[name] = now


def _label(pattern: re.Pattern[str], series: str) -> str:
    match = pattern.search(series)
    return match[1] if match else ""
