"""The live screen: fetches, and brings lines to the terminal and keys to the view."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from cephqos_loadgen.top.screen.layout import Line, cut
from cephqos_loadgen.top.screen.page import draw
from cephqos_loadgen.top.screen.terminal import CursesTerminal, Terminal
from cephqos_loadgen.top.screen.view import View, pressed
from cephqos_loadgen.top.watch import Watch


class Top:
    """`cephqos top` on a terminal."""

    def __init__(
        self,
        watch: Watch,
        view: View,
        *,
        ascii_only: bool = False,
        above: Callable[[], list[Line]] = list,
        also: Mapping[str, Callable[[], object]] = MappingProxyType({}),
    ) -> None:
        """`above` gives lines to show above those of the cluster. `also`: keys of the caller, and
        what to call when one is pressed."""
        self.watch = watch
        self.view = view
        self._ascii_only = ascii_only
        self._above = above
        self._also = also
        self._fetch: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Nothing is being fetched."""
        return self._fetch is None or self._fetch.done()

    async def run(self) -> None:
        """Until the user leaves."""
        with CursesTerminal() as terminal:
            await self.run_on(terminal)

    async def run_on(self, terminal: Terminal) -> None:
        """The same on a terminal that is ready."""
        async with asyncio.TaskGroup() as group:
            ticks = group.create_task(self._ticks(terminal, group))
            async with contextlib.aclosing(terminal.keys()) as keys:
                async for key in keys:
                    self._press(key, terminal, group)
                    if self.view.over:
                        break
            ticks.cancel()
            if self._fetch is not None:
                self._fetch.cancel()

    def _press(self, key: str, terminal: Terminal, group: asyncio.TaskGroup) -> None:
        before = self.view
        if not before.typing and key in self._also:
            self._also[key]()
        self.view = pressed(before, key, self.watch.picture)
        if (wanted := self.view.selection) != before.selection:
            self.watch.selection = wanted
            self._begin_fetch(terminal, group)
        elif before.paused and not self.view.paused:
            self._begin_fetch(terminal, group)
        self._draw(terminal)

    async def _ticks(self, terminal: Terminal, group: asyncio.TaskGroup) -> None:
        while True:
            self._begin_fetch(terminal, group)
            self._draw(terminal)
            await asyncio.sleep(self.watch.interval)

    def _begin_fetch(self, terminal: Terminal, group: asyncio.TaskGroup) -> None:
        if self.idle and not self.view.paused:
            self._fetch = group.create_task(self._fetched(terminal))

    async def _fetched(self, terminal: Terminal) -> None:
        await self.watch.refresh()
        self._draw(terminal)

    def _draw(self, terminal: Terminal) -> None:
        """Draw the last picture, even if nothing new came: its age is shown."""
        columns, rows = terminal.size
        lines = [cut(each, columns) for each in self._above()]
        size = (columns, max(0, rows - len(lines)))
        lines += draw(self.watch.picture, self.watch.status(), self.view, size, self._ascii_only)
        terminal.show(lines)
