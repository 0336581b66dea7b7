"""The live screen. Textual brings lines to the terminal and keys to the view, and nothing else."""

import contextlib
from dataclasses import replace
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.layout import Line, Style
from cephqos_loadgen.top.page import draw
from cephqos_loadgen.top.view import Page, View
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
    """Shows lines as they are: no markup, no escape sequence of theirs means anything."""

    DEFAULT_CSS = "Lines { width: 100%; height: 1fr; background: ansi_default; }"

    def __init__(self) -> None:
        super().__init__()
        self._strips: list[Strip] = []

    def show(self, lines: list[Line]) -> None:
        self._strips = [
            Strip([Segment(span.text, STYLES[span.style]) for span in one]) for one in lines
        ]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y >= len(self._strips):
            return Strip.blank(self.size.width)
        return self._strips[y].adjust_cell_length(self.size.width)


class Top(App[None]):
    """`cephqos top` on a terminal."""

    CSS = """
    Screen { background: ansi_default; }
    #filter { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }
    #filter.open { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", priority=False),
        Binding("s", "sort"),
        Binding("r", "reverse"),
        Binding("slash", "filter"),
        Binding("enter", "open"),
        Binding("escape", "step_back"),
        Binding("p,space", "pause"),
        Binding("c", "cluster"),
        Binding("n", "page('notes')"),
        Binding("question_mark,h", "page('help')"),
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown", "move(10)"),
        Binding("home", "move(-1000000)"),
        Binding("end", "move(1000000)"),
    ]

    def __init__(self, watch: Watch, *, ascii_only: bool = False, view: View | None = None) -> None:
        super().__init__(ansi_color=True)
        self.feed = watch
        self.view = view or View()
        self._ascii_only = ascii_only
        self._fetching = False

    def compose(self) -> ComposeResult:
        yield Lines()
        yield Input(id="filter", placeholder="filter: osd.12, client, violated, device …")

    def on_mount(self) -> None:
        self._draw()
        self.set_interval(self.feed.interval, self._tick)
        self._tick()

    def _tick(self) -> None:
        if not self.view.paused and not self._fetching:
            self.run_worker(self._fetch(), exclusive=False)
        elif not self._fetching:
            self._draw()

    async def _fetch(self) -> None:
        self._fetching = True
        try:
            await self.feed.refresh()
        finally:
            self._fetching = False
        self._draw()

    def _draw(self, size: Size | None = None) -> None:
        with contextlib.suppress(LookupError):
            lines = self.query_one(Lines)
            room = size or lines.size
            rows = (room.width or self.size.width, room.height or self.size.height)
            model = self.feed.model
            lines.show(draw(model, self.feed.status(), self.view, rows, self._ascii_only))

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def _change(self, view: View) -> None:
        opened = view.opened != self.view.opened
        self.view = view
        if opened:
            self.feed.selection = replace(self.feed.selection, osd=view.opened)
            self._tick()
        self._draw()

    def action_sort(self) -> None:
        self._change(self.view.next_sort())

    def action_reverse(self) -> None:
        self._change(replace(self.view, reverse=not self.view.reverse, cursor=0))

    def action_move(self, rows: int) -> None:
        self._change(self.view.moved(rows, self.feed.model))

    def action_open(self) -> None:
        if self.view.page == "main" and self.view.opened is None:
            self._change(self.view.with_opened(self.feed.model))

    def action_step_back(self) -> None:
        self._change(self.view.back())

    def action_pause(self) -> None:
        self._change(replace(self.view, paused=not self.view.paused))
        self._tick()

    def action_page(self, page: str) -> None:
        wanted: Page = "help" if page == "help" else "notes"
        self._change(replace(self.view, page="main" if self.view.page == wanted else wanted))

    def action_cluster(self) -> None:
        model = self.feed.model
        if model is None or len(model.clusters) < 2:
            return
        place = model.clusters.index(model.cluster) if model.cluster in model.clusters else -1
        following = model.clusters[(place + 1) % len(model.clusters)]
        self.feed.selection = Selection(following)
        self._change(replace(self.view, opened=None, cursor=0))
        self._tick()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.value = self.view.filter
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._change(replace(self.view, filter=event.value, cursor=0))

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self._end_filter()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self.query_one("#filter", Input).has_focus:
            event.stop()
            self._change(replace(self.view, filter="", cursor=0))
            self._end_filter()

    def _end_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.remove_class("open")
        self.set_focus(None)
        self.call_after_refresh(self._draw)
