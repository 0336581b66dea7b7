"""systemd as the first process of a fresh root: units are started as they are on a host.

It has namespaces and a control group of its own. The kernel's settings are read-only for it, and
nothing of the distribution is started: only what a test starts, and what that needs. No file
system is mounted on /tmp, where tests have shared folders.
"""

import asyncio
import itertools
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from cephqos_exporter.ceph.cluster import tied

from .fresh_root import CLEAN, FreshRoot, to_the_end

_SYSTEM: Final = """
mount -t proc proc {root}/proc
mount --bind {root}/proc/sys {root}/proc/sys
mount -o remount,ro,bind {root}/proc/sys
mount -t sysfs -o ro sysfs {root}/sys
mount -t cgroup2 cgroup2 {root}/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs {root}/dev
mknod -m 666 {root}/dev/null c 1 3
mknod -m 666 {root}/dev/zero c 1 5
mknod -m 666 {root}/dev/full c 1 7
mknod -m 666 {root}/dev/random c 1 8
mknod -m 666 {root}/dev/urandom c 1 9
mknod -m 666 {root}/dev/tty c 5 0
mkdir {root}/dev/pts {root}/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts {root}/dev/pts
ln -s pts/ptmx {root}/dev/ptmx
mount -t tmpfs -o mode=755 tmpfs {root}/run
units={root}/run/systemd/system
mkdir -p $units
printf '[Unit]\\nDefaultDependencies=no\\nWants=systemd-journald.socket\\n' >$units/booted.target
ln -s /dev/null $units/systemd-remount-fs.service
ln -s /dev/null $units/tmp.mount
for target in sysinit basic sockets timers local-fs; do
    for path in {root}/etc/systemd/system {root}/usr/lib/systemd/system; do
        wanted=$path/$target.target.wants
        [ ! -d $wanted ] || mount -t tmpfs -o ro tmpfs $wanted
    done
done
cd {root}
pivot_root . mnt
umount -l /mnt
# As systemd does it on a host: what LoadCredential= hands to a unit is a mount that it has to see.
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin /lib/systemd/systemd \
    --unit=booted.target --log-target=journal
"""
_NAMESPACES: Final = "--mount --pid --net --uts --ipc --cgroup --fork --kill-child"
_SECONDS: Final = 60
_numbers: Final = itertools.count()


@dataclass(frozen=True)
class Booted:
    """`pid` is the first process's, as seen from outside."""

    pid: int

    async def run(self, *words: str, within: float = 120, check: bool = True) -> tuple[int, str]:
        """A command to its end: its status and all it said."""
        argv = tied(["nsenter", f"--target={self.pid}", "--all", *CLEAN.split(), *words])
        return await to_the_end(argv, words, within, check)

    async def show(self, unit: str, what: str) -> str:
        """A property of a unit."""
        return (await self.run("systemctl", "show", "--property", what, "--value", unit))[1].strip()

    async def until(self, *words: str, within: float = 30) -> None:
        """The command succeeds in this time, with what the journal says if not."""
        for _ in range(round(within * 2)):
            status, said = await self.run(*words, check=False)
            if status == 0:
                return
            await asyncio.sleep(0.5)
        raise AssertionError(said + (await self.run("journalctl", "--no-pager"))[1][-4000:])


def _group() -> Path:
    """A new control group of version 2."""
    mounted = Path("/proc/self/mountinfo").read_text()
    for place in re.findall(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", mounted, re.MULTILINE):
        group = Path(place) / f"cephqos-booted-{os.getpid()}-{next(_numbers)}"
        try:
            group.mkdir()
        except OSError:
            continue
        return group
    pytest.skip("no cgroup2 is mounted here in which a group can be made")


async def _started(process: asyncio.subprocess.Process) -> Booted:
    said = ""
    for _ in range(_SECONDS * 5):
        await asyncio.sleep(0.2)
        assert process.returncode is None, "it ended"
        for child in psutil.Process(process.pid).children():
            inside = Booted(child.pid)
            _, said = await inside.run("systemctl", "is-system-running", check=False)
            if said.strip() in ("running", "degraded"):
                return inside
    raise AssertionError(f"systemd did not come up: {said}")


@asynccontextmanager
async def booted(fresh: FreshRoot) -> AsyncIterator[Booted]:
    """Ended with the block; until then the root's own `run` is not to be used."""
    root, lines = fresh.mounting()
    lines += _SYSTEM.format(root=root).splitlines()
    group = _group()
    outer = f'echo $$ >"$0/cgroup.procs"; exec unshare {_NAMESPACES} sh -c "$1"'
    argv = tied(["sh", "-c", outer, str(group), "\n".join(lines)])
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL)
    try:
        yield await _started(process)
    finally:
        await _end(process, group)


async def _end(process: asyncio.subprocess.Process, group: Path) -> None:
    """The kernel ends the others with the first one, before whoever waits for that hears of it."""
    if process.returncode is None:
        first = psutil.Process(process.pid).children()
        for one in first:
            one.kill()
        if not first:
            process.kill()
        await asyncio.wait_for(process.wait(), 20)
    for path in sorted(group.rglob("*/"), reverse=True):
        path.rmdir()
    group.rmdir()
