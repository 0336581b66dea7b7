"""Which OSD's placement groups to read next: round after round, at an even pace.

To know the backlog of scrubs takes the scrub times of all placement groups, which are megabytes. So
they are read OSD by OSD, spread over an interval: of each OSD the placement groups of which it is
the primary, about 2.5 kB each. An OSD where a scrub has just ended is read out of turn.
"""

from collections.abc import Iterable, Sequence
from typing import Final

# OSDs to read in one poll, even after a long pause: more would hold up what every poll reads.
_MOST_AT_ONCE: Final = 50


class Rotation:
    """An endless round of OSDs; the caller's `end_round` is called between two rounds."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._osds: Sequence[int] = ()
        self._todo: list[int] = []
        self._out_of_turn: dict[int, None] = {}
        self._earned = 0.0  # how many OSDs may be read by now
        self._last: float | None = None  # when `due` was last called
        self._began: float | None = None  # the round under way
        self.rounds = 0
        # When the last whole round began: nothing that it brought is older.
        self.as_of: float | None = None

    def ask_soon(self, osds: Iterable[int]) -> None:
        """Read these out of turn."""
        self._out_of_turn.update(dict.fromkeys(osds))

    def due_out_of_turn(self, osds: Sequence[int]) -> list[int]:
        """Those of these OSDs for which `ask_soon` was called, some at a time."""
        present = set(osds)
        soon = [osd for osd in self._out_of_turn if osd in present][:_MOST_AT_ONCE]
        self._out_of_turn = {
            osd: None for osd in self._out_of_turn if osd not in soon and osd in present
        }
        return soon

    def due(self, osds: Sequence[int], now: float) -> list[int]:
        """The OSDs to read now, of those that there are."""
        self._osds = osds
        if not osds:
            return []
        soon = self.due_out_of_turn(osds)
        # 0 if the clock was set back.
        elapsed = max(now - self._last, 0.0) if self._last is not None else 0.0
        self._last = now
        # The first round is not spread: until it is over nothing is known.
        share = elapsed * len(osds) / self._interval if self.rounds else _MOST_AT_ONCE
        self._earned = min(self._earned + share, _MOST_AT_ONCE)
        return soon + self._next(int(self._earned), now)

    def _next(self, count: int, now: float) -> list[int]:
        if not self._todo and count:
            self._todo = list(reversed(self._osds))
            self._began = now
        taken = [self._todo.pop() for _ in range(min(count, len(self._todo)))]
        self._earned -= len(taken)
        return [osd for osd in taken if osd in set(self._osds)]

    def end_round(self) -> bool:
        """Whether a round has just ended; true once for each."""
        if self._todo or self._began is None:
            return False
        self.rounds += 1
        self.as_of, self._began = self._began, None
        self._earned %= 1.0
        return True
