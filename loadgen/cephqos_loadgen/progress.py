"""Saying what is going on: a live line on a terminal, plain lines everywhere else."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TextIO

from rich.console import Console

# A step's way to say how it is getting on: `say("unpacking ceph-osd")`.
Say = Callable[[str], None]


class Progress:
    """Reports steps. One step at a time; what a step says replaces what it said before."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)

    def quieter(self, plain: bool) -> "Progress":
        """For steps that run side by side: a terminal has room for one live line only."""
        if not plain:
            return self
        return _Plain(self._console.file)

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        """Show `title` while the block runs, then how long it took."""
        start = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(title) as status:
                yield lambda text: status.update(f"{title}: {text}"[: self._console.width - 4])
        else:
            self._console.print(f"{title} …", markup=False)
            yield lambda text: None
        self.done(title, time.monotonic() - start)

    def done(self, title: str, seconds: float) -> None:
        self._console.print(f"{title}: done in {seconds:.1f} s", markup=False)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)


class _Plain(Progress):
    """Lines only, also on a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._console = Console(file=stream, highlight=False, soft_wrap=True, force_terminal=False)


class Silent(Progress):
    """For tests and libraries: says nothing."""

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        yield lambda text: None

    def done(self, title: str, seconds: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass
