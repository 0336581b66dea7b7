"""Running commands and daemons inside a lab's namespaces, from outside."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cephqos_loadgen.background import ENDS_WITH_PARENT
from cephqos_loadgen.errors import LabError


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended, with its output."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


# The lab's folder has the same name inside: a PATH that begins with its `bin_dir` would find the
# wrappers there again, and they would call themselves.
IN_TREE = ("env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


def enter_argv(init_pid: int, root: Path, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` inside the lab. It ends with its parent process."""
    return [
        *ENDS_WITH_PARENT,
        *("nsenter", "--target", str(init_pid), "--mount", "--pid", "--root"),
        *ENDS_WITH_PARENT,
        *("chroot", str(root)),
        *IN_TREE,
        *argv,
    ]


def how_it_ended(status: int) -> str:
    """An exit status in words; negative ones are signals."""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


async def run(argv: Sequence[str], *, within: float, data: str = "", named: str = "") -> Completed:
    """Run a command to its end; past the deadline its process group is killed: LabError.

    `named` replaces the command line in error messages.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE if data else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(data.encode() if data else None)
    except TimeoutError:
        raise LabError(f"{named or ' '.join(argv)}: not done within {within:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
    status = process.returncode if process.returncode is not None else -1
    return Completed(
        tuple(argv), status, out.decode(errors="replace"), err.decode(errors="replace")
    )


async def ask_process_one(control: Path, within: float = 10.0, **request: Any) -> Any:
    """One request to the lab's process 1."""
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_unix_connection(control)
            try:
                writer.write(json.dumps(request).encode() + b"\n")
                await writer.drain()
                line = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise LabError(f"the lab's process 1 does not answer: {error}") from error
    reply = json.loads(line or '{"error": "it closed the connection"}')
    if "error" in reply:
        raise LabError(f"{request['op']}: {reply['error']}")
    return reply["ok"]


def children(pid: int) -> list[int]:
    """Child processes, as the host counts them."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def is_stopped(pid: int | None) -> bool:
    """Whether all threads of a process are stopped by SIGSTOP."""
    states = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return bool(states) and all(state in "TZX" for state in states) and "T" in states


def host_pid(init_pid: int, inner: int) -> int | None:
    """The host's pid of the daemon whose pid inside the lab is `inner`."""
    for pid in children(init_pid):
        with contextlib.suppress(OSError, StopIteration):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            ids = next(line for line in lines if line.startswith("NSpid:")).split()
            if int(ids[-1]) == inner:
                return pid
    return None
