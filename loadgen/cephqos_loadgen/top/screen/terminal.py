"""The terminal of the live screen, by Python's own curses: lines to it, keys from it."""

import asyncio
import contextlib
import curses
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Protocol, Self

from cephqos_base.errors import UsageError
from cephqos_loadgen.top.screen.layout import Line, Style

_COLOURS: Final = (curses.COLOR_GREEN, curses.COLOR_YELLOW, curses.COLOR_RED, curses.COLOR_CYAN)
# The terminal's own colours, so that light and dark backgrounds work; each also has a word.
_STYLES: Final[Mapping[Style, tuple[int, int | None]]] = {
    "": (curses.A_NORMAL, None),
    "title": (curses.A_BOLD, None),
    "dim": (curses.A_DIM, None),
    "good": (curses.A_NORMAL, curses.COLOR_GREEN),
    "warn": (curses.A_BOLD, curses.COLOR_YELLOW),
    "bad": (curses.A_BOLD, curses.COLOR_RED),
    "cursor": (curses.A_REVERSE, None),
    "bar": (curses.A_NORMAL, curses.COLOR_CYAN),
    "empty": (curses.A_DIM, None),
    "mark": (curses.A_BOLD, None),
}
RESIZED: Final = "resized"
_KEYS: Final[Mapping[int | str, str]] = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_PPAGE: "pageup",
    curses.KEY_NPAGE: "pagedown",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_RESIZE: RESIZED,
    "\n": "enter",
    "\r": "enter",
    "\x08": "backspace",
    "\x7f": "backspace",
    "\x1b": "escape",
    "\x03": "ctrl+c",
}
# After Escape, to tell the key from the first byte of another key.
_ESCAPE_MILLISECONDS: Final = 25


class Terminal(Protocol):
    """Where the live screen is shown."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines, as wide and as many as the terminal is."""

    def keys(self) -> AsyncGenerator[str, None]:
        """Keys as they are pressed: a character or a name; RESIZED when the size has changed."""


class CursesTerminal:
    """The whole terminal, until the block ends."""

    def __enter__(self) -> Self:
        try:
            self._window = curses.initscr()
        except curses.error as error:
            found = os.environ.get("TERM", "")
            raise UsageError(f"TERM={found}: {error}; --once and --json need no terminal") from None
        curses.set_escdelay(_ESCAPE_MILLISECONDS)
        curses.noecho()
        curses.raw()  # Ctrl-C is a key
        self._window.keypad(True)
        self._window.nodelay(True)
        with contextlib.suppress(curses.error):  # not every terminal can hide its cursor
            curses.curs_set(0)
        self._attributes = {style: attribute for style, (attribute, _) in _STYLES.items()}
        with contextlib.suppress(curses.error):
            if not os.environ.get("NO_COLOR"):
                self._add_colours()
        return self

    def __exit__(self, *_: object) -> None:
        # A terminal with one screen only, such as a console, would keep the last picture.
        self._window.erase()
        self._window.refresh()
        self._window.keypad(False)
        curses.noraw()
        curses.echo()
        curses.endwin()

    def _add_colours(self) -> None:
        curses.start_color()
        curses.use_default_colors()
        for colour in _COLOURS:
            curses.init_pair(colour, colour, -1)
        for style, (attribute, colour_of_style) in _STYLES.items():
            if colour_of_style is not None:
                self._attributes[style] = attribute | curses.color_pair(colour_of_style)

    @property
    def size(self) -> tuple[int, int]:
        rows, columns = self._window.getmaxyx()
        return columns, rows

    def show(self, lines: Sequence[Line]) -> None:
        self._window.erase()
        _, rows = self.size
        for row, spans in enumerate(lines[:rows]):
            self._window.move(row, 0)
            for span in spans:
                # After the last cell of the screen the cursor has no place: that is an error.
                with contextlib.suppress(curses.error):
                    self._window.addstr(span.text, self._attributes[span.style])
        self._window.refresh()

    async def keys(self) -> AsyncGenerator[str, None]:
        loop = asyncio.get_running_loop()
        came: asyncio.Queue[str] = asyncio.Queue()
        loop.add_reader(sys.stdin, self._read, came)
        loop.add_signal_handler(signal.SIGWINCH, self._resize, came)
        try:
            while True:
                yield await came.get()
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            loop.remove_reader(sys.stdin)

    def _read(self, came: "asyncio.Queue[str]") -> None:
        with contextlib.suppress(curses.error):  # no more keys
            while True:
                key = self._window.get_wch()
                name = _KEYS.get(key, key)
                if isinstance(name, str):
                    came.put_nowait(name)

    def _resize(self, came: "asyncio.Queue[str]") -> None:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        curses.resizeterm(rows, columns)
        came.put_nowait(RESIZED)
