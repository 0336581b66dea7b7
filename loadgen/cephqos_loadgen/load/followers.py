"""Follow one client process, of fio or of rados bench, and check its result."""

import time
from collections.abc import Sequence

from cephqos_loadgen.engines import fio_output
from cephqos_loadgen.engines.rados_bench import RowStream, read_result
from cephqos_loadgen.live.state import SHORTEST_SECONDS
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.intervals import JobIntervals, Stretch
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.rates import DoneSoFar


class Follower:
    """Takes one client's output as it comes: for the live figures, the archive, and the result.

    Programs differ in what they print: a subclass reads it, and calls `take` with what it says.
    """

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        self._context, self._phase, self._depth = context, phase, depth
        self.client = client
        self.last: fio_output.ClientStatus | None = None
        self.points: dict[str, list[DoneSoFar]] = {}  # by job, its start first
        self._starts: dict[str, float] = {}  # by job
        self._intervals: dict[str, JobIntervals] = {}
        context.live.start_client(phase, client, engine)

    def __call__(self, data: bytes) -> None:
        raise NotImplementedError

    def take(self, status: fio_output.ClientStatus) -> None:
        """Take what the client reports now."""
        before = self.last.jobs if self.last else {}
        for name, job in status.jobs.items():
            self._record(name, job, before.get(name), status.time)
        self.last = status
        live = self._context.live
        live.status(self._phase, self.client, status)
        # fio does not report in time: an interval that is much too short says nothing.
        if live.clients[self._phase, self.client].seconds >= SHORTEST_SECONDS:
            rates = self._context.rates.setdefault(self._phase, [])
            rates.append((status.time, live.iops(self._phase)))

    def _record(
        self, name: str, job: fio_output.JobStatus, before: fio_output.JobStatus | None, time: float
    ) -> None:
        if before is not None and job.counts_anew(before):
            # Only newer versions of fio report the new start.
            self._starts[name] = job.start if job.start > before.start else time - job.runtime
            self.points[name] = []
            before = None
        start = self._starts.setdefault(name, job.start)
        points = self.points.setdefault(name, [])
        if not points:
            points.append(DoneSoFar(start, {}, {}))
        points.append(job.done_so_far(start))
        intervals = self._intervals.setdefault(name, JobIntervals())
        self._write(name, intervals.add(job, before, time))

    def flush(self) -> None:
        """Write what is held back, at the end of the client."""
        for name, intervals in self._intervals.items():
            self._write(name, intervals.last())

    def _write(self, name: str, stretch: Stretch | None) -> None:
        if stretch is None:
            return
        before, job = stretch.before, stretch.job
        seconds = max(0.001, stretch.seconds)
        figures: dict[str, LoadFigures | None] = dict.fromkeys(fio_output.DIRECTIONS)
        for direction, totals in job.totals.items():
            # A direction that has begun stays: a second in which nothing completed is a second too.
            if totals.ios:
                done = fio_output.since(totals, before.totals[direction]) if before else totals
                figures[direction] = fio_output.figures_over(done, seconds)
        read, write = (figures[direction] for direction in fio_output.DIRECTIONS)
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


class FioFollower(Follower):
    """Follows one fio process."""

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        super().__init__(context, phase, client, engine, depth)
        self._stream = fio_output.JsonStream()

    def __call__(self, data: bytes) -> None:
        for document in self._stream.feed(data):
            self.take(fio_output.read_status(document))

    @property
    def torn(self) -> bool:
        """Whether its last report is cut off: the report before is not of all that it did."""
        return self._stream.torn


def check_results(followers: Sequence[FioFollower]) -> None:
    """RunError where a process wrote no result, or reports errors of its jobs."""
    silent = ", ".join(follower.client for follower in followers if follower.last is None)
    if silent:
        raise RunError(f"fio wrote no result for {silent}")
    torn = ", ".join(follower.client for follower in followers if follower.torn)
    if torn:
        raise RunError(f"fio's result is cut off for {torn}")
    for follower in followers:
        jobs = follower.last.jobs if follower.last else {}
        errors = {name: job.error for name, job in jobs.items() if job.error}
        if errors:
            raise RunError(f"{follower.client}: fio reports errors (job: errno) {errors}")


def became_steady(followers: Sequence[FioFollower]) -> bool:
    """Whether every job that was to run to fio's own steady state reached it."""
    steady = [
        job.steady
        for follower in followers
        for job in (follower.last.jobs.values() if follower.last else ())
        if job.steady is not None
    ]
    return bool(steady) and all(steady)


class BenchFollower(Follower):
    """Follows one instance of rados bench, and keeps its whole output too."""

    def __init__(
        self, context: Context, phase: str, pool: str, op: str, object_size: int, depth: int
    ) -> None:
        super().__init__(context, phase, pool, "rados_bench", depth)
        self._object_size = object_size
        self._direction = "write" if op == "write" else "read"
        self._stream = RowStream()
        self._start = 0.0
        self.output = bytearray()

    def __call__(self, data: bytes) -> None:
        self.output += data
        for row in self._stream.feed(data):
            now = time.time()
            self._start = self._start or now - row.second
            job = self._job(row.totals(self._object_size), row.second)
            self.take(fio_output.ClientStatus(now, {self.client: job}))

    def _job(self, done: fio_output.IoTotals, seconds: float) -> fio_output.JobStatus:
        totals = {direction: fio_output.IoTotals() for direction in fio_output.DIRECTIONS}
        totals[self._direction] = done
        return fio_output.JobStatus(totals, self._start, seconds)

    def end(self) -> None:
        """Take the figures of the whole bench from its end: its last row lacks some."""
        result = read_result(bytes(self.output))
        done = fio_output.IoTotals(
            ios=result.ops,
            bytes=result.ops * self._object_size,
            latency_count=result.ops,
            latency_sum=result.latency_mean * result.ops,
            latency_max=result.latency_max,
        )
        job = self._job(done, result.seconds)
        self.points.setdefault(self.client, [DoneSoFar(job.start, {}, {})]).append(
            job.done_so_far(job.start)
        )
        self.last = fio_output.ClientStatus(time.time(), {self.client: job})
