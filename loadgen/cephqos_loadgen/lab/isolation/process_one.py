"""Process 1 of a lab: makes mounts and devices, runs daemons, and removes it all at the end.

It runs in the lab's own PID and mount namespaces and holds the lab's lock. It ends when its
lifeline (a pipe from the keeper) closes, on SIGTERM, or when it is killed. Daemons and mounts end
with it, and loop devices detach by themselves. Unless it was killed, it also removes the files.

It answers one JSON object per line on a Unix socket: `{"op": …}` gives `{"ok": …}` or
`{"error": …}`. It starts daemons but knows nothing of Ceph.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cephqos_base.errors import CephqosError
from cephqos_base.terminal import say
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.isolation import loopdev
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.state import remove_files

_DEVICE_NODES = ("null", "zero", "full", "random", "urandom", "tty", "fuse")


class ProcessOne:
    """The daemons and devices that process 1 has, and what the keeper can ask of it."""

    def __init__(self, paths: LabPaths, tree: Path, lifeline: int) -> None:
        self.paths = paths
        self.tree = tree
        self.lifeline = lifeline
        self.daemons: dict[str, int] = {}  # by name: pid, as this namespace counts
        self.exits: dict[str, int] = {}  # by name: exit status of the last one that ended
        self.loops: dict[str, loopdev.LoopDevice] = {}  # by key, such as osd.0.block
        self.operations: dict[str, Callable[..., Any]] = {
            "spawn": self.spawn,
            "list": self.list,
            "attach": self.attach,
            "mount": self.mount,
        }

    # -- what the keeper can ask for ------------------------------------------------------------

    def spawn(self, name: str, argv: list[str], output: str) -> int:
        """Start a daemon inside the tree. Returns its pid, as this namespace counts."""
        if name in self.daemons:
            raise LabError(f"{name} is running already")
        # The folder of logs may be the daemons': they must not choose which file root writes to.
        write = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        path = shutil.which("chroot") or "/usr/sbin/chroot"
        pid = os.posix_spawn(
            path,
            [path, str(self.paths.root), *argv],
            {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, output, write, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )
        self.daemons[name] = pid
        self.exits.pop(name, None)
        return pid

    def list(self) -> dict[str, Any]:
        return {"daemons": self.daemons, "exits": self.exits}

    def attach(self, key: str, backing: str, scheduler: str, rotational: bool) -> str:
        """Attach a backing file to a loop device, whose node exists only in this lab's /dev."""
        device = loopdev.attach(Path(backing), scheduler, rotational=rotational)
        self.loops[key] = device
        node = self.paths.root / device.path.relative_to("/")
        node.unlink(missing_ok=True)
        os.mknod(node, 0o660 | 0o060000, device.rdev)
        return str(device.path)

    def mount(self, device: str, target: str, fs: str, options: str) -> None:
        """Mount a lab's device inside the tree."""
        inside = self.paths.root / target.lstrip("/")
        inside.mkdir(parents=True, exist_ok=True)
        node = self.paths.root / device.lstrip("/")
        flags = ("-o", options) if options else ()
        _run("mount", "-t", fs, *flags, str(node), str(inside))

    # -- start and end -------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the root that daemons see: the tree, read-only, with what they write in memory."""
        root = str(self.paths.root)
        _run("mount", "-t", "proc", "proc", "/proc")
        scratch = self.paths.dir / "scratch"
        scratch.mkdir()
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(scratch))
        for name in ("upper", "work"):
            (scratch / name).mkdir()
        layers = f"lowerdir={self.tree},upperdir={scratch}/upper,workdir={scratch}/work"
        _run("mount", "-t", "overlay", "-o", layers, "overlay", root)
        _run("mount", "-t", "proc", "proc", f"{root}/proc")
        _run("mount", "--rbind", "/sys", f"{root}/sys")
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/dev")
        self._make_dev()
        for name in ("run", "tmp"):
            _run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{root}/{name}")
        inside = self.paths.root / self.paths.dir.relative_to("/")
        inside.mkdir(parents=True)
        _run("mount", "--bind", str(self.paths.dir), str(inside))

    def _make_dev(self) -> None:
        dev = self.paths.root / "dev"
        for name in _DEVICE_NODES:
            if name == "fuse" and not Path("/dev/fuse").exists():
                continue
            os.mknod(dev / name, 0o666 | 0o020000, Path("/dev", name).stat().st_rdev)
            (dev / name).chmod(0o666)
        (dev / "fd").symlink_to("/proc/self/fd")
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            (dev / name).symlink_to(f"/proc/self/fd/{number}")
        (dev / "shm").mkdir()
        _run("mount", "-t", "tmpfs", "tmpfs", str(dev / "shm"))

    async def serve(self) -> None:
        """Answer requests and reap children until SIGTERM comes or the lifeline closes."""
        ending = asyncio.Event()

        def look_at_lifeline() -> None:
            if not os.read(self.lifeline, 1):
                ending.set()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, ending.set)
        loop.add_signal_handler(signal.SIGCHLD, self.reap)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        loop.add_reader(self.lifeline, look_at_lifeline)
        async with await asyncio.start_unix_server(self.answer, self.paths.control):
            await ending.wait()

    def reap(self) -> None:
        """Collect children that ended. Orphans of the namespace are children of process 1 too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for name, daemon in list(self.daemons.items()):
                if daemon == pid:
                    del self.daemons[name]
                    self.exits[name] = os.waitstatus_to_exitcode(status)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one reply."""
        with contextlib.closing(writer), contextlib.suppress(OSError):
            request = json.loads(await reader.readline() or "null")
            reply: dict[str, Any]
            try:
                operation = self.operations[request.pop("op")]
                reply = {"ok": operation(**request)}
            except CephqosError as error:
                reply = {"error": str(error)}
            except (OSError, KeyError, TypeError, AttributeError) as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()

    def finish(self) -> None:
        """End all processes of the namespace, then remove what the lab has on the host."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # everyone in this PID namespace but process 1
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        subprocess.run(["umount", "--recursive", "--lazy", str(self.paths.root)], check=False)
        subprocess.run(["umount", "--lazy", str(self.paths.dir / "scratch")], check=False)
        for device in self.loops.values():
            with contextlib.suppress(OSError, CephqosError):
                device.restore_and_close()
        try:
            remove_files(self.paths)
        except (CephqosError, OSError) as error:
            say(f"the lab's process 1: {error}", file=sys.stderr)


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed: {done.stderr.strip()}")


def main() -> int:
    """Called by the keeper: BASE NAME TREE LIFELINE-FD LOCK-FD PORTS-FD.

    The last two are only held: they say that the lab lives and that its ports are taken.
    """
    if os.getpid() != 1:  # at its end it kills all processes that it can see
        say(
            f"the lab's process 1 must be the first process of a PID namespace, and this is process"
            f" {os.getpid()}: start a lab with `cephqos lab up`",
            file=sys.stderr,
        )
        return 2
    base, name, tree, *fds = sys.argv[1:]
    lifeline, lock, ports = map(int, fds)
    for fd in (lifeline, lock, ports):
        os.set_inheritable(fd, False)
    process_one = ProcessOne(LabPaths(Path(base), name), Path(tree), lifeline)
    try:
        process_one.prepare()
        asyncio.run(process_one.serve())
    except (LabError, OSError) as error:
        say(f"the lab's process 1: {error}", file=sys.stderr)
        return 1
    finally:
        process_one.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
