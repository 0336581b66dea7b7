"""A lab's namespaces and what runs in them, from outside."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cephqos_loadgen.errors import LabError
from cephqos_loadgen.processes import ENDS_WITH_PARENT

# The lab's folder has the same path inside. With a PATH that begins with its `bin_dir`, the scripts
# there would find and call themselves.
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


async def ask_process_one(control: Path, within: float = 10.0, **request: Any) -> Any:
    """Send one request to the lab's process 1, and return its answer."""
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
    """Pids of the child processes, as the host counts."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def is_stopped(pid: int | None) -> bool:
    """Whether all threads of a process are stopped by SIGSTOP."""
    states = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # a thread that has just ended
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
