"""A lab from inside Python: `async with Lab(LabSpec(osds=3)) as lab: …`.

The process that enters the block is the lab's keeper. It holds the lifeline, a pipe that process 1
of the lab watches: when the keeper ends, however it ends, the lab ends too.
"""

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from typing import Any, Self

from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab import checks
from cephqos_loadgen.lab.daemons.bringup import MANAGER, BringUp
from cephqos_loadgen.lab.daemons.ceph_conf import mon_addresses
from cephqos_loadgen.lab.faults import Faults
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.isolation import namespaces
from cephqos_loadgen.lab.isolation.ports import reserve_ports
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.lab.state import (
    LabState,
    LockHeld,
    clean_dead_lab,
    clean_dead_labs,
    is_alive,
    load_living,
    make_lab,
    owns_lock,
    remove_files,
    signal_holder,
)
from cephqos_loadgen.lab.trees import ensure_tree
from cephqos_loadgen.processes import own_module, start
from cephqos_loadgen.progress import Progress, Silent

_PROCESS_ONE_START_TIMEOUT = 60.0
_DOWN_TIMEOUT = 10.0  # for each attempt to end a lab
_LOOK_SECONDS = 2.0  # between two looks at the manager


class RunningLab(LabHandle):
    """A lab that is up, kept by this process or another."""

    def __init__(self, paths: LabPaths, state: LabState) -> None:
        super().__init__(paths, state)
        self.faults = Faults(self)

    @classmethod
    def find(cls, name: str) -> "RunningLab":
        """The running lab of that name, or a UsageError that says which there are."""
        return cls(*load_living(name))

    async def status(self) -> dict[str, Any]:
        """What `cephqos lab status --json` prints."""
        pids = await self.pids()
        osds = range(self.spec.osds)
        faults = await asyncio.gather(
            *(self.faults.in_force(osd, pids.get(f"osd.{osd}")) for osd in osds)
        )
        v2, v1 = mon_addresses(self.state.port)
        return {
            "name": self.paths.name,
            "ready": self.state.ready,
            "release": self.spec.release,
            "version": self.spec.ceph.version,
            "fsid": self.state.fsid,
            "mon_address": {"v2": v2, "v1": v1},
            "conf": str(self.paths.conf),
            "socket_dir": str(self.paths.sockets),
            "log_dir": str(self.paths.logs),
            "work_dir": str(self.paths.work),
            "bin_dir": str(self.paths.bin),
            "keeper_pid": self.state.keeper_pid,
            "init_pid": self.state.init_pid,
            "daemons": pids,
            "osds": [
                {
                    "id": osd,
                    "pid": pids.get(f"osd.{osd}"),
                    "faults": faults[osd],
                    "socket": str(self.paths.socket(f"osd.{osd}")),
                    "device": self.state.devices.get(f"osd.{osd}.block"),
                    "db_device": self.state.devices.get(f"osd.{osd}.db"),
                    "cpus": list(self.spec.cpus_of(osd)),
                }
                for osd in osds
            ],
        }


class Lab(RunningLab):
    """A lab that lives as long as the block: up on entry, gone on exit."""

    def __init__(self, spec: LabSpec, progress: Progress | None = None) -> None:
        self._wanted = spec
        self._progress = progress or Silent()
        self._open = contextlib.ExitStack()
        self._ended: asyncio.Task[None] | None = None  # done when process 1 has ended
        self._manager: asyncio.Task[None] | None = None  # starts it again
        self._lifeline: int | None = None  # our end of the pipe that process 1 watches
        self._lock: int | None = None  # file descriptor; None once the files are removed

    async def __aenter__(self) -> Self:
        try:
            await self._up()
        except BaseException:
            await self.down()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def _up(self) -> None:
        spec = self._wanted
        spec.validate()
        checks.check_host(spec)
        paths = LabPaths.of(spec.name)
        checks.check_socket_length(paths)
        tree = await ensure_tree(spec.ceph, self._progress)
        await checks.check_options(spec, tree)
        if raised := checks.raise_aio_limit():
            self._progress.note(raised)
        clean_dead_labs(self._progress.note)
        try:
            lock = make_lab(paths)
        except LockHeld:
            raise UsageError(
                f"lab {spec.name!r} is up already: use it, end it with"
                f" `cephqos lab down --name {spec.name}`, or choose another --name"
            ) from None
        self._open.callback(os.close, lock)
        self._lock, self.paths = lock, paths
        port, reservation = reserve_ports(spec.port)
        self._open.enter_context(reservation)
        fsid = spec.fsid or str(uuid.uuid4())
        state = LabState(spec, fsid, port, os.getpid(), 0, str(tree))
        super().__init__(paths, state)
        for folder in (paths.root, paths.sockets, paths.logs, paths.work, paths.bin):
            folder.mkdir()
        await self._start_process_one(lock, reservation)
        await BringUp(self, self._progress).run()
        state.ready = True
        state.save(paths)
        self._manager = asyncio.create_task(self._keep_manager())

    async def _start_process_one(self, lock: int, reservation: socket.socket) -> None:
        read_end, write_end = os.pipe()
        self._lifeline = write_end
        isolate = ["unshare", "--pid", "--mount", "--fork", "--kill-child=SIGTERM"]
        module = own_module("cephqos_loadgen.lab.isolation.process_one")
        descriptors = (read_end, lock, reservation.fileno())
        place = [str(self.paths.base), self.paths.name, self.state.tree]
        with (self.paths.logs / "process-1.out").open("wb") as output:
            unshare = await start(
                [*isolate, *module, *place, *map(str, descriptors)],
                stdout=output,
                stderr=output,
                pass_fds=descriptors,
            )
        os.close(read_end)
        self._ended = asyncio.create_task(self._watch(unshare))
        try:
            async with asyncio.timeout(_PROCESS_ONE_START_TIMEOUT):
                while not self.paths.control.exists():
                    if self._ended.done():
                        raise LabError(
                            f"the lab's process 1 ended immediately: {self._process_one_output()}"
                        )
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise LabError(
                f"the lab's process 1 did not start: {self._process_one_output()}"
            ) from None
        self.state.init_pid = namespaces.children(unshare.pid)[0]
        self.state.save(self.paths)

    async def _keep_manager(self) -> None:
        """Start the manager again when it ends, as its unit does elsewhere: that is none of the
        injected faults, and 18.2 built with Python 3.13 crashes when a module's command to a
        monitor ends. OSDs that end stay down."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            with contextlib.suppress(LabError, OSError):
                if MANAGER in (await self.ask_process_one(op="list"))["exits"]:
                    await BringUp(self, Silent()).start_manager()

    async def ended(self) -> None:
        """Wait until the lab ends by itself: its process 1 was killed."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    def _process_one_output(self) -> str:
        with contextlib.suppress(OSError):
            return (self.paths.logs / "process-1.out").read_text(errors="replace").strip()
        return "(nothing)"

    async def _watch(self, unshare: asyncio.subprocess.Process) -> None:
        """Remove the files when process 1 has ended. If it was killed, it has not done so."""
        await unshare.wait()
        self._remove_files()

    def _remove_files(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None and owns_lock(self.paths, lock):
            remove_files(self.paths)

    async def down(self) -> None:
        """End everything; safe to call twice."""
        if self._manager is not None:
            self._manager.cancel()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        try:
            if self._ended is not None:
                done, _ = await asyncio.wait([self._ended], timeout=_DOWN_TIMEOUT)
                if not done:
                    signal_holder(self.paths, self.state.init_pid, signal.SIGKILL)
                await self._ended
            self._remove_files()  # if the start failed before process 1
        finally:
            self._open.close()


async def end_lab(name: str) -> None:
    """End a lab that another process keeps (`lab down`): SIGTERM first, then SIGKILL."""
    try:
        paths, state = load_living(name, hint="nothing to end")
    except LabError:
        if await _is_gone(LabPaths.of(name), _DOWN_TIMEOUT):
            return  # its keeper has died, so it ends by itself
        raise
    for pid, number in (
        (state.keeper_pid, signal.SIGTERM),
        (state.keeper_pid, signal.SIGKILL),
        (state.init_pid, signal.SIGKILL),
    ):
        signal_holder(paths, pid, number)
        if await _is_gone(paths, _DOWN_TIMEOUT):
            break
    else:
        raise LabError(f"lab {name!r} did not end; its process 1 has pid {state.init_pid}")
    clean_dead_lab(paths)


async def _is_gone(paths: LabPaths, within: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while loop.time() < deadline:
        if not is_alive(paths):
            return True
        await asyncio.sleep(0.05)
    return False
