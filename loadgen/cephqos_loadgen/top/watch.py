"""The loop between source and screen: the last picture stays when the source goes away."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cephqos_base.terminal import printable
from cephqos_loadgen.servers import SourceDown
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import Picture
from cephqos_loadgen.top.screen.page import Status
from cephqos_loadgen.top.sources import Source


@dataclass(slots=True)
class Watch:
    """The newest picture of a source, and what went wrong since.

    `patience`: for so many seconds a source without any OSD has not scraped yet (it was started
    together with us), and that is not shown as a fault.
    """

    source: Source
    interval: float
    selection: Selection = field(default_factory=Selection)
    picture: Picture | None = None
    trouble: str = ""
    now: Callable[[], float] = time.time
    patience: float = 0.0
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.now()

    async def refresh(self) -> None:
        """Fetch once. On failure the picture stays, and `trouble` says why."""
        fetched = None
        while fetched != self.selection:  # it can change during the fetch
            fetched = self.selection
            try:
                samples = await self.source.fetch(fetched)
            except SourceDown as error:
                self.trouble = str(error)
                return
            # With a thousand OSDs this takes a moment, in which keys should be answered.
            picture = await asyncio.to_thread(build_picture, samples, fetched)
        self.trouble = ""
        if picture.osds or self.picture or self.now() - self.began >= self.patience:
            self.picture = picture

    def status(self) -> Status:
        """For the screen: what a server said is made printable here, as the picture's names are."""
        age = None if self.picture is None else max(0.0, self.now() - self.picture.time)
        return Status(
            source=printable(self.source.name),
            clock=time.strftime("%H:%M:%S", time.localtime(self.now())),
            interval=self.interval,
            age=age,
            trouble=printable(self.trouble),
            awaited="answer" if self.patience == 0 else "scrape",
        )
