"""Replies that need not be read at every scrape."""

from dataclasses import dataclass
from typing import Final

# Time to live of replies that tell of slow things (configuration, reservations): a scrape every 5 s
# has each of them, one every second has each fifth.
SLOWLY: Final = 4.5


@dataclass(slots=True)
class ReadInterval:
    """Whether a reply is to be asked for at the next scrape, which is told by the last two.

    Unlike a command's `ttl` this keeps no reply: what was made of it is kept by whoever reads it.
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
