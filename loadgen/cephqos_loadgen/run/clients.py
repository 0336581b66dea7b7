"""Client load: fio and rados bench processes of a phase, followed while they run."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cephqos_loadgen.engines import fio, rados_bench
from cephqos_loadgen.engines.fio import Figures
from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.lab import process
from cephqos_loadgen.record.child import Child, ChildFailed
from cephqos_loadgen.run.context import Context
from cephqos_loadgen.run.errors import RunError
from cephqos_loadgen.scenario.model import PERCENTILES, Fio, Phase, RadosBench

# A client that was given a duration gets this much more: to connect, to drain what is in flight.
_GRACE = 30.0
_SOCKET_SECONDS = 15.0
# fio's status when it was told to end.
_FIO_INTERRUPTED = 128

End = Callable[[], Awaitable[None]]


class FioFollower:
    """Takes one fio process's output as it comes."""

    def __init__(self, context: Context, phase: str, client: str, engine: str) -> None:
        self._context, self._phase, self._client = context, phase, client
        self._stream = fio.JsonStream()
        self.last: fio.Status | None = None
        context.live.start_client(phase, client, engine)

    def __call__(self, data: bytes) -> None:
        for document in self._stream.feed(data):
            self.last = fio.read_status(document)
            take_status(self._context, self._phase, self._client, self.last)


class BenchFollower:
    """The same for one instance of rados bench, whose whole output is kept too."""

    def __init__(self, context: Context, phase: str, pool: str, action: RadosBench) -> None:
        self._context, self._phase, self._pool, self._action = context, phase, pool, action
        self._stream = rados_bench.RowStream()
        self.output = bytearray()
        context.live.start_client(phase, pool, "rados_bench")

    def __call__(self, data: bytes) -> None:
        self.output += data
        op = "write" if self._action.op == "write" else "read"
        for row in self._stream.feed(data):
            done = {op: row.figures(self._action.object_size)}
            jobs = {self._pool: {d: done.get(d, Figures()) for d in fio.DIRECTIONS}}
            status = fio.Status(time.time(), jobs, {}, float(row.second))
            take_status(self._context, self._phase, self._pool, status)


def take_status(context: Context, phase: str, client: str, status: fio.Status) -> None:
    """What a client did since its last status: for the live figures and for the archive."""
    live = context.live
    together = live.status(phase, client, status)
    figures = live.clients[phase, client]
    seconds = figures.seconds
    if seconds <= 0 or not together.ios:
        return
    parts = {d: summary(part, seconds) for d, part in figures.interval.items() if part.ios}
    context.recorder.intervals.write(
        {
            "time": status.time,
            "phase": phase,
            "client": client,
            "seconds": round(seconds, 3),
            **parts,
        }
    )
    # Intervals end when fio gets round to it; one that is very short says nothing.
    if seconds >= 0.5:
        rates = context.rates.setdefault(phase, [])
        rates.append((status.time, live.iops(phase)))


def summary(figures: Figures, seconds: float) -> dict[str, Any]:
    """The figures that tables are made from; seconds and bytes. None: the engine cannot say."""
    known = bool(figures.bins) or not figures.ios
    percentiles = {
        f"latency_p{percent}": figures.percentile(float(percent)) if known else None
        for percent in PERCENTILES
    }
    return {
        "ios": figures.ios,
        "iops": figures.ios / seconds if seconds else 0.0,
        "bytes_per_second": figures.bytes / seconds if seconds else 0.0,
        "latency_mean": figures.mean,
        "latency_deviation": figures.deviation if known else None,
        "latency_max": figures.latency_max if known else None,
        **percentiles,
    }


async def run_fio(
    context: Context, phase: Phase, action: Fio, seconds: float, end: End | None, depth: int
) -> dict[str, Any]:
    """All clients of one fio step, to their end or to what `end` says; the figures together."""
    followers: dict[str, FioFollower] = {}
    async with AsyncExitStack() as stack:
        devices = await stack.enter_async_context(_volumes(context, phase, action))
        running: list[Child] = []
        for client in fio.clients(action):
            argv = fio.argv(
                action,
                client,
                context.place,
                phase=phase.name,
                seconds=seconds,
                depth=depth,
                devices=devices,
            )
            follower = FioFollower(context, phase.name, client.name, action.engine)
            followers[client.name] = follower
            child = context.recorder.child(f"{phase.name}.{client.name}", argv, follower)
            running.append(await stack.enter_async_context(child))
        await _until_done(running, seconds + _GRACE, end)
    result = _result(action, depth, followers)
    if result.get("steady") is False:
        context.recorder.event("not_steady", phase=phase.name, after=result["seconds"])
    return result


def _result(action: Fio, depth: int, followers: dict[str, FioFollower]) -> dict[str, Any]:
    statuses = {name: f.last for name, f in followers.items() if f.last is not None}
    if len(statuses) < len(followers):
        silent = ", ".join(name for name in followers if name not in statuses)
        raise RunError(f"fio wrote no result for {silent}")
    for name, status in statuses.items():
        wrong = {job: error for job, error in status.errors.items() if error}
        if wrong:
            raise RunError(f"{name}: fio reports errors (job: errno) {wrong}")
    runtime = max((status.runtime for status in statuses.values()), default=0.0)
    found: dict[str, Any] = {"engine": action.engine, "depth": depth, "seconds": runtime}
    for direction in fio.DIRECTIONS:
        together = fio.add(status.of(direction) for status in statuses.values())
        if together.ios:
            found[direction] = summary(together, runtime)
    everything = fio.add(status.total for status in statuses.values())
    found["total"] = summary(everything, runtime)
    found["clients"] = {name: summary(s.total, s.runtime) for name, s in statuses.items()}
    if fio.ends_by_itself(action):
        jobs = [job for status in statuses.values() for job in status.steady.values()]
        found["steady"] = bool(jobs) and all(jobs)
    return found


async def _until_done(running: list[Child], within: float, end: End | None) -> None:
    """Wait for all; when `end` comes first, interrupt them. One that fails ends the phase."""
    waits = [asyncio.create_task(child.wait(within)) for child in running]
    ending = asyncio.ensure_future(end()) if end else None
    try:
        pending: set[asyncio.Future[Any]] = {*waits, *([ending] if ending else [])}
        while any(not task.done() for task in waits):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            _check(running)
            if ending is not None and ending.done():
                break
        if ending is not None and ending.done():
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            await asyncio.gather(*(child.interrupt() for child in running if child.running))
        _check(running)
    finally:
        for task in (*waits, *([ending] if ending else [])):
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _check(running: list[Child]) -> None:
    for child in running:
        status = child.record()["status"]
        if status is None or status == 0:
            continue
        if child.interrupted and status in (_FIO_INTERRUPTED, 130):
            continue
        raise ChildFailed(f"{child.launch.name} ended with status {status}: {child.said}")


# -- volumes that need something beside fio ------------------------------------------------------


@asynccontextmanager
async def _volumes(context: Context, phase: Phase, action: Fio) -> AsyncIterator[dict[int, str]]:
    if action.engine == "nbd":
        async with _qemu(context, phase, action):
            yield {}
    elif action.engine == "krbd":
        async with _mapped(context, action) as devices:
            yield devices
    else:
        yield {}


@asynccontextmanager
async def _qemu(context: Context, phase: Phase, action: Fio) -> AsyncIterator[None]:
    """One qemu-nbd per volume."""
    async with AsyncExitStack() as stack:
        for volume in range(action.volumes):
            argv = fio.qemu_nbd_argv(action, context.place, phase.name, volume)
            name = f"{phase.name}.qemu.{volume}"
            server = await stack.enter_async_context(context.recorder.child(name, argv, None))
            path = Path(fio.nbd_socket(context.place, phase.name, volume))
            try:
                async with asyncio.timeout(_SOCKET_SECONDS):
                    while not path.exists():  # noqa: ASYNC240 - there is no event for it
                        if not server.running:
                            await server.wait(1.0)
                            raise ChildFailed(f"{name} ended at once: {server.said}")
                        await asyncio.sleep(0.05)
            except TimeoutError:
                raise ChildFailed(f"{name}: no socket within {_SOCKET_SECONDS:g} s") from None
            stack.callback(path.unlink, missing_ok=True)
        yield


def check_engine(engine: str) -> None:
    """UsageError where this machine cannot have the engine at all."""
    if engine != "krbd" or Path("/sys/bus/rbd").exists():
        return
    modules = Path("/lib/modules") / _kernel()
    if not any(modules.rglob("rbd.ko*")):
        raise UsageError(
            f"engine krbd: kernel {_kernel()} has no rbd module; use rbd (librbd) or nbd (QEMU)"
        )


def _kernel() -> str:
    return Path("/proc/sys/kernel/osrelease").read_text().strip()


@asynccontextmanager
async def _mapped(context: Context, action: Fio) -> AsyncIterator[dict[int, str]]:
    """Images as kernel devices."""
    access = context.cluster.access
    devices: dict[int, str] = {}
    try:
        for volume in range(action.volumes):
            image = f"{action.pool}/volume.{volume}"
            argv = ["rbd", *context.place.identity, "device", "map", image]
            done = await process.run(access.argv(argv), within=60.0)
            if done.returncode:
                raise RunError(f"rbd device map {image} failed: {done.stderr.strip()}")
            devices[volume] = done.stdout.strip()
        yield devices
    finally:
        for device in devices.values():
            argv = ["rbd", "device", "unmap", device]
            with contextlib.suppress(Exception):
                await process.run(access.argv(argv), within=60.0)


# -- rados bench ---------------------------------------------------------------------------------


async def run_rados_bench(
    context: Context, phase: Phase, action: RadosBench, seconds: float
) -> dict[str, Any]:
    """All instances together, to their end."""
    followers = {pool: BenchFollower(context, phase.name, pool, action) for pool in action.pools}
    async with AsyncExitStack() as stack:
        running = []
        for index, pool in enumerate(action.pools):
            argv = rados_bench.argv(action, index, context.place, seconds=seconds)
            child = context.recorder.child(f"{phase.name}.{pool}", argv, followers[pool])
            running.append(await stack.enter_async_context(child))
        await _until_done(running, seconds + _GRACE, None)
    try:
        results = {p: rados_bench.read_result(bytes(f.output)) for p, f in followers.items()}
    except ValueError as error:
        raise RunError(f"{phase.name}: {error}") from error
    ops = sum(result.ops for result in results.values())
    waited = sum(result.latency_mean * result.ops for result in results.values())
    return {
        "engine": "rados_bench",
        "seconds": max(result.seconds for result in results.values()),
        "total": {
            "ios": ops,
            "iops": sum(result.iops for result in results.values()),
            "bytes_per_second": sum(result.bytes_per_second for result in results.values()),
            "latency_mean": waited / ops if ops else 0.0,
            "latency_max": max(result.latency_max for result in results.values()),
        },
        "instances": {
            pool: {
                "ios": result.ops,
                "iops": result.iops,
                "bytes_per_second": result.bytes_per_second,
                "latency_mean": result.latency_mean,
                "latency_max": result.latency_max,
                "per_second": [row.finished for row in result.rows],
            }
            for pool, result in results.items()
        },
    }
