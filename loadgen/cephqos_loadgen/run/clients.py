"""Client load: fio and rados bench processes of a phase, followed while they run."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cephqos_loadgen.engines import fio, rados_bench
from cephqos_loadgen.engines.fio_output import (
    DIRECTIONS,
    IoTotals,
    JobStatus,
    JsonStream,
    Status,
    add,
    figures,
    figures_over,
    read_status,
    since,
)
from cephqos_loadgen.engines.rates import Point, over_common_time
from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.lab import process
from cephqos_loadgen.phase_kinds.rados_bench import RadosBenchResult
from cephqos_loadgen.record.child import Child, ChildFailed
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.run.context import Context
from cephqos_loadgen.run.errors import RunError
from cephqos_loadgen.scenario.model import Fio, Phase, RadosBench

# A client that was given a duration gets this much more: to connect, to drain what is in flight.
_GRACE = 30.0
_SOCKET_SECONDS = 15.0
# fio's status when it was told to end.
_FIO_INTERRUPTED = 128

End = Callable[[], Awaitable[None]]


class Follower:
    """Takes one client's output as it comes: for the live figures, the archive, and the result."""

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        self._context, self._phase, self._client, self._depth = context, phase, client, depth
        self.last: Status | None = None
        self.points: dict[str, list[Point]] = {}
        context.live.start_client(phase, client, engine)

    def take(self, status: Status) -> None:
        """What the client says of itself now."""
        before = self.last.jobs if self.last else {}
        for name, job in status.jobs.items():
            self._record(name, job, before.get(name), status.time)
        self.last = status
        live = self._context.live
        live.status(self._phase, self._client, status)
        # Intervals end when fio gets round to it; one that is very short says nothing.
        if live.clients[self._phase, self._client].seconds >= 0.5:
            rates = self._context.rates.setdefault(self._phase, [])
            rates.append((status.time, live.iops(self._phase)))

    def _record(self, name: str, job: JobStatus, before: JobStatus | None, time: float) -> None:
        points = self.points.setdefault(name, [Point(job.start, {}, {})])
        points.append(job.point)
        parts = {
            d: since(now, before.totals[d]) if before else now for d, now in job.totals.items()
        }
        if not any(part.ios for part in parts.values()):
            return
        seconds = max(0.001, job.runtime - (before.runtime if before else 0.0))
        read, write = (
            figures_over(parts[d], seconds) if parts[d].ios else None for d in DIRECTIONS
        )
        interval = Interval(
            end_unix_seconds=time,
            seconds=round(seconds, 3),
            phase=self._phase,
            client=self._client,
            job=name,
            depth=self._depth,
            read=read,
            write=write,
        )
        self._context.recorder.intervals.write(to_json(interval))


class FioFollower(Follower):
    """Of one fio process."""

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        super().__init__(context, phase, client, engine, depth)
        self._stream = JsonStream()

    def __call__(self, data: bytes) -> None:
        for document in self._stream.feed(data):
            self.take(read_status(document))


class BenchFollower(Follower):
    """Of one instance of rados bench, whose whole output is kept too."""

    def __init__(self, context: Context, phase: str, pool: str, action: RadosBench) -> None:
        index = action.pools.index(pool)
        depth = rados_bench.in_flight_of(action, index)
        super().__init__(context, phase, pool, "rados_bench", depth)
        self._pool, self._action = pool, action
        self._stream = rados_bench.RowStream()
        self._start = 0.0
        self.output = bytearray()

    def __call__(self, data: bytes) -> None:
        self.output += data
        for row in self._stream.feed(data):
            now = time.time()
            self._start = self._start or now - row.second
            self.take(
                Status(
                    now, {self._pool: self._job(row.totals(self._action.object_size), row.second)}
                )
            )

    def _job(self, done: IoTotals, seconds: float) -> JobStatus:
        op = "write" if self._action.op == "write" else "read"
        totals = {direction: done if direction == op else IoTotals() for direction in DIRECTIONS}
        return JobStatus(totals, self._start, seconds)

    def end(self) -> None:
        """The figures of its end, which its last row lacks."""
        result = rados_bench.read_result(bytes(self.output))
        done = IoTotals(
            ios=result.ops,
            bytes=result.ops * self._action.object_size,
            latency_count=result.ops,
            latency_sum=result.latency_mean * result.ops,
            latency_max=result.latency_max,
        )
        job = self._job(done, result.seconds)
        self.points.setdefault(self._pool, [Point(job.start, {}, {})]).append(job.point)
        self.last = Status(time.time(), {self._pool: job})


def step_of(followers: Mapping[str, Follower], depth: int, started: float) -> Step:
    """The figures of all clients together at one depth.

    Rates are taken over the time in which all jobs ran, everything else over all that they did.
    """
    statuses = {name: f.last for name, f in followers.items() if f.last is not None}
    jobs = [(name, status) for name, status in statuses.items()]
    common = over_common_time([points for f in followers.values() for points in f.points.values()])
    runtime = max((status.runtime for status in statuses.values()), default=0.0)
    parts = {d: add(status.of(d) for status in statuses.values()) for d in DIRECTIONS}

    def together(totals: IoTotals, directions: Sequence[str]) -> LoadFigures:
        if common is None:
            return figures_over(totals, runtime)
        ios = sum(common.ios.get(direction, 0.0) for direction in directions)
        moved = sum(common.bytes.get(direction, 0.0) for direction in directions)
        return figures(totals, ios, moved)

    read, write = (together(parts[d], (d,)) if parts[d].ios else None for d in DIRECTIONS)
    return Step(
        depth=depth,
        start_unix_seconds=started,
        end_unix_seconds=time.time(),
        seconds=common.seconds if common else runtime,
        total=together(add(parts.values()), DIRECTIONS),
        read=read,
        write=write,
        jobs={
            f"{client}/{name}" if name != client else name: figures_over(
                add(job.totals.values()), job.runtime
            )
            for client, status in jobs
            for name, job in status.jobs.items()
        },
    )


async def run_fio(
    context: Context, phase: Phase, action: Fio, seconds: float, end: End | None, depth: int
) -> tuple[Step, bool | None]:
    """All clients of one fio step, to their end or to what `end` says: the figures together, and
    whether a load that was to become steady did."""
    followers: dict[str, FioFollower] = {}
    started = time.time()
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
            follower = FioFollower(context, phase.name, client.name, action.engine, depth)
            followers[client.name] = follower
            child = context.recorder.child(f"{phase.name}.{client.name}", argv, follower)
            running.append(await stack.enter_async_context(child))
        await _until_done(running, seconds + _GRACE, end)
    _check_fio(followers)
    step = step_of(followers, depth, started)
    steady = _became_steady(followers) if fio.ends_by_itself(action) else None
    if steady is False:
        context.recorder.event("not_steady", phase=phase.name, after=step.seconds)
    return step, steady


def _check_fio(followers: Mapping[str, FioFollower]) -> None:
    silent = ", ".join(name for name, follower in followers.items() if follower.last is None)
    if silent:
        raise RunError(f"fio wrote no result for {silent}")
    for name, follower in followers.items():
        jobs = follower.last.jobs if follower.last else {}
        wrong = {job: status.error for job, status in jobs.items() if status.error}
        if wrong:
            raise RunError(f"{name}: fio reports errors (job: errno) {wrong}")


def _became_steady(followers: Mapping[str, FioFollower]) -> bool:
    steady = [
        job.steady
        for follower in followers.values()
        for job in (follower.last.jobs.values() if follower.last else ())
        if job.steady is not None
    ]
    return bool(steady) and all(steady)


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
        status = child.record().status
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
) -> RadosBenchResult:
    """All instances together, to their end."""
    started = time.time()
    followers = {pool: BenchFollower(context, phase.name, pool, action) for pool in action.pools}
    async with AsyncExitStack() as stack:
        running = []
        for index, pool in enumerate(action.pools):
            argv = rados_bench.argv(action, index, context.place, seconds=seconds)
            child = context.recorder.child(f"{phase.name}.{pool}", argv, followers[pool])
            running.append(await stack.enter_async_context(child))
        await _until_done(running, seconds + _GRACE, None)
    try:
        for follower in followers.values():
            follower.end()
    except ValueError as error:
        raise RunError(f"{phase.name}: {error}") from error
    step = step_of(followers, action.in_flight, started)
    return RadosBenchResult(action.op, action.object_size, (step,))
