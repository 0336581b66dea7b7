"""Brings a cluster up inside a lab's namespaces: devices, monitor, manager, OSDs.

`lab` calls `BringUp.run` once. `faults` uses single steps: `start_osd` and `limit_device`.
"""

import asyncio
import os
import shlex
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.checks import check_disk
from cephqos_loadgen.lab.daemons.ceph_conf import mon_addresses, render_conf
from cephqos_loadgen.lab.daemons.keyrings import write_keyrings
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.isolation import cgroups, loopdev, one_budget
from cephqos_loadgen.lab.isolation.namespaces import IN_TREE
from cephqos_loadgen.lab.spec import osds_in_words
from cephqos_loadgen.processes import how_it_ended
from cephqos_loadgen.progress import Progress, Say

MANAGER = "mgr.x"
_COMMAND_TIMEOUT = 60.0
_LOG_LINES = 12
# Commands of the tree that get a script in `bin_dir`, to be called from outside the lab.
_WRAPPED = ("ceph", "rados", "rbd", "fio", "ceph-osd", "ceph-objectstore-tool")
_CEPH_USER = "ceph"
# Every manager module imports bcrypt, and Debian's cannot be loaded into the manager's Python
# sub-interpreters: without this stand-in (which hashes nothing) no module works at all.
_BCRYPT = '"""A stand-in: the lab has no passwords to hash."""\n'


class BringUp:
    """The steps from an empty namespace to an active cluster."""

    def __init__(self, lab: LabHandle, progress: Progress) -> None:
        self.lab = lab
        self.spec = lab.spec
        self.paths = lab.paths
        self.progress = progress
        self.osds = [f"osd.{osd}" for osd in range(self.spec.osds)]
        self._state = "not started"  # how far it is, for an error
        self.uuids = {osd: str(uuid.uuid4()) for osd in self.osds}

    async def run(self) -> None:
        """Run all steps. A LabError has the last log lines of the daemon that failed."""
        release = f"Ceph {self.spec.ceph.version} ({self.spec.release})"
        title = f"starting {release}, {osds_in_words(self.spec.osds)}"
        with self.progress.step(title) as say:
            try:
                async with asyncio.timeout(self.spec.timeout):
                    await self._run(lambda text: self._say(say, text))
            except TimeoutError:
                raise LabError(
                    f"the cluster was not active within {self.spec.timeout:g} s ({self._state})"
                    + await self._last_words(anyone=True)
                ) from None
            except (LabError, CommandFailed, ClusterUnreachable) as error:
                raise LabError(f"{error}{await self._last_words()}") from error

    def _say(self, say: Say, text: str) -> None:
        self._state = text
        say(text)

    async def _run(self, say: Say) -> None:
        check_disk(self.spec, self.paths.base)
        say("devices and configuration")
        self._write_files()
        await self._make_devices()
        say("creating the monitor's and the OSDs' stores")
        await self._make_monitor()
        making_osds = asyncio.gather(*(self._make_osd(osd) for osd in self.osds))
        try:
            await self._start("mon.a", ["ceph-mon", "-i", "a"])
            has_keys = self.spec.auth == "cephx"
            if not has_keys:  # a monitor refuses all keys at first, and the manager would give up
                await self.start_manager()
            say("waiting for the monitor")
            # A client that connects too early tries again only seconds later.
            await self._until(self._monitor_listens)
            async with self.lab.client() as client:
                await self._until(lambda: self._monitor_answers(client))
                if has_keys:
                    await self.start_manager()
                for name in self.osds:
                    number = int(name.partition(".")[2])
                    await client.command("osd new", uuid=self.uuids[name], id=number)
                await making_osds
                say("starting OSDs")
                for osd in range(self.spec.osds):
                    await self.start_osd(osd)
                    if self.spec.device_limits:
                        await self.limit_device(osd, self.spec.device_limits)
                await self._until(lambda: self._is_active(client, say))
        except BaseException:
            making_osds.cancel()
            await asyncio.gather(making_osds, return_exceptions=True)
            raise

    def _write_files(self) -> None:
        state = self.lab.state
        conf = render_conf(self.spec, self.paths, state.fsid, state.port)
        self.paths.conf.write_text(conf)
        if self.spec.auth == "cephx":
            write_keyrings(self.paths, self.spec.ceph, [MANAGER, *self.osds])
        in_tree = ["chroot", str(self.paths.root), *IN_TREE]
        enter = ["nsenter", "--target", str(state.init_pid), "--mount", "--pid", "--root", *in_tree]
        for command in _WRAPPED:
            script = self.paths.bin / command
            setting = f"CEPH_CONF={self.paths.conf}"
            script.write_text(f'#!/bin/sh\nexec {" ".join(enter)} {setting} {command} "$@"\n')
            script.chmod(0o755)

    async def _make_devices(self) -> None:
        for folder in ("disks", "data", "crash"):
            (self.paths.dir / folder).mkdir()
        await self._inside("mkdir", "-p", "/etc/ceph")
        await self._inside("tee", "/usr/share/ceph/mgr/bcrypt.py", data=_BCRYPT)
        await self._inside("ln", "-sf", str(self.paths.conf), "/etc/ceph/ceph.conf")
        for daemon in ("mon.a", MANAGER, *self.osds):
            self.paths.data(daemon).mkdir()
        if self.spec.one_budget:
            await self._start_storage()
        for osd in range(self.spec.osds):
            await self._make_osd_devices(osd)
        if self.spec.setuser:
            owned = [str(self.paths.data("")), str(self.paths.dir / "crash")]
            owned += [str(self.paths.sockets), str(self.paths.logs), str(self.paths.dir / "disks")]
            owned += [str(self.paths.keys)] if self.spec.auth == "cephx" else []
            devices = sorted(self.lab.state.devices.values())
            await self._inside("chown", "-R", f"{_CEPH_USER}:{_CEPH_USER}", *owned, *devices)
        self.lab.state.save(self.paths)

    async def _make_osd_devices(self, osd: int) -> None:
        data = self.paths.data(f"osd.{osd}")
        scheduler = self.spec.io_scheduler or "none"
        rotational = bool(self.spec.rotational)
        if self.spec.objectstore == "filestore":
            device = await self._attach(osd, "block", self.spec.osd_size, scheduler, rotational)
            fs, options = self.spec.filesystem, self.spec.mount
            await self._inside(f"mkfs.{fs}", *shlex.split(self.spec.mkfs), device)
            await self.lab.ask_process_one(
                op="mount", device=device, target=str(data), fs=fs, options=options
            )
            return
        if not self.spec.loop:
            block = self.paths.disk(osd, "block")
            block.touch()
            os.truncate(block, self.spec.osd_size)
            (data / "block").symlink_to(block)
            return
        device = await self._attach(osd, "block", self.spec.osd_size, scheduler, rotational)
        (data / "block").symlink_to(device)
        if self.spec.db_size is not None:
            # A DB device is usually faster than the main device.
            device = await self._attach(osd, "db", self.spec.db_size, "none", rotational=False)
            (data / "block.db").symlink_to(device)

    async def _attach(
        self, osd: int, role: str, size: int, scheduler: str, rotational: bool
    ) -> str:
        if self.spec.one_budget and role == "block":
            backing = one_budget.seen_by_process_one(self.paths, osd)
        else:
            backing = self._file(osd, role, size)
        key = f"osd.{osd}.{role}"
        device: str = await self.lab.ask_process_one(
            op="attach", key=key, backing=str(backing), scheduler=scheduler, rotational=rotational
        )
        self.lab.state.devices[key] = device
        return device

    def _file(self, osd: int, role: str, size: int) -> Path:
        """An empty file, which holds what the OSD writes."""
        path = self.paths.disk(osd, role)
        path.touch()
        os.truncate(path, size)
        return path

    async def _start_storage(self) -> None:
        """Start what gives each OSD's device one budget for reads and writes."""
        for osd in range(self.spec.osds):
            self._file(osd, "block", self.spec.osd_size)
            one_budget.export(self.paths, osd).touch()
        assert self.spec.device_iops is not None  # noqa: S101 - the spec was validated
        argv = one_budget.argv(
            self.paths, self.spec.osds, self.spec.device_iops, self.spec.request_size
        )
        output = str(self.paths.output(one_budget.STORAGE))
        await self.lab.ask_process_one(
            op="spawn", name=one_budget.STORAGE, argv=argv, output=output
        )
        for osd in range(self.spec.osds):
            await self._until(partial(self._is_exported, osd))

    async def _is_exported(self, osd: int) -> bool:
        """Until then the file is an empty one."""
        argv = ["test", "-s", str(one_budget.export(self.paths, osd))]
        return (await self.lab.exec(argv, check=False)).returncode == 0

    async def _make_monitor(self) -> None:
        v2, v1 = mon_addresses(self.lab.state.port)
        monmap = str(self.paths.dir / "monmap")
        create = ["monmaptool", "--create", "--clobber", "--fsid", self.lab.state.fsid]
        await self._inside(*create, "--addv", "a", f"[v2:{v2},v1:{v1}]", monmap)
        keyring = str(self.paths.keyring("mon."))
        keys = ["--keyring", keyring] if self.spec.auth == "cephx" else []
        identity = ["-i", "a", "--monmap", monmap, *keys]
        await self._inside("ceph-mon", "--mkfs", *identity, *self._user())

    async def _make_osd(self, osd: str) -> None:
        number = osd.partition(".")[2]
        monmap = str(self.paths.dir / "monmap")
        identity = ["-i", number, "--osd-uuid", self.uuids[osd], "--monmap", monmap]
        await self._inside("ceph-osd", "--mkfs", *identity, "--no-mon-config", *self._user())

    async def _start(self, name: str, argv: list[str]) -> None:
        command = [*argv, "-f", "--conf", str(self.paths.conf), *self._user()]
        output = str(self.paths.output(name))
        await self.lab.ask_process_one(op="spawn", name=name, argv=command, output=output)

    async def start_manager(self) -> None:
        await self._start(MANAGER, ["ceph-mgr", "-i", "x"])

    async def start_osd(self, osd: int) -> None:
        """Start one OSD, on its CPUs if it has any."""
        cpus = ",".join(map(str, self.spec.cpus_of(osd)))
        pin = ["taskset", "--cpu-list", cpus] if cpus else []
        await self._start(f"osd.{osd}", [*pin, "ceph-osd", "-i", str(osd)])

    async def limit_device(self, osd: int, limits: dict[str, int]) -> None:
        """Limit the device of a running OSD to riops, wiops, rbps, wbps; empty: no limit."""
        device = self.lab.state.devices.get(f"osd.{osd}.block")
        if device is None:
            raise UsageError("throttling needs a device per OSD: a lab with --backing loop")
        pid = (await self.lab.pids()).get(f"osd.{osd}")
        if pid is None:
            raise LabError(f"osd.{osd} is not running")
        lower = loopdev.lower_rdev(Path(device))
        # In a thread: on a busy host the kernel moves a process slowly.
        await asyncio.to_thread(cgroups.throttle, self.paths, osd, pid, lower, limits)

    def _user(self) -> list[str]:
        return ["--setuser", _CEPH_USER, "--setgroup", _CEPH_USER] if self.spec.setuser else []

    async def _inside(self, *argv: str, data: str = "") -> None:
        await self.lab.exec(argv, within=_COMMAND_TIMEOUT, data=data)

    # -- waiting --------------------------------------------------------------------------------

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Poll until the condition holds or a daemon ends. The deadline is the caller's."""
        while not await condition():
            exits = (await self.lab.ask_process_one(op="list"))["exits"]
            if exits:
                name, status = next(iter(exits.items()))
                raise LabError(f"{name} {how_it_ended(status)}")
            await asyncio.sleep(0.05)

    async def _monitor_listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.lab.state.port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    async def _monitor_answers(self, client: MonClient) -> bool:
        try:
            await client.command("mon stat", within=5.0)
        except (ClusterUnreachable, CommandFailed):
            return False
        return True

    async def _is_active(self, client: MonClient, say: Say) -> bool:
        status: dict[str, Any] = await client.command("status")
        osds = status["osdmap"]
        count, up_osds, in_osds = self.spec.osds, osds["num_up_osds"], osds["num_in_osds"]
        active = bool(status["mgrmap"].get("available", False))
        manager = "active" if active else "starting"
        say(f"{up_osds} of {count} OSDs up, {in_osds} in, manager {manager}")
        return up_osds == in_osds == count and active

    async def _last_words(self, *, anyone: bool = False) -> str:
        """The last lines of daemons that ended; with `anyone`, if none did: of the newest log."""
        try:
            names = list((await self.lab.ask_process_one(op="list"))["exits"])
        except LabError:
            names = []
        files = [log for name in names for log in (self.paths.output(name), self.paths.log(name))]
        files = [file for file in files if file.exists()]
        if not files and anyone:
            logs = sorted(self.paths.logs.glob("*.log"), key=lambda file: file.stat().st_mtime)
            files = logs[-1:]
        text = ""
        for file in files:
            lines = file.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            text += f"\n--- last lines of {file.name} ---\n" + "\n".join(lines)
        return text
