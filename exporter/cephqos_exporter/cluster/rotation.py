"""Decides which OSD's placement groups to read next: round after round, at an even pace.

The backlog of scrubs needs the scrub times of all placement groups, which are megabytes. So they
are read OSD by OSD, spread over an interval: those of which the OSD is the primary, about 2.5 kB
each. An OSD where a scrub has just ended is read out of turn.
With 60 OSDs and an interval of 300 s, a poll every 5 s reads one of them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

# OSDs in one poll, even after a long pause: more would delay what every poll reads.
_MOST_AT_ONCE: Final = 50


class Rotation:
    """Rounds of OSDs without end. The caller reads what `due` gives, then asks `end_round`."""

    def __init__(self, interval: float) -> None:
        self._interval = interval  # seconds of a round
        self._osds: Sequence[int] = ()
        self._left: list[int] = []  # OSDs of the round under way, the next one last
        self._out_of_turn: dict[int, None] = {}
        self._allowance = 0.0  # how many OSDs may be read now; it grows with time
        self._last_call: float | None = None  # of `due`
        self._round_began: float | None = None  # None: no round is under way
        self.rounds = 0  # that have ended
        # When the last whole round began: all that it has read is at least as new.
        self.as_of: float | None = None

    def ask_soon(self, osds: Iterable[int]) -> None:
        """Read these out of turn."""
        self._out_of_turn.update(dict.fromkeys(osds))

    def due_out_of_turn(self, osds: Sequence[int]) -> list[int]:
        """Those of these OSDs for which `ask_soon` was called, at most _MOST_AT_ONCE."""
        present = set(osds)
        waiting = [osd for osd in self._out_of_turn if osd in present]
        self._out_of_turn = dict.fromkeys(waiting[_MOST_AT_ONCE:])
        return waiting[:_MOST_AT_ONCE]

    def due(self, osds: Sequence[int], now: float) -> list[int]:
        """The OSDs to read now. `osds`: all that are up."""
        self._osds = osds
        if not osds:
            return []
        soon = self.due_out_of_turn(osds)
        # 0 if the clock was set back.
        elapsed = max(now - self._last_call, 0.0) if self._last_call is not None else 0.0
        self._last_call = now
        # The first round is not spread over the interval: until it is over, nothing is known.
        share = elapsed * len(osds) / self._interval if self.rounds else _MOST_AT_ONCE
        self._allowance = min(self._allowance + share, _MOST_AT_ONCE)
        return soon + self._next(int(self._allowance), now)

    def _next(self, count: int, now: float) -> list[int]:
        if not self._left and count:
            self._left = list(reversed(self._osds))
            self._round_began = now
        taken = [self._left.pop() for _ in range(min(count, len(self._left)))]
        self._allowance -= len(taken)
        return [osd for osd in taken if osd in set(self._osds)]

    def end_round(self) -> bool:
        """Whether a round has ended since the last call; it counts that round."""
        if self._left or self._round_began is None:
            return False
        self.rounds += 1
        self.as_of, self._round_began = self._round_began, None
        self._allowance %= 1.0
        return True
