"""Child processes: all of ours are started here.

Each leads a process group, so that it is ended with all that it started. `run` is for a command
whose output is wanted, `in_background` for a server. For other uses there is `start`: its caller
must end the process, by `end` or `signal_group`.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO

from cephqos_loadgen.errors import LabError

# Put before a command line: the kernel kills the process when its parent ends.
ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
_SECONDS_TO_END = 3.0


def own_module(name: str) -> list[str]:
    """The start of a command line that runs a module of ours. It imports nothing from the working
    directory, which may hold files of others, such as an archive."""
    return [sys.executable, "-P", "-m", name]


async def start(
    argv: Sequence[str],
    *,
    stdin: int = DEVNULL,
    stdout: int | IO[bytes] = DEVNULL,
    stderr: int | IO[bytes] = DEVNULL,
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Process:
    """A process in a session of its own.

    `environment`: variables besides ours. Not arguments of `env`, which every user can read.
    """
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(environment or {})},
        pass_fds=pass_fds,
        start_new_session=True,
    )


def signal_group(process: Process, number: signal.Signals = signal.SIGKILL) -> None:
    """To the process and all that it started and that has not left its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def end(process: Process) -> None:
    """SIGTERM to the whole process group; SIGKILL if it has not ended after a few seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        signal_group(process, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_END):
                await process.wait()


@asynccontextmanager
async def in_background(
    argv: Sequence[str],
    output: Path,
    *,
    stdin: int = DEVNULL,
    environment: Mapping[str, str] | None = None,
    append: bool = False,
) -> AsyncIterator[Process]:
    """Run a process while the block runs; its output goes to the file `output`.

    It ends with ours, even when ours is killed.
    """
    with output.open("ab" if append else "wb") as file:
        process = await start(
            [*ENDS_WITH_PARENT, *argv],
            stdin=stdin,
            stdout=file,
            stderr=file,
            environment=environment,
        )
    try:
        yield process
    finally:
        await end(process)


async def run(
    argv: Sequence[str], *, within: float, data: str = "", named: str = ""
) -> CompletedProcess[str]:
    """Run a command to its end; past the deadline its process group is killed: LabError.

    `named` replaces the command line in error messages.
    """
    process = await start(argv, stdin=PIPE if data else DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(data.encode() if data else None)
    except TimeoutError:
        raise LabError(f"{named or ' '.join(argv)}: not done within {within:g} s") from None
    finally:
        if process.returncode is None:
            signal_group(process)
            await process.communicate()
    status = process.returncode if process.returncode is not None else -1
    return CompletedProcess(
        argv, status, out.decode(errors="replace"), err.decode(errors="replace")
    )


def how_it_ended(status: int) -> str:
    """An exit status in words; negative ones are signals."""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
