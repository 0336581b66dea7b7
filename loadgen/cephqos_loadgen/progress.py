"""Progress reports: one updated line or screen on a terminal, plain lines everywhere else.

Without `rich` (it is an extra) a terminal gets the plain lines too. Texts come from scenarios and
clusters: they are made printable here, and reach `rich` as `Text`, which knows no markup.
"""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, NamedTuple, TextIO

from cephqos_base.terminal import OutputLost, printable, say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

# Shows what a step is doing now: `say("unpacking ceph-osd")`.
Say = Callable[[str], None]

_PLAIN_SECONDS = 10.0  # between two lines that say the same


class Bar(NamedTuple):
    """One row: a title, the share done (None if unknown), and text."""

    title: str
    done: float | None
    text: str


class Frame(NamedTuple):
    """What is shown at one moment."""

    heading: str
    bars: tuple[Bar, ...]
    line: str  # instead of heading and bars, where there is no terminal
    mark: str  # what the run is doing: a plain line is printed at once when it changes


Show = Callable[[Frame], None]


def table(frame: Frame) -> "RenderableType":
    """The rows for a terminal. Text is more important than bars, which take what room is left."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Column, Table
    from rich.text import Text

    rows = Table.grid(
        Column(style="bold", no_wrap=True, min_width=8),
        Column(ratio=1),
        Column(justify="right", no_wrap=True),
        Column(no_wrap=True),
        padding=(0, 1, 0, 0),
        expand=True,
    )
    for bar in frame.bars:
        share = None if bar.done is None else min(1.0, max(0.0, bar.done))
        rows.add_row(
            Text(printable(bar.title)),
            "" if share is None else ProgressBar(1.0, share, complete_style="green"),
            # Rounded down: 100 % only when done.
            "" if share is None else f"{int(share * 100)}%",
            Text(printable(bar.text)),
        )
    heading = Text(printable(frame.heading), no_wrap=True, overflow="ellipsis")
    # An empty row for the echo of ^C: after a full row it would wrap and leave a stale row behind.
    return Group(heading, rows, "")


def folded(text: str, width: int) -> str:
    """A line that a terminal would break in the middle of a word, broken between words. A path or a
    URL stays whole, so that it can be copied.
    """
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False
    )


def _console(stream: IO[str], plain: bool = False) -> "Console | None":
    """The terminal behind a stream; None where there is none, a dumb one, or no `rich`."""
    if plain:
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(file=stream, highlight=False, soft_wrap=True)
    return console if console.is_terminal and not console.is_dumb_terminal else None


class Progress:
    """Reports steps. One step at a time; what a step says replaces what it said before."""

    def __init__(self, stream: TextIO | IO[str] | None = None, *, plain: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._terminal = _console(self._stream, plain)

    def quieter(self, plain: bool) -> "Progress":
        """For steps that run at the same time: a terminal has only one live line."""
        return Progress(self._stream, plain=True) if plain else self

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        """Show `title` while the block runs, then how long it took."""
        start = time.monotonic()
        if not self._terminal:
            self.note(f"{title} …")
        with self.line(title) as say_on_line:
            yield say_on_line
        self.done(title, time.monotonic() - start)

    @contextmanager
    def line(self, title: str) -> Iterator[Say]:
        """One live line while the block runs, and nothing where there is no terminal."""
        if self._terminal:
            with self._on_one_line(self._terminal, title) as say_on_line:
                yield say_on_line
        else:
            yield lambda text: None

    @contextmanager
    def _on_one_line(self, console: "Console", title: str) -> Iterator[Say]:
        from rich.text import Text

        def one_line(text: str) -> "Text":
            line = Text(printable(text))
            line.truncate(max(1, console.width - 4), overflow="ellipsis")
            return line

        with console.status(one_line(title)) as status:
            yield lambda text: status.update(one_line(f"{title}: {text}"))

    @contextmanager
    def follow(self, title: str, first: Frame) -> Iterator[Show]:
        """Show the caller's frames, about one per second, while the block runs; then how long it
        took. A thread draws them, so that a blocked terminal does not block the caller.
        """
        start = time.monotonic()
        terminal = self._terminal
        shown = self._in_place(terminal, first) if terminal else self._in_lines(title, first)
        with shown as show:
            yield show
        self.done(title, time.monotonic() - start)

    @contextmanager
    def _in_place(self, console: "Console", first: Frame) -> Iterator[Show]:
        from rich.live import Live

        latest = first

        def show(frame: Frame) -> None:
            nonlocal latest
            latest = frame

        with Live(
            get_renderable=lambda: table(latest),
            console=console,
            refresh_per_second=1,
            transient=True,
        ):
            yield show

    @contextmanager
    def _in_lines(self, title: str, first: Frame) -> Iterator[Show]:
        self.note(f"{title} …")
        began = last_line = time.monotonic()
        mark = first.mark

        def show(frame: Frame) -> None:
            nonlocal last_line, mark
            now = time.monotonic()
            if frame.mark != mark or now - last_line >= _PLAIN_SECONDS:
                mark, last_line = frame.mark, now
                self.note(f"  {now - began:4.0f} s  {frame.line}")

        yield show

    def done(self, title: str, seconds: float) -> None:
        self.note(f"{title}: done in {seconds:.1f} s")

    def note(self, text: str) -> None:
        # The reader of the pipe may have ended, or the terminal; our work goes on.
        with suppress(OSError, OutputLost):
            self._print(text)

    def _print(self, text: str) -> None:
        if self._terminal:
            from rich.text import Text

            text = printable(text)
            # Indented text is a command or a path: not folded, so that it can be copied.
            is_indented = text.startswith(" ")
            self._terminal.print(Text(text if is_indented else folded(text, self._terminal.width)))
            return
        say(text, file=self._stream)


class Silent(Progress):
    """For tests and libraries: prints nothing."""

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        yield lambda text: None

    line = step

    @contextmanager
    def follow(self, title: str, first: Frame) -> Iterator[Show]:
        yield lambda frame: None

    def done(self, title: str, seconds: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass
