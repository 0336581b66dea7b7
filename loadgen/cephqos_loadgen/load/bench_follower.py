"""Follows one instance of rados bench."""

import time

from cephqos_loadgen.engines.fio_output import DIRECTIONS, ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.engines.rados_bench import RowStream, read_result
from cephqos_loadgen.load.clients import Follower
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.results.rates import DoneSoFar


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
