"""The loop between source and screen: the last model stays when the source goes away."""

import asyncio
import time
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

    async def refresh(self) -> None:
        """Fetch once. On failure the model stays, and `trouble` says why."""
        selection = self.selection
        try:
            samples = await self.source.fetch(selection)
        except SourceDown as error:
            self.trouble = f"{self.source.name}: {error}"
            return
        # With a thousand OSDs this takes a moment, in which keys should be answered.
        model = await asyncio.to_thread(build_model, samples, selection)
        if selection == self.selection:
            self.model, self.trouble = model, ""

    def status(self) -> Status:
        age = None if self.model is None else max(0.0, time.time() - self.model.time)
        return Status(
            source=self.source.name,
            clock=time.strftime("%H:%M:%S"),
            interval=self.interval,
            age=age,
            trouble=self.trouble,
        )
