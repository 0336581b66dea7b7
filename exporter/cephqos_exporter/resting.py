"""Background work that runs only while the exporter is scraped."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

IDLE_SECONDS: Final = 300.0


class WhileScraped:
    """A task that is cancelled when no scrape has come for IDLE_SECONDS, and started again by the
    next one."""

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def go_on(self) -> bool:
        """Keep the task running; call it in each scrape. True if this call has started the task."""
        loop = asyncio.get_running_loop()
        task = self._task
        if task is None or task.done():
            task = loop.create_task(self._work(), name=self._name)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = loop.call_later(IDLE_SECONDS, task.cancel)
        started, self._task = task is not self._task, task
        return started

    async def end(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
