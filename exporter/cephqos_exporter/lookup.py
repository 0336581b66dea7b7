"""Reads that may never return, such as from the file system of a disk that has died.

lookup = Lookup(lambda: os.listdir("/var/lib/ceph/osd/ceph-3"))
lookup.answer()     the list; TimeoutError until there is one
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# How long an answer is waited for, usually 1 ms. Less while other lookups are under way: they hang.
PATIENCE_SECONDS: Final = 0.5
_LESS_PATIENCE_SECONDS: Final = 0.01
# Lookups under way, of all daemons: each has a thread.
_MOST: Final = 64
_under_way: Final[set[Future[Any]]] = set()


class Lookup(Generic[T]):
    """A question that a thread of its own answers, so that a hanging one delays no other."""

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._future: Future[T] | None = None

    @property
    def under_way(self) -> bool:
        return self._future is not None and not self._future.done()

    def answer(self) -> T:
        """The answer, or what the question raised; TimeoutError while there is none.

        Only the first call waits, for at most PATIENCE_SECONDS.
        """
        if self._future is not None:
            return self._future.result(0)
        if len(_under_way) >= _MOST:
            raise TimeoutError
        seconds = _LESS_PATIENCE_SECONDS if _under_way else PATIENCE_SECONDS
        future: Future[T] = Future()
        thread = threading.Thread(target=self._ask, args=(future,), name="lookup", daemon=True)
        _under_way.add(future)
        try:
            thread.start()
        except RuntimeError as exc:  # the user or the container may have no more threads
            _under_way.discard(future)
            raise TimeoutError from exc
        self._future = future
        return future.result(seconds)

    def _ask(self, future: "Future[T]") -> None:
        try:
            future.set_result(self._question())
        except Exception as exc:
            future.set_exception(exc)
        finally:
            _under_way.discard(future)
