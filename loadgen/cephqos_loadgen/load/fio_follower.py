"""Follows one fio process, and checks what it leaves."""

from collections.abc import Sequence

from cephqos_loadgen.engines.fio_output import JsonStream, read_status
from cephqos_loadgen.load.clients import Follower
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.plan.errors import RunError


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
