"""The system calls of a service under `strace`, and those that a unit's filter lets through."""

import asyncio
import re
import shutil
from collections.abc import Iterable

import pytest


async def syscalls(*groups: str) -> set[str]:
    """The system calls of groups, as systemd of this machine lists them."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    found: set[str] = set()
    for group in groups:
        done = await asyncio.create_subprocess_exec(
            *("systemd-analyze", "syscall-filter", "--no-pager", group),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await done.communicate()
        names = re.findall(r"^ +(@?[\w-]+)$", out.decode(), re.MULTILINE)
        found |= {name for name in names if not name.startswith("@")}
        nested = [name for name in names if name.startswith("@")]
        found |= await syscalls(*nested) if nested else set()
    return found


async def lines_of(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stderr
    return (await process.stderr.read()).decode(errors="replace").splitlines()


def called_in(lines: Iterable[str]) -> set[str]:
    """The names of the calls in the lines of `strace -f`."""
    return {m[1] for line in lines if (m := re.match(r"(?:\[pid +\d+\] )?(\w+)\(", line))}
