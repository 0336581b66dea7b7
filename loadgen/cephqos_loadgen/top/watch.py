"""Between source and screen: fetches, and builds a picture. It stays if the source fails."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cephqos_base.servers import NoAnswer
from cephqos_base.terminal import printable
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import Picture
from cephqos_loadgen.top.screen.page import Status
from cephqos_loadgen.top.sources import Source


@dataclass(slots=True)
class Watch:
    """The newest picture of a source, and what went wrong since."""

    source: Source
    interval: float  # seconds between refreshes
    selection: Selection = field(default_factory=Selection)
    picture: Picture | None = None
    trouble: str = ""  # why the last fetch failed
    now: Callable[[], float] = time.time
    # Seconds in which a source without any OSD is no fault: if it was started together with this
    # program, it has not scraped yet.
    patience: float = 0.0
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.now()

    async def refresh(self) -> None:
        """Fetch once. On failure the picture stays, and `trouble` says why."""
        fetched_for = None
        while fetched_for != self.selection:  # the user can change it during the fetch
            fetched_for = self.selection
            try:
                samples = await self.source.fetch(fetched_for)
            except NoAnswer as error:
                self.trouble = str(error)
                return
            # With a thousand OSDs this takes a moment, in which keys should be answered.
            picture = await asyncio.to_thread(build_picture, samples, fetched_for)
        self.trouble = ""
        if picture.osds or self.picture or self.now() - self.started >= self.patience:
            self.picture = picture

    def status(self) -> Status:
        """For the screen. What a server answered is made printable here; build does the picture."""
        age = None if self.picture is None else max(0.0, self.now() - self.picture.time)
        return Status(
            source=printable(self.source.name),
            clock=time.strftime("%H:%M:%S", time.localtime(self.now())),
            interval=self.interval,
            age=age,
            trouble=printable(self.trouble),
            awaited="answer" if self.patience == 0 else "scrape",
        )
