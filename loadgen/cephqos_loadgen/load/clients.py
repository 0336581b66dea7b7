"""Client processes of a phase: started together, followed while they run, ended together."""

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal

from cephqos_loadgen import processes
from cephqos_loadgen.engines.fio_output import (
    DIRECTIONS,
    ClientStatus,
    IoTotals,
    JobStatus,
    add,
    figures,
    figures_over,
    since,
)
from cephqos_loadgen.live.state import SHORTEST_SECONDS
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.intervals import JobIntervals, Stretch
from cephqos_loadgen.load.kind import End
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.record.child import Child, ChildFailed
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.results.rates import DoneSoFar, over_common_time

# A client that was given a duration gets this much more: to connect, to drain what is in flight.
_GRACE = 30.0
# The status of a client that our interrupt ended: fio's own, and a shell's for SIGINT.
_INTERRUPTED = (128, 128 + signal.SIGINT)
_COMMAND_SECONDS = 60.0
# A client counts its own time: one that was given a time ran for less than it only if it ended.
_EARLY_SECONDS = 1.0


class RunTools:
    """What engines use on this host: processes of the repeat, and commands."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self, name: str, argv: Sequence[str]) -> AbstractAsyncContextManager[Child]:
        return self._context.recorder.child(name, argv, None)

    async def output(self, argv: Sequence[str]) -> str:
        command = self._context.cluster.access.argv(argv)
        done = await processes.run(command, within=_COMMAND_SECONDS)
        if done.returncode:
            raise RunError(f"{' '.join(argv)} failed: {done.stderr.strip()}")
        return done.stdout


# -- following -----------------------------------------------------------------------------------


class Follower:
    """Takes one client's output as it comes: for the live figures, the archive, and the result.

    Programs differ in what they print: a subclass reads it, and calls `take` with what it says.
    """

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        self._context, self._phase, self._depth = context, phase, depth
        self.client = client
        self.last: ClientStatus | None = None
        self.points: dict[str, list[DoneSoFar]] = {}
        self._starts: dict[str, float] = {}
        self._intervals: dict[str, JobIntervals] = {}
        context.live.start_client(phase, client, engine)

    def __call__(self, data: bytes) -> None:
        raise NotImplementedError

    def take(self, status: ClientStatus) -> None:
        """What the client says of itself now."""
        before = self.last.jobs if self.last else {}
        for name, job in status.jobs.items():
            self._record(name, job, before.get(name), status.time)
        self.last = status
        live = self._context.live
        live.status(self._phase, self.client, status)
        # JobIntervals end when fio gets round to it; one that is very short says nothing.
        if live.clients[self._phase, self.client].seconds >= SHORTEST_SECONDS:
            rates = self._context.rates.setdefault(self._phase, [])
            rates.append((status.time, live.iops(self._phase)))

    def _record(self, name: str, job: JobStatus, before: JobStatus | None, time: float) -> None:
        if before is not None and job.counts_anew(before):
            # Newer versions of fio say the new start too.
            self._starts[name] = job.start if job.start > before.start else time - job.runtime
            self.points[name] = []
            before = None
        start = self._starts.setdefault(name, job.start)
        points = self.points.setdefault(name, [])
        if not points:
            points.append(DoneSoFar(start, {}, {}))
        points.append(job.done_so_far(start))
        self._write(name, self._intervals.setdefault(name, JobIntervals()).add(job, before, time))

    def flush(self) -> None:
        """Write what is held back, at the end of the client."""
        for name, intervals in self._intervals.items():
            self._write(name, intervals.rest())

    def _write(self, name: str, stretch: Stretch | None) -> None:
        if stretch is None:
            return
        before, job = stretch.before, stretch.job
        parts = {
            d: since(now, before.totals[d]) if before else now for d, now in job.totals.items()
        }
        seconds = max(0.001, stretch.seconds)
        # A direction that has begun stays: a second in which nothing completed is a second too.
        read, write = (
            figures_over(parts[d], seconds) if job.totals[d].ios else None for d in DIRECTIONS
        )
        if job.runtime <= 0 and read is None and write is None:
            return  # it has not begun
        interval = Interval(
            end_unix_seconds=stretch.end,
            seconds=round(seconds, 3),
            phase=self._phase,
            client=self.client,
            job=name,
            depth=self._depth,
            read=read,
            write=write,
        )
        self._context.recorder.intervals.write(to_json(interval))


def step_of(
    followers: Sequence[Follower], depth: int, started: float, asked: float | None = None
) -> Step:
    """The figures of all clients together at one depth. `asked`: seconds, of a load that was to
    run for so long.

    Rates are taken over the time in which all jobs ran, everything else over all that they did.
    """
    statuses = {f.client: f.last for f in followers if f.last is not None}
    jobs = {
        f"{client}/{name}" if name != client else name: job
        for client, status in statuses.items()
        for name, job in status.jobs.items()
    }
    courses = [points for follower in followers for points in follower.points.values()]
    common = over_common_time(courses)
    starts = [points[0].time for points in courses if points]
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
        end_unix_seconds=_end(courses) if common else time.time(),
        seconds=common.seconds if common else runtime,
        total=together(add(parts.values()), DIRECTIONS),
        read=read,
        write=write,
        jobs={
            name: figures_over(add(job.totals.values()), job.runtime) for name, job in jobs.items()
        },
        asked_seconds=asked,
        ended_early=_ended_early(jobs, asked),
        counted_from_unix_seconds=min(filter(None, starts), default=None),
    )


def _end(courses: Sequence[Sequence[DoneSoFar]]) -> float:
    """That of the last job. What served the volumes takes time to go; nothing is loaded then."""
    return min(time.time(), max(points[-1].time for points in courses))


def _ended_early(jobs: Mapping[str, JobStatus], asked: float | None) -> dict[str, float]:
    """How long those jobs ran that ended before their time; one that did nothing has none."""
    if asked is None:
        return {}
    runtimes = {name: job.runtime for name, job in jobs.items()}
    return {n: seconds for n, seconds in runtimes.items() if 0 < seconds < asked - _EARLY_SECONDS}


# -- running -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """A process to start, and who takes its output."""

    argv: Sequence[str]
    follower: Follower


# How the clients of a phase came to their end.
Ended = Literal["by themselves", "interrupted"]


async def run_clients(
    context: Context, phase: str, clients: Sequence[ClientProcess], seconds: float, end: End | None
) -> Ended:
    """All of them, until they end by themselves or `end` returns. One that fails ends the phase."""
    try:
        async with AsyncExitStack() as stack:
            running: list[Child] = []
            for client in clients:
                name = f"{phase}.{client.follower.client}"
                child = context.recorder.child(name, client.argv, client.follower)
                running.append(await stack.enter_async_context(child))
            return await _until_done(running, seconds + _GRACE, end)
    finally:
        for client in clients:
            client.follower.flush()


async def _until_done(running: list[Child], within: float, end: End | None) -> Ended:
    """Wait for all; when `end` returns first, interrupt them."""
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
        ended: Ended = "interrupted" if ending and ending.done() else "by themselves"
        if ended == "interrupted":
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            await asyncio.gather(*(child.interrupt() for child in running if child.running))
        _check(running)
        return ended
    finally:
        for task in (*waits, *([ending] if ending else [])):
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _check(running: list[Child]) -> None:
    for child in running:
        status = child.record().status
        if status is None or status == 0:
            continue
        if child.interrupted and status in _INTERRUPTED:
            continue
        how = processes.how_it_ended(status)
        raise ChildFailed(f"{child.launch.name} {how}: {child.said}".removesuffix(": "))
