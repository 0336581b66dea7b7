"""Child processes whose complete output is kept: each in its own group, each ended for certain."""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from cephqos_base.errors import CephqosError
from cephqos_loadgen.lab.isolation.namespaces import children
from cephqos_loadgen.processes import signal_group, start
from cephqos_loadgen.results.repeat import ChildRecord
from cephqos_loadgen.run_recording.files import GzipWriter

_CHUNK = 1 << 16
_ENDING_SECONDS = 10.0
# What a program has written is read within this time of its end.
_DRAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.05

Sink = Callable[[bytes], None]


class ChildFailed(CephqosError):
    """A child that should have ended well did not."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, and under which name its output is kept."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]


class Child:
    """One process. Leaving the block ends it and all of its group, whatever it was doing."""

    def __init__(self, launch: Launch, folder: Path, sink: Sink | None = None) -> None:
        self.launch = launch
        self._folder = folder
        self._sink = sink
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._tail = b""
        self.started = 0.0
        self.ended = 0.0
        self.interrupted = False

    async def __aenter__(self) -> Self:
        launch = self.launch
        self.started = time.time()
        self._process = await start(
            launch.argv, stdout=PIPE, stderr=PIPE, environment=launch.environment
        )
        for stream, sink in (("stdout", self._sink), ("stderr", self._keep_tail)):
            reader: asyncio.StreamReader | None = getattr(self._process, stream)
            assert reader is not None  # noqa: S101 - they are pipes
            task = self._copy(reader, self._folder / f"{launch.name}.{stream}.gz", sink)
            self._readers.append(asyncio.create_task(task))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            signal_group(process)
        await self._exit()
        self.ended = self.ended or time.time()
        await self._end_orphans()
        results = await asyncio.gather(*self._readers, return_exceptions=True)
        failures = [result for result in results if isinstance(result, Exception)]
        if failures and error is None:
            raise failures[0]

    async def _exit(self) -> None:
        """Returns when the process has ended. asyncio's own wait goes on as long as any process has
        its output open."""
        while self.running:  # noqa: ASYNC110 - the event is asyncio's wait
            await asyncio.sleep(_LOOK_SECONDS)

    async def _end_orphans(self) -> None:
        """A program that dies may leave workers, as fio does: they go on with the load, and keep
        its output open. They are still in its process group."""
        assert self._process is not None  # noqa: S101
        _, still_open = await asyncio.wait(self._readers, timeout=_DRAIN_SECONDS)
        if still_open:
            signal_group(self._process)
            await asyncio.wait(still_open, timeout=_ENDING_SECONDS)
        for reader in still_open:
            reader.cancel()

    async def _copy(self, reader: asyncio.StreamReader, path: Path, sink: Sink | None) -> None:
        with GzipWriter(path) as file:
            while data := await reader.read(_CHUNK):
                file.write(data)
                if sink is not None:
                    sink(data)

    def _keep_tail(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-2000:]

    @property
    def pid(self) -> int:
        """The number of the program itself, not of `setpriv` and the like before it."""
        assert self._process is not None  # noqa: S101 - asked inside the block
        return leaf(self._process.pid)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def last_words(self) -> str:
        """The end of its standard error, as one line."""
        return " ".join(self._tail.decode(errors="replace").split())

    async def wait(self, within: float) -> int:
        """Its exit status; ChildFailed past the deadline, or when its output cannot be kept."""
        assert self._process is not None  # noqa: S101
        ending = asyncio.ensure_future(self._exit())
        try:
            async with asyncio.timeout(within):
                waiting: set[asyncio.Future[Any]] = {ending, *self._readers}
                while not ending.done():
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()  # a full disk shows here
                # asyncio.wait, because a gather that is cancelled would cancel the readers too.
                # Another process may keep the output of a program that failed open: do not wait.
                patience = _DRAIN_SECONDS if self._process.returncode else None
                read, _ = await asyncio.wait(self._readers, timeout=patience)
                for reader in read:
                    reader.result()
        except TimeoutError:
            raise ChildFailed(f"{self.launch.name}: not done within {within:g} s") from None
        finally:
            ending.cancel()
        self.ended = time.time()
        return self._process.returncode if self._process.returncode is not None else -1

    async def interrupt(self) -> int:
        """Ask it to end, as Ctrl-C does, so that it still writes its result; returns its status."""
        self.interrupted = True
        # Only the program gets the signal: `setpriv` and the like before it would die of it, and
        # take the program with them before it has written anything.
        if self.running:  # or its number may be another process's by now
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)
        return await self.wait(_ENDING_SECONDS)

    def record(self) -> ChildRecord:
        """For the archive: what ran, when, how it ended."""
        return ChildRecord(
            name=self.launch.name,
            argv=tuple(self.launch.argv),
            environment=dict(self.launch.environment),
            start_unix_seconds=self.started,
            end_unix_seconds=self.ended or None,
            status=self._process.returncode if self._process else None,
            interrupted=self.interrupted,
            stderr=self.last_words,
        )


def leaf(pid: int) -> int:
    """The program that `setpriv`, `nsenter` and the like were put before.

    These have one child each; a program that has forked workers has its own name in them.
    """
    while True:
        child_pids = children(pid)
        if len(child_pids) != 1 or _name(child_pids[0]) == _name(pid):
            return pid
        if _name(pid) not in ("nsenter", "setpriv", "sh", "unshare"):
            return pid
        pid = child_pids[0]


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""
