"""How tests wait for what others do: until it is so, and never for ever."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
What = str | Callable[[], str]


def wait_until(condition: Callable[[], T | None], what: What, within: float = 10.0) -> T:
    """The first true answer of a condition; AssertionError that says what did not happen."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        _assert_in_time(deadline, what, within)
        time.sleep(0.02)
    return found


async def until(condition: Callable[[], Awaitable[T | None]], what: What, within: float) -> T:
    """The same of a condition that asks servers."""
    deadline = time.monotonic() + within
    while not (found := await condition()):
        _assert_in_time(deadline, what, within)
        await asyncio.sleep(0.2)
    return found


def _assert_in_time(deadline: float, what: What, within: float) -> None:
    late = time.monotonic() >= deadline
    assert not late, f"not within {within:g} s: {what if isinstance(what, str) else what()}"


def lives(pid: int) -> bool:
    """Whether a process is there that has not ended: a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
