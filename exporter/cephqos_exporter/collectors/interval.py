"""Replies that need not be read at every scrape."""

from dataclasses import dataclass
from typing import Final

# Time to live of replies that tell of slow things (configuration, reservations): a scrape every 5 s
# has each of them, one every second has each fifth.
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
        # Half a gap early rather than a whole one late; a clock that was set back is no reason
        # never to ask again.
        last = self._read
        self.due = last is None or now < last or now + gap * 1.5 >= last + self.seconds
