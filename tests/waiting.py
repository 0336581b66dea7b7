"""How tests wait for what others do: until it is so, and never for ever."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
What = str | Callable[[], str]
# A long limit costs nothing where what is waited for comes; a busy machine may take a minute.
PATIENCE = 90.0


def wait_until(condition: Callable[[], T | None], what: What, within: float = PATIENCE) -> T:
    """The first true answer of a condition; AssertionError that says what did not happen."""
    deadline = time.monotonic() + within
    while True:
        late = time.monotonic() >= deadline  # whoever had no CPU until then looks once more
        if found := condition():
            return found
        _assert_in_time(late, what, within)
        time.sleep(0.02)


async def until(
    condition: Callable[[], Awaitable[T | None]], what: What, within: float = PATIENCE
) -> T:
    """The same of a condition that asks servers."""
    deadline = time.monotonic() + within
    while True:
        late = time.monotonic() >= deadline
        if found := await condition():
            return found
        _assert_in_time(late, what, within)
        await asyncio.sleep(0.2)


def _assert_in_time(late: bool, what: What, within: float) -> None:
    assert not late, f"not within {within:g} s: {what if isinstance(what, str) else what()}"


def lives(pid: int) -> bool:
    """Whether a process is there that has not ended: a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
