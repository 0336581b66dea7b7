"""A Debian of its own for a test: an overlay on a release tree, thrown away with the test.

Every command runs in namespaces of its own, in which the overlay is mounted; the files stay.
"""

import asyncio
import os
import shlex
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cephqos_exporter.ceph.cluster import tied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# What a unit with ProtectSystem=strict, ProtectHome, PrivateTmp leaves to write: nothing.
SEALED = (
    "mount -o remount,ro,bind {root}",
    "mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
    "mount -t tmpfs -o mode=0 tmpfs {root}/root",
    "mount -t tmpfs -o mode=0 tmpfs {root}/home",
)


# What each command inside has of the environment.
CLEAN = "env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C"


async def to_the_end(
    argv: Sequence[str], words: Sequence[str], within: float, check: bool
) -> tuple[int, str]:
    """A command line that runs words inside: its status and all it said."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), within)
    finally:
        if process.returncode is None:
            process.kill()
    said = out.decode(errors="replace")
    assert process.returncode == 0 or not check, f"{shlex.join(words)}: {said[-2000:]}"
    return process.returncode or 0, said


@dataclass(frozen=True)
class FreshRoot:
    """`tree` below, the changes in `directory`; `shared` are host folders that it sees too."""

    tree: Path
    directory: Path
    shared: tuple[Path, ...] = ()

    def argv(self, words: Sequence[str], *, sealed: bool = False) -> list[str]:
        """The command line that runs words inside; it ends with the one who started it."""
        root, lines = self.mounting()
        lines += [
            f"mount --rbind /proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
            f"mount --rbind /sys {root}/sys",
        ]
        if sealed:
            lines += [line.format(root=root) for line in SEALED]
        lines.append(f"exec {CLEAN} chroot {root} {shlex.join(words)}")
        return tied(["unshare", "--mount", "sh", "-c", "\n".join(lines)])

    def mounting(self) -> tuple[Path, list[str]]:
        """Where the overlay with the shared folders is to be, and the commands that mount it."""
        upper, work, root = (self.directory / name for name in ("upper", "work", "root"))
        for path in (upper, work, root):
            path.mkdir(exist_ok=True)
        lines = [
            "set -e",
            f"mount -t overlay overlay -o lowerdir={self.tree},upperdir={upper},workdir={work}"
            f" {root}",
        ]
        for path in self.shared:
            lines += [f"mkdir -p {root}{path}", f"mount --rbind {path} {root}{path}"]
        return root, lines

    def path(self, inside: str) -> Path:
        """Where a file that was written inside is outside."""
        return self.directory / "upper" / inside.lstrip("/")

    async def run(self, *words: str, within: float = 240, check: bool = True) -> tuple[int, str]:
        """A command to its end: its status and all it said."""
        return await to_the_end(self.argv(words), words, within, check)

    @asynccontextmanager
    async def service(
        self, words: Sequence[str], wrapped: Sequence[str] = ()
    ) -> "AsyncIterator[asyncio.subprocess.Process]":
        """A service in the sealed root, ended with the block; its messages are piped."""
        process = await asyncio.create_subprocess_exec(
            *self.argv([*wrapped, *words], sealed=True),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                os.killpg(process.pid, 15)
                await asyncio.wait_for(process.wait(), 20)
