"""What the host, the OSDs and the clients used while a phase or one step of a curve ran."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import psutil

from cephqos_loadgen.cluster import osds_here
from cephqos_loadgen.load.context import Context, beside
from cephqos_loadgen.results.host import HostUse, step_name
from cephqos_loadgen.run_recording import host, host_users

_CLIENT_LOOK_SECONDS = 1.0


@asynccontextmanager
async def recorded(
    context: Context, phase: str, *, clients: bool, uses: dict[str, HostUse]
) -> AsyncIterator[None]:
    """Put into `uses` what was used in a whole phase; nothing if the phase fails.

    With `clients` that includes what each client process of the phase used, start to end.
    """
    pids, disks = await context.cluster.pids(), await _osd_disks(context)
    users = await _users(pids)
    before, started = host.read_host(_only_osds(pids)), time.monotonic()

    def used_since(pids: Mapping[str, int]) -> HostUse:
        after = host.read_host(_only_osds(pids))
        return host.difference(before, after, time.monotonic() - started)

    states: dict[str, host.HostState] = {}
    watch = [asyncio.create_task(_watch_clients(context, phase, states))] if clients else []
    async with beside(*watch):
        yield
    use = used_since(pids)
    clients_use = {name: host.client_use(name, state) for name, state in states.items()}
    after = await _users(pids)
    if host_users.daemons_changed(users, after):
        # An OSD was started again: its new process is read too. It had used nothing before.
        pids = await context.cluster.pids()
        after = await _users(pids)
        use = used_since(pids)
    cpu_users, disk_users = host_users.users_between(
        users, after, disks, host_users.other_disks(use.disks, disks)
    )
    uses[phase] = replace(
        use, processes={**use.processes, **clients_use}, disk_users=disk_users, cpu_users=cpu_users
    )


@asynccontextmanager
async def of_step(context: Context, phase: str, depth: int, ramp: float) -> AsyncIterator[None]:
    """Put into `context.steps` what the host did at one depth, from the end of its ramp."""
    step = _HostStep(context, phase, _only_osds(await context.cluster.pids()))
    work = asyncio.create_task(step.follow(ramp))
    async with beside(work):
        yield
    if step.lost_an_osd():
        step.osds = _only_osds(await context.cluster.pids())
    use = step.use()
    if use:
        context.steps[step_name(phase, depth)] = use


class _HostStep:
    """What the OSDs and clients used in one step: counters after the ramp, and at the end."""

    def __init__(self, context: Context, phase: str, osds: dict[str, int]) -> None:
        self._context, self._phase, self.osds = context, phase, osds
        self._before: host.HostState | None = None
        self._clients: dict[str, host.HostState] = {}
        self._started = 0.0

    async def follow(self, ramp: float) -> None:
        await asyncio.sleep(ramp)
        clients = _running_clients(self._context, self._phase)
        self._before, self._started = host.read_host({**self.osds, **clients}), time.monotonic()
        await _watch_clients(self._context, self._phase, self._clients)

    def lost_an_osd(self) -> bool:
        """Whether one has ended since: it may have been started again."""
        return not all(map(psutil.pid_exists, self.osds.values()))

    def use(self) -> HostUse | None:
        """What was used since the ramp; nothing where the step has ended before."""
        if self._before is None:
            return None
        after = host.read_host(self.osds)
        threads, resident = dict(after.threads), dict(after.resident)
        for client in self._clients.values():  # each state holds this client alone
            threads.update(client.threads)
            resident.update(client.resident)
        after = replace(after, threads=threads, resident=resident)
        return host.difference(self._before, after, time.monotonic() - self._started)


def _only_osds(pids: Mapping[str, int]) -> dict[str, int]:
    return {name: pid for name, pid in pids.items() if name.startswith("osd.")}


async def _users(daemons: Mapping[str, int]) -> host_users.HostUserState:
    """Beside the event loop: a host may have thousands of processes."""
    return await asyncio.to_thread(host_users.read_host_users, tuple(daemons.values()))


async def _osd_disks(context: Context) -> list[str]:
    """Those of this host's OSDs; they stay the same for a repeat."""
    if context.osd_disks is None:
        cluster = context.cluster
        metadata, pids = await cluster.command("osd metadata"), await cluster.pids()
        names = osds_here.devices(metadata, pids)
        access = cluster.access
        context.osd_disks = host_users.disks_below(names | access.devices, access.disks)
    return context.osd_disks


def _running_clients(context: Context, phase: str) -> dict[str, int]:
    children = context.recorder.children
    return {
        child.launch.name: child.pid
        for child in children
        if child.launch.name.startswith(f"{phase}.") and child.running
    }


async def _watch_clients(context: Context, phase: str, states: dict[str, host.HostState]) -> None:
    """Keep in `states` the newest state of each client process: after its end none can be read.

    Threads of fio's jobs end before their process does; `with_ended` keeps their last figures.
    """
    while True:
        await asyncio.sleep(_CLIENT_LOOK_SECONDS)
        for name, pid in _running_clients(context, phase).items():
            states[name] = host.with_ended(states.get(name), host.read_host({name: pid}))
