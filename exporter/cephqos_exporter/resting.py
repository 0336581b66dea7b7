"""Work in the background that rests without scrapes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

IDLE_SECONDS: Final = 300.0


class WhileScraped:
    """A task that goes on for as long as scrapes come, and ends when none has come for a while."""

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._rest: asyncio.TimerHandle | None = None

    def go_on(self) -> bool:
        """Call it in each scrape. Whether the work begins by it, for the first time or again."""
        loop = asyncio.get_running_loop()
        task = self._task
        if task is None or task.done():
            task = loop.create_task(self._work(), name=self._name)
        if self._rest is not None:
            self._rest.cancel()
        self._rest = loop.call_later(IDLE_SECONDS, task.cancel)
        begins, self._task = task is not self._task, task
        return begins

    async def end(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
