"""Programs that are not ours, such as Prometheus: where they are, and whether a server answers."""

import asyncio
import contextlib
import shutil
import socket
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_base.servers import NoAnswer, fetch
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.releases import RELEASES, Release
from cephqos_loadgen.lab.trees import PACKAGES, tree_path, tree_ready

_START_SECONDS = 60.0


def find_program(name: str) -> list[str]:
    """The start of a command line: from the PATH, else from the newest release tree of the lab."""
    path = shutil.which(name)
    if path:
        return [path]
    for release in reversed(RELEASES.values()):
        if argv := tree_program(release, name):
            return argv
    raise UsageError(
        f"{name} not found: install Prometheus (apt-get install prometheus), or run"
        " `cephqos lab trees`, which has it"
    )


def tree_program(release: Release, name: str, packages: Sequence[str] = PACKAGES) -> list[str]:
    """A program of a release tree, run with the tree's own libraries; [] if it is not there."""
    tree = tree_path(release, packages)
    program = tree / "usr" / "bin" / name
    loader = next(tree.glob("usr/lib*/**/ld-linux*.so*"), None)
    if not (tree_ready(release, packages) and program.exists() and loader):
        return []
    return [str(loader), "--library-path", str(loader.resolve().parent), str(program)]


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all bound at once so that none comes twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [bound.getsockname()[1] for bound in sockets]


async def until_answers(
    url: str, process: Process, log: Path, name: str, within: float = _START_SECONDS
) -> None:
    """Wait until a server of ours answers; LabError with its last words if it ends or is late."""
    if not await answers(url, lambda: process.returncode is None, within):
        raise LabError(f"{name} did not start: {last_words(log)}")


async def answers(url: str, running: Callable[[], bool], within: float) -> bool:
    """Whether a server of ours shows this page within that time, and before it ends."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        with contextlib.suppress(NoAnswer):
            await fetch(url, within=2.0)
            return True
        if not running() or loop.time() > deadline:
            return False
        await asyncio.sleep(0.1)


def last_words(log: Path) -> str:
    """The last line of an output, at most 300 characters of it."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][-300:] if lines else "it said nothing"
