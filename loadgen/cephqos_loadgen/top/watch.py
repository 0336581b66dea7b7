"""The loop between source and screen: the last model stays when the source goes away."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cephqos_loadgen.top.build import build_model
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.model import Model
from cephqos_loadgen.top.page import Status
from cephqos_loadgen.top.source import Source, SourceDown


@dataclass(slots=True)
class Watch:
    """The newest model of a source, and what went wrong since."""

    source: Source
    interval: float
    selection: Selection = field(default_factory=Selection)
    model: Model | None = None
    trouble: str = ""
    now: Callable[[], float] = time.time

    async def refresh(self) -> None:
        """Fetch once. On failure the model stays, and `trouble` says why."""
        fetched = None
        while fetched != self.selection:  # it can change meanwhile
            fetched = self.selection
            try:
                samples = await self.source.fetch(fetched)
            except SourceDown as error:
                self.trouble = str(error)
                return
            # With a thousand OSDs this takes a moment, in which keys should be answered.
            model = await asyncio.to_thread(build_model, samples, fetched)
        self.model, self.trouble = model, ""

    def status(self) -> Status:
        age = None if self.model is None else max(0.0, self.now() - self.model.time)
        return Status(
            source=self.source.name,
            clock=time.strftime("%H:%M:%S", time.localtime(self.now())),
            interval=self.interval,
            age=age,
            trouble=self.trouble,
        )
