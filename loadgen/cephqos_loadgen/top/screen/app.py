"""The live screen. Textual brings lines to the terminal and keys to the view, and nothing else."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import Worker

from cephqos_loadgen.top.screen.layout import Line, Style, cut
from cephqos_loadgen.top.screen.page import draw
from cephqos_loadgen.top.screen.view import View, pressed
from cephqos_loadgen.top.watch import Watch

# The terminal's own colours, so that light and dark backgrounds work; each also has a word.
STYLES: Final[dict[Style, RichStyle]] = {
    "": RichStyle(),
    "title": RichStyle(bold=True),
    "dim": RichStyle(dim=True),
    "good": RichStyle(color="green"),
    "warn": RichStyle(color="yellow", bold=True),
    "bad": RichStyle(color="red", bold=True),
    "cursor": RichStyle(reverse=True),
    "bar": RichStyle(color="cyan"),
    "empty": RichStyle(dim=True),
    "mark": RichStyle(bold=True),
}


class Lines(Widget):
    """Shows lines as they are: they hold no markup, and no escape sequence."""

    DEFAULT_CSS = "Lines { width: 100%; height: 100%; background: ansi_default; }"

    def __init__(self) -> None:
        super().__init__()
        self._strips: list[Strip] = []

    def show(self, lines: list[Line]) -> None:
        self._strips = [
            Strip([Segment(span.text, STYLES[span.style]) for span in spans]) for spans in lines
        ]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y >= len(self._strips):
            return Strip.blank(self.size.width)
        return self._strips[y].adjust_cell_length(self.size.width)


class Top(App[None]):
    """`cephqos top` on a terminal."""

    CSS = "Screen { background: ansi_default; }"
    ENABLE_COMMAND_PALETTE = False

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
        super().__init__(ansi_color=True)
        self.feed = watch
        self.view = view
        self._ascii_only = ascii_only
        self._above = above
        self._also = also
        self._fetching = False

    @property
    def idle(self) -> bool:
        """Nothing is being fetched."""
        return not self._fetching

    def compose(self) -> ComposeResult:
        yield Lines()

    def on_mount(self) -> None:
        self.set_interval(self.feed.interval, self._tick)
        self._tick()

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_key(self, event: events.Key) -> None:
        before = self.view
        if not before.typing and event.character and event.character in self._also:
            self._also[event.character]()
        self.view = pressed(before, event.key, event.character, self.feed.picture)
        if self.view.over:
            self.exit()
            return
        if (wanted := self.view.selection) != before.selection:
            self.feed.selection = wanted
            self._tick()
        elif before.paused and not self.view.paused:
            self._tick()
        self._draw()

    def action_help_quit(self) -> None:
        """Textual asks for ctrl+q when ctrl+c is pressed; here ctrl+c quits."""
        self.exit()

    def _tick(self) -> None:
        if not self._fetching and not self.view.paused:
            self._fetching = True
            # The function, not its coroutine: Python warns of a coroutine that is never run, as
            # when the app ends first.
            _: Worker[None] = self.run_worker(self._fetch)
        self._draw()

    async def _fetch(self) -> None:
        try:
            await self.feed.refresh()
        finally:
            self._fetching = False
        self._draw()

    def _draw(self) -> None:
        """Draw the last picture, even if nothing new came: its age is shown."""
        columns, rows = self.size
        lines = [cut(each, columns) for each in self._above()]
        size = (columns, max(0, rows - len(lines)))
        lines += draw(self.feed.picture, self.feed.status(), self.view, size, self._ascii_only)
        for widget in self.query(Lines):
            widget.show(lines)
