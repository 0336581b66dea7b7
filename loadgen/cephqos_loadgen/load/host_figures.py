"""What the host, the OSDs and the clients used while a phase or one step of a curve ran."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from cephqos_loadgen.load.context import Context, beside
from cephqos_loadgen.record.host import HostState, client_use, difference, read_host
from cephqos_loadgen.results.host import HostUse

_CLIENT_LOOK_SECONDS = 1.0


@asynccontextmanager
async def recorded(
    context: Context, phase: str, *, clients: bool, found: dict[str, HostUse]
) -> AsyncIterator[None]:
    """Of a whole phase, with all that its clients used from their start to their end."""
    daemons = await _osds(context)
    before, started = read_host(daemons), time.monotonic()
    seen: dict[str, HostState] = {}
    look = asyncio.create_task(_look_at_clients(context, phase, seen))
    async with beside(*([look] if clients else [])):
        yield
    look.cancel()
    use = difference(before, read_host(daemons), time.monotonic() - started)
    own = {name: client_use(name, state) for name, state in seen.items()}
    found[phase] = replace(use, processes={**use.processes, **own})


@asynccontextmanager
async def of_step(context: Context, phase: str, depth: int, ramp: float) -> AsyncIterator[None]:
    """Of one depth of a curve, from the end of its ramp."""
    step = _HostStep(context, phase, await _osds(context))
    work = asyncio.create_task(step.follow(ramp))
    async with beside(work):
        yield
    use = step.use()
    if use:
        context.steps[step_name(phase, depth)] = use


def step_name(phase: str, depth: int) -> str:
    """Its key in `host.json`; no phase can be called so."""
    return f"{phase} depth {depth}"


class _HostStep:
    def __init__(self, context: Context, phase: str, osds: dict[str, int]) -> None:
        self._context, self._phase, self._osds = context, phase, osds
        self._before: HostState | None = None
        self._clients: dict[str, HostState] = {}
        self._started = 0.0

    async def follow(self, ramp: float) -> None:
        await asyncio.sleep(ramp)
        clients = _running_clients(self._context, self._phase)
        self._before, self._started = read_host({**self._osds, **clients}), time.monotonic()
        await _look_at_clients(self._context, self._phase, self._clients)

    def use(self) -> HostUse | None:
        """What was used since the ramp; nothing where the step has ended before."""
        if self._before is None:
            return None
        after = read_host(self._osds)
        threads = dict(after.threads)
        resident = dict(after.resident)
        for name, state in self._clients.items():
            threads |= {name: state.threads[name]} if name in state.threads else {}
            resident |= {name: state.resident[name]} if name in state.resident else {}
        whole = replace(after, threads=threads, resident=resident)
        return difference(self._before, whole, time.monotonic() - self._started)


async def _osds(context: Context) -> dict[str, int]:
    pids = await context.cluster.pids()
    return {name: pid for name, pid in pids.items() if name.startswith("osd.")}


def _running_clients(context: Context, phase: str) -> dict[str, int]:
    children = context.recorder.children
    return {
        child.launch.name: child.pid
        for child in children
        if child.launch.name.startswith(f"{phase}.") and child.running
    }


async def _look_at_clients(context: Context, phase: str, found: dict[str, HostState]) -> None:
    """The threads of client processes as of the last second of each: at the end they are gone."""
    while True:
        await asyncio.sleep(_CLIENT_LOOK_SECONDS)
        for name, pid in _running_clients(context, phase).items():
            found[name] = read_host({name: pid})
