"""Questions that a file system may never answer: who looks at a disk that died waits with it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# What an answer is waited for: it takes 1 ms. Less while others are waited for: these hang.
PATIENCE_SECONDS: Final = 0.5
_LESS_SECONDS: Final = 0.01
# All that may be under way, of all daemons: one that comes and goes would add threads.
_MOST: Final = 64
_under_way: Final[set[Future[Any]]] = set()


class Lookup(Generic[T]):
    """A question in a thread of its own: the others do not wait for the answer."""

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._future: Future[T] | None = None

    @property
    def under_way(self) -> bool:
        return self._future is not None and not self._future.done()

    def answer(self) -> T:
        """The answer, or what the question raised; TimeoutError while there is none.

        Only the call that begins to ask waits for it.
        """
        if self._future is not None:
            return self._future.result(0)
        if len(_under_way) >= _MOST:
            raise TimeoutError
        seconds = _LESS_SECONDS if _under_way else PATIENCE_SECONDS
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
