"""Follow one fio process, or one instance of rados bench, and check what it leaves."""

import time
from collections.abc import Sequence

from cephqos_loadgen.engines.fio_output import (
    DIRECTIONS,
    ClientStatus,
    IoTotals,
    JobStatus,
    JsonStream,
    read_status,
)
from cephqos_loadgen.engines.rados_bench import RowStream, read_result
from cephqos_loadgen.load.clients import Follower
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.results.rates import DoneSoFar


class FioFollower(Follower):
    """Of one fio process."""

    def __init__(self, context: Context, phase: str, client: str, engine: str, depth: int) -> None:
        super().__init__(context, phase, client, engine, depth)
        self._stream = JsonStream()

    def __call__(self, data: bytes) -> None:
        for document in self._stream.feed(data):
            self.take(read_status(document))

    @property
    def torn(self) -> bool:
        """Its last figures are not whole: those before are not of all that it did."""
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
        wrong = {name: job.error for name, job in jobs.items() if job.error}
        if wrong:
            raise RunError(f"{follower.client}: fio reports errors (job: errno) {wrong}")


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
    """Of one instance of rados bench, whose whole output is kept too."""

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
            self.take(ClientStatus(now, {self.client: job}))

    def _job(self, done: IoTotals, seconds: float) -> JobStatus:
        totals = {d: done if d == self._direction else IoTotals() for d in DIRECTIONS}
        return JobStatus(totals, self._start, seconds)

    def end(self) -> None:
        """The figures of its end, which its last row lacks."""
        result = read_result(bytes(self.output))
        done = IoTotals(
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
        self.last = ClientStatus(time.time(), {self.client: job})
