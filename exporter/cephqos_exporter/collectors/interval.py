"""Replies that need not be read at every scrape."""

from dataclasses import dataclass
from typing import Final

# Seconds for which a reply about slow things (configuration, slots) is good. Scrapes every 5 s ask
# each time, scrapes every second ask each fifth time.
SLOWLY: Final = 4.5


@dataclass(slots=True)
class ReadInterval:
    """Whether to ask for a reply at the next scrape. The last two replies decide it.

    Unlike a command's `ttl` this keeps no reply: the reader keeps what it made of the last one.
    """

    seconds: float
    due: bool = True
    _read: float | None = None
    _scrape: float | None = None

    def scraped(self, now: float, *, read: bool) -> None:
        """Note a scrape, and whether the reply came in it."""
        gap = 0.0 if self._scrape is None else max(now - self._scrape, 0.0)
        self._scrape = now
        if read:
            self._read = now
        # Better half a gap early than a whole gap late. Also due after the clock was set back.
        last = self._read
        self.due = last is None or now < last or now + gap * 1.5 >= last + self.seconds
