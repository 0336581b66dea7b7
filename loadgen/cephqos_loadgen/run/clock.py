"""Notices that the clock of this host is set while a repeat runs.

Times in an archive are those of the clock, and durations of phases, scrub and recovery are
differences of them. fio measures with a clock of its own: its rates stay right.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from cephqos_loadgen.run_recording.daemon_watch import Note

# A clock that is slewed gains or loses far less than this between two looks.
_LEAST_SECONDS: Final = 0.5
_INTERVAL: Final = 1.0


class ClockWatch:
    """Compares the clock with one that cannot be set. A suspended host looks like a set clock."""

    def __init__(
        self,
        note: Note,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._note, self._clock, self._steady = note, clock, steady
        self._offset = clock() - steady()
        self.findings: list[str] = []

    def look(self) -> None:
        """Note an event and a finding, if the clock was set since the last look."""
        offset = self._clock() - self._steady()
        moved, self._offset = offset - self._offset, offset
        if abs(moved) >= _LEAST_SECONDS:
            self._note("clock_set", seconds=moved)
            at = time.strftime("%H:%M:%S", time.gmtime(self._clock()))
            self.findings.append(f"clock: this host's clock moved by {moved:+.1f} s at {at} UTC")

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            self.look()
