"""Client processes of a phase: started together, followed while they run, ended together."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal

from cephqos_loadgen import processes
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.followers import Follower
from cephqos_loadgen.load.kind import End
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.run_recording.child import Child, ChildFailed

# A client that was given a duration gets this much more: to connect, to drain what is in flight.
_GRACE = 30.0
# The status of a client that our interrupt ended: fio's own, and a shell's for SIGINT.
_INTERRUPTED = (128, 128 + signal.SIGINT)
_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """A process to start, and who takes its output."""

    argv: Sequence[str]
    follower: Follower


# How the clients of a phase came to their end.
Ended = Literal["by themselves", "interrupted"]


async def run_clients(
    context: Context, phase: str, clients: Sequence[ClientProcess], seconds: float, end: End | None
) -> Ended:
    """Run all of them, until they end by themselves or `end` returns. One that fails ends the
    phase."""
    try:
        async with AsyncExitStack() as stack:
            running: list[Child] = []
            for client in clients:
                name = f"{phase}.{client.follower.client}"
                child = context.recorder.child(name, client.argv, client.follower)
                running.append(await stack.enter_async_context(child))
            return await _until_done(running, seconds + _GRACE, end)
    finally:
        for client in clients:
            client.follower.flush()


async def _until_done(running: Sequence[Child], within: float, end: End | None) -> Ended:
    """Wait for all; when `end` returns first, interrupt them."""
    waits = [asyncio.create_task(child.wait(within)) for child in running]
    ending = asyncio.ensure_future(end()) if end else None
    tasks: list[asyncio.Future[Any]] = [*waits, ending] if ending else [*waits]
    pending = set(tasks)
    try:
        while not all(task.done() for task in waits):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            _check(running)
            if ending in done:
                await _cancel(waits)
                await asyncio.gather(*(child.interrupt() for child in running if child.running))
                _check(running)
                return "interrupted"
        return "by themselves"
    finally:
        await _cancel(tasks)


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _check(running: Sequence[Child]) -> None:
    for child in running:
        status = child.record().status
        if not status or (child.interrupted and status in _INTERRUPTED):
            continue
        ending = processes.how_it_ended(status)
        raise ChildFailed(f"{child.launch.name} {ending}: {child.last_words}".removesuffix(": "))


class RunTools:
    """What engines use on this host: processes of the repeat, and commands."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self, name: str, argv: Sequence[str]) -> AbstractAsyncContextManager[Child]:
        return self._context.recorder.child(name, argv, None)

    async def output(self, argv: Sequence[str]) -> str:
        command = self._context.cluster.access.argv(argv)
        done = await processes.run(command, within=_COMMAND_SECONDS)
        if done.returncode:
            raise RunError(f"{' '.join(argv)} failed: {done.stderr.strip()}")
        return done.stdout

    async def will_map(self, pool: str, image: str) -> None:
        await self._context.will_map(pool, image)
